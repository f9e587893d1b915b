//go:build integration

// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"testing"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/conversion-operator/conversion-operator/internal/operator/pki"
	"github.com/conversion-operator/conversion-operator/internal/operator/plan/names"
	"github.com/conversion-operator/conversion-operator/internal/test/expect"
)

// foreign are writes of other clients to the spec of a CustomResourceDefinition whose conversion
// is active.
var foreign = map[string]struct {
	manager string
	write   func(*testing.T, *apiextensionsv1.CustomResourceDefinition) error
	message string
}{
	"replace without a conversion": {"kubectl-replace", func(t *testing.T, crd *apiextensionsv1.CustomResourceDefinition) error {
		replacement := manifest(t, crd.Spec.Group, "v1", "v1beta1")
		replacement.ResourceVersion = crd.ResourceVersion
		return cluster.Update(t.Context(), replacement, client.FieldOwner("kubectl-replace"))
	}, "to strategy None"},
	"an installer's full update": {"olm", func(t *testing.T, crd *apiextensionsv1.CustomResourceDefinition) error {
		crd.Spec.Conversion.Webhook.ClientConfig = &apiextensionsv1.WebhookClientConfig{
			Service: &apiextensionsv1.ServiceReference{Namespace: "theirs", Name: "webhook", Path: new("/convert"), Port: new(int32(443))}}
		return cluster.Update(t.Context(), crd, client.FieldOwner("olm"))
	}, "at the Service theirs/webhook"},
	"an upgrade by merge patch": {"helm", func(t *testing.T, crd *apiextensionsv1.CustomResourceDefinition) error {
		patch := []byte(`{"spec":{"conversion":{"strategy":"None","webhook":null}}}`)
		return cluster.Patch(t.Context(), crd, client.RawPatch(types.MergePatchType, patch), client.FieldOwner("helm"))
	}, "to strategy None"},
	"an injector of caBundle": {"cert-manager-cainjector", func(t *testing.T, crd *apiextensionsv1.CustomResourceDefinition) error {
		other, err := pki.NewAuthority("theirs", time.Now(), time.Hour)
		expect.NoError(t, err)
		crd.Spec.Conversion.Webhook.ClientConfig.CABundle = other.Certificate
		return cluster.Update(t.Context(), crd, client.FieldOwner("cert-manager-cainjector"))
	}, "changed caBundle"},
	"server-side apply by force": {"argocd-controller", func(t *testing.T, crd *apiextensionsv1.CustomResourceDefinition) error {
		theirs := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"conversion": map[string]any{
			"strategy": "Webhook", "webhook": map[string]any{"clientConfig": map[string]any{
				"service": map[string]any{"namespace": system, "name": crd.Spec.Conversion.Webhook.ClientConfig.Service.Name, "path": "/theirs"}}}}}}}
		theirs.SetGroupVersionKind(apiextensionsv1.SchemeGroupVersion.WithKind("CustomResourceDefinition"))
		theirs.SetName(crd.Name)
		return cluster.Apply(t.Context(), client.ApplyConfigurationFromUnstructured(theirs), client.FieldOwner("argocd-controller"), client.ForceOwnership)
	}, "changed spec.conversion"},
	"an update under the operator's name": {names.ManagedBy, func(t *testing.T, crd *apiextensionsv1.CustomResourceDefinition) error {
		crd.Spec.Conversion = &apiextensionsv1.CustomResourceConversion{Strategy: apiextensionsv1.NoneConverter}
		return cluster.Update(t.Context(), crd, client.FieldOwner(names.ManagedBy))
	}, "to strategy None"},
	"caBundle removed": {"", func(t *testing.T, crd *apiextensionsv1.CustomResourceDefinition) error {
		patch := []byte(`[{"op":"remove","path":"/spec/conversion/webhook/clientConfig/caBundle"}]`)
		return cluster.Patch(t.Context(), crd, client.RawPatch(types.JSONPatchType, patch), client.FieldOwner("kubectl-patch"))
	}, "unknown field manager"},
}

// harmless are writes of other clients that leave spec.conversion unchanged.
var harmless = map[string]func(*testing.T, *apiextensionsv1.CustomResourceDefinition) error{
	"server-side apply of a manifest without a conversion": func(t *testing.T, crd *apiextensionsv1.CustomResourceDefinition) error {
		content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(manifest(t, crd.Spec.Group, "v1", "v1beta1"))
		expect.NoError(t, err)
		delete(content, "status")
		applied := &unstructured.Unstructured{Object: content}
		applied.SetGroupVersionKind(apiextensionsv1.SchemeGroupVersion.WithKind("CustomResourceDefinition"))
		return cluster.Apply(t.Context(), client.ApplyConfigurationFromUnstructured(applied), client.FieldOwner("kustomize-controller"), client.ForceOwnership)
	},
	"a label": func(t *testing.T, crd *apiextensionsv1.CustomResourceDefinition) error {
		crd.Labels = map[string]string{"theirs": "true"}
		return cluster.Update(t.Context(), crd, client.FieldOwner("helm"))
	},
	"an update with the same conversion": func(t *testing.T, crd *apiextensionsv1.CustomResourceDefinition) error {
		return cluster.Update(t.Context(), crd, client.FieldOwner("olm"))
	},
	"a condition in the status": func(t *testing.T, crd *apiextensionsv1.CustomResourceDefinition) error {
		crd.Status.Conditions = append(crd.Status.Conditions, apiextensionsv1.CustomResourceDefinitionCondition{
			Type: "Theirs", Status: apiextensionsv1.ConditionTrue})
		return cluster.Status().Update(t.Context(), crd, client.FieldOwner("theirs"))
	},
}

// impossible are writes of a manifest with only strategy None: webhook stays, and the API server
// refuses the combination.
var impossible = map[string]func(*testing.T, *apiextensionsv1.CustomResourceDefinition) error{
	"client-side apply": func(t *testing.T, crd *apiextensionsv1.CustomResourceDefinition) error {
		patch := []byte(`{"spec":{"conversion":{"strategy":"None"}}}`)
		return cluster.Patch(t.Context(), crd, client.RawPatch(types.StrategicMergePatchType, patch), client.FieldOwner("kubectl-client-side-apply"))
	},
	"server-side apply by force": func(t *testing.T, crd *apiextensionsv1.CustomResourceDefinition) error {
		return cluster.Apply(t.Context(), strategyNone(crd.Name), client.FieldOwner("kustomize-controller"), client.ForceOwnership)
	},
}

func strategyNone(name string) runtime.ApplyConfiguration {
	theirs := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"conversion": map[string]any{"strategy": "None"}}}}
	theirs.SetGroupVersionKind(apiextensionsv1.SchemeGroupVersion.WithKind("CustomResourceDefinition"))
	theirs.SetName(name)
	return client.ApplyConfigurationFromUnstructured(theirs)
}
