// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"context"
	"fmt"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	appsv1apply "k8s.io/client-go/applyconfigurations/apps/v1"
	corev1apply "k8s.io/client-go/applyconfigurations/core/v1"
	policyv1apply "k8s.io/client-go/applyconfigurations/policy/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
	"github.com/conversion-operator/conversion-operator/internal/operator/plan/names"
	"github.com/conversion-operator/conversion-operator/internal/operator/plan/observed"
	"github.com/conversion-operator/conversion-operator/internal/operator/plan/step"
	"github.com/conversion-operator/conversion-operator/internal/operator/scheme"
	"github.com/conversion-operator/conversion-operator/internal/test/expect"
)

// existingObject is the object that the API server has under every name, unless it has no labels, and
// whether the cache has it.
type existingObject struct {
	labels map[string]string
	cached bool
}

// reconciler returns one whose cluster has that object, and what it writes.
func (o existingObject) reconciler(written *[]string) *ConversionPolicyReconciler {
	meta := metav1.ObjectMeta{UID: "the-uid", ResourceVersion: "7", Labels: o.labels}
	cluster := interceptor.NewClient(fake.NewClientBuilder().WithScheme(scheme.New()).Build(), interceptor.Funcs{
		Get: func(_ context.Context, _ client.WithWatch, key client.ObjectKey, object client.Object, _ ...client.GetOption) error {
			if !o.cached {
				return apierrors.NewNotFound(schema.GroupResource{}, key.Name)
			}
			object.SetUID(meta.UID)
			return nil
		},
		List: func(_ context.Context, _ client.WithWatch, list client.ObjectList, _ ...client.ListOption) error {
			if o.labels != nil {
				list.(*metav1.PartialObjectMetadataList).Items = []metav1.PartialObjectMetadata{{ObjectMeta: meta}} //nolint:forcetypeassert // no other list
			}
			return nil
		},
		Apply: func(_ context.Context, _ client.WithWatch, object runtime.ApplyConfiguration, _ ...client.ApplyOption) error {
			content, err := toUnstructured(object)
			*written = append(*written, fmt.Sprintf("apply to %q", content.GetUID()))
			return err
		},
		Delete: func(_ context.Context, _ client.WithWatch, object client.Object, options ...client.DeleteOption) error {
			asked := (&client.DeleteOptions{}).ApplyOptions(options)
			if asked.Preconditions == nil || asked.Preconditions.UID == nil || *asked.Preconditions.UID == "" {
				return fmt.Errorf("%T is deleted by name", object)
			}
			*written = append(*written, "delete "+string(*asked.Preconditions.UID))
			return nil
		},
	})
	return &ConversionPolicyReconciler{Client: cluster, Live: cluster, Settings: observed.Settings{Namespace: "conversion-system"}}
}

var (
	foreignObject = existingObject{labels: map[string]string{names.InstanceLabel: "theirs"}}
	ownObject     = existingObject{labels: map[string]string{names.ManagedByLabel: names.ManagedBy, names.InstanceLabel: "ours"}}
)

// TestForeignObjectIsNotApplied: the manager applies an object only to its own, by uid, or where there is
// none.
func TestForeignObjectIsNotApplied(t *testing.T) {
	for kind, object := range map[string]runtime.ApplyConfiguration{
		"Deployment":          appsv1apply.Deployment("a", "conversion-system").WithLabels(ownObject.labels).WithAnnotations(map[string]string{"a": "b"}),
		"Service":             corev1apply.Service("a", "conversion-system").WithLabels(ownObject.labels).WithAnnotations(map[string]string{"a": "b"}),
		"ConfigMap":           corev1apply.ConfigMap("a", "conversion-system").WithLabels(ownObject.labels).WithAnnotations(map[string]string{"a": "b"}),
		"PodDisruptionBudget": policyv1apply.PodDisruptionBudget("a", "conversion-system").WithLabels(ownObject.labels).WithAnnotations(map[string]string{"a": "b"}),
	} {
		for is, c := range map[string]struct {
			object existingObject
			want   string
		}{
			"absent":                    {existingObject{}, `apply to ""`},
			"its own":                   {ownObject, `apply to "the-uid"`},
			"its own, and in the cache": {existingObject{labels: ownObject.labels, cached: true}, `apply to "the-uid"`},
			"of another client":         {foreignObject, ""},
			"of another policy":         {existingObject{labels: names.FleetLabels("other")}, ""},
		} {
			t.Run(kind+" is "+is, func(t *testing.T) {
				var written []string
				err := c.object.reconciler(&written).do(t.Context(), &v1alpha1.ConversionPolicy{}, step.Apply{Object: object})
				expect.Equal(t, "writes", c.want, strings.Join(written, ", "))
				if c.want == "" {
					expect.Contains(t, "the error", fmt.Sprint(err), kind+" conversion-system/a exists without the labels")
				}
			})
		}
	}
}

// TestDeletionsHaveAUID: every deletion names the uid of the object, which is the operator's.
func TestDeletionsHaveAUID(t *testing.T) {
	for _, c := range []struct {
		step step.Step
		want int
	}{
		{step.DeleteDeployment{Name: "a"}, 1}, {step.DeleteService{Name: "a"}, 2}, {step.DeleteRulesets{Name: "a"}, 1}, {step.DeleteSecret{Name: "a"}, 2},
		{step.DeleteRun{Name: "a"}, 2}, {step.DeleteRights{Name: "a", OfRuns: true}, 6}, {step.DeleteAdmission{Name: "a"}, 1},
	} {
		t.Run(fmt.Sprintf("%T", c.step), func(t *testing.T) {
			for of, want := range map[*existingObject]int{&ownObject: c.want, &foreignObject: 0, {}: 0} {
				var written []string
				expect.NoError(t, of.reconciler(&written).do(t.Context(), &v1alpha1.ConversionPolicy{}, c.step))
				expect.Equal(t, fmt.Sprintf("deletions where labels are %v: %v", of.labels, written), want, len(written))
			}
		})
	}
	var written []string
	expect.NoError(t, ownObject.reconciler(&written).do(t.Context(), &v1alpha1.ConversionPolicy{}, step.DeleteJob{Name: "a", UID: "decided"}))
	expect.Equal(t, "the deletion of the Job that was decided on", "delete decided", strings.Join(written, ", "))
}
