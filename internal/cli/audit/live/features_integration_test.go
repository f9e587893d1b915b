//go:build integration

// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package live

import (
	"context"
	"testing"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/restmapper"
	"k8s.io/client-go/scale"

	"github.com/conversion-operator/conversion-operator/internal/cli/audit"
	"github.com/conversion-operator/conversion-operator/internal/test/expect"
	"github.com/conversion-operator/conversion-operator/internal/test/testenv"
)

// testAutoscaler: the audit says beforehand by name which autoscaler fails once a version without a scale is preferred.
// The test reads the scale with the client of the controller of HorizontalPodAutoscalers.
func testAutoscaler(t *testing.T, c *cluster) {
	t.Parallel()
	crd := definition("scaled")
	crd.Spec.Scope = apiextensionsv1.NamespaceScoped
	old, next := at("v1beta1", "served storage", "a"), at("v1", "served", "a")
	for _, version := range []apiextensionsv1.CustomResourceDefinitionVersion{old, next} {
		version.Schema.OpenAPIV3Schema.Properties["spec"] = apiextensionsv1.JSONSchemaProps{
			Type: "object", Properties: map[string]apiextensionsv1.JSONSchemaProps{"replicas": {Type: "integer"}}}
	}
	old.Subresources = &apiextensionsv1.CustomResourceSubresources{Scale: &apiextensionsv1.CustomResourceSubresourceScale{
		SpecReplicasPath: ".spec.replicas", StatusReplicasPath: ".status.replicas"}}
	c.plant(t, crd, old)
	object := widget(crd, "v1beta1")
	object.SetNamespace("default")
	object.Object["spec"] = map[string]any{"replicas": int64(3)}
	expect.Success(t, "an object is created", func(ctx context.Context) error { return c.Client.Create(ctx, object) })
	scaler := &autoscalingv2.HorizontalPodAutoscaler{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web"}}
	scaler.Spec.MaxReplicas, scaler.Spec.ScaleTargetRef = 5, autoscalingv2.CrossVersionObjectReference{APIVersion: crd.Spec.Group + "/v1beta1", Kind: "Widget", Name: "first"}
	expect.NoError(t, c.Client.Create(t.Context(), scaler))
	replicas, err := c.replicas(t, crd)
	expect.NoError(t, err)
	expect.Equal(t, "replicas", 3, replicas)

	upgraded := crd.DeepCopy()
	upgraded.Spec.Versions = append(upgraded.Spec.Versions, next)
	named := func(options *Options) {
		options.Names, options.Threshold, options.NoReads = []string{crd.Name}, audit.SeverityError, true
	}
	reader := c.reader(t, "autoscalers", nil)
	expect.Equal(t, "errors", []string{}, lines(c.audit(t, reader, named).Findings))
	before := c.audit(t, reader, func(options *Options) {
		named(options)
		options.Next = map[string]*apiextensionsv1.CustomResourceDefinition{crd.Name: upgraded}
	}).Findings
	expect.Equal(t, "errors before the upgrade", []string{"Error Certain AutoscalerWithoutScale v1"}, lines(before))
	expect.Contains(t, "evidence", before[0].Evidence, "default/web")

	testenv.ChangeCRD(t, c.Client, crd.Name, func(crd *apiextensionsv1.CustomResourceDefinition) { crd.Spec.Versions = upgraded.Spec.Versions })
	expect.Eventually(t, "the scale is gone", func() (bool, string) {
		_, err := c.replicas(t, crd)
		return apierrors.IsNotFound(err), "the autoscaler still reads it"
	})
	expect.Equal(t, "errors after the upgrade", []string{"Error Certain AutoscalerWithoutScale v1"}, lines(c.audit(t, reader, named).Findings))
}

// replicas reads the scale of an object, as an autoscaler that starts now.
func (c *cluster) replicas(t *testing.T, crd *apiextensionsv1.CustomResourceDefinition) (int, error) {
	t.Helper()
	api, err := discovery.NewDiscoveryClientForConfig(c.Kubeconfig)
	expect.NoError(t, err)
	groups, err := restmapper.GetAPIGroupResources(api)
	expect.NoError(t, err)
	scales, err := scale.NewForConfig(rest.CopyConfig(c.Kubeconfig), restmapper.NewDiscoveryRESTMapper(groups), dynamic.LegacyAPIPathResolverFunc,
		scale.NewDiscoveryScaleKindResolver(api))
	expect.NoError(t, err)
	found, err := scales.Scales("default").Get(t.Context(), schema.GroupResource{Group: crd.Spec.Group, Resource: "widgets"}, "first", metav1.GetOptions{})
	if err != nil {
		return 0, err
	}
	return int(found.Spec.Replicas), nil
}
