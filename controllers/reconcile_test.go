// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	corev1apply "k8s.io/client-go/applyconfigurations/core/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/events"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
	"github.com/conversion-operator/conversion-operator/internal/operator/plan/names"
	"github.com/conversion-operator/conversion-operator/internal/operator/plan/observed"
	"github.com/conversion-operator/conversion-operator/internal/operator/plan/step"
	"github.com/conversion-operator/conversion-operator/internal/operator/scheme"
	"github.com/conversion-operator/conversion-operator/internal/operator/tracing"
	"github.com/conversion-operator/conversion-operator/internal/test/expect"
)

const system = "conversion-system"

// inCluster returns a client of a cluster that has these objects.
func inCluster(objects ...client.Object) client.WithWatch {
	byName := func(object client.Object) []string { return []string{object.GetName()} }
	return fake.NewClientBuilder().WithScheme(scheme.New()).WithObjects(objects...).WithStatusSubresource(&v1alpha1.ConversionPolicy{}).
		WithIndex(&appsv1.Deployment{}, metav1.ObjectNameField, byName).WithIndex(&corev1.Secret{}, metav1.ObjectNameField, byName).Build()
}

// reconciling returns a manager that reads these caches, and the cluster when it must not be stale.
func reconciling(t *testing.T, caches, cluster client.Client) *ConversionPolicyReconciler {
	t.Helper()
	r := &ConversionPolicyReconciler{Client: caches, Live: cluster, Recorder: events.NewFakeRecorder(100), Settings: observed.Settings{Namespace: system},
		Prober: NewProber(time.Hour), Checks: NewBackgroundChecks(&rest.Config{}, caches, cluster, time.Now), Now: time.Now}
	r.start(t.Context())
	return r
}

// refusesWrites is a client whose writes fail.
func refusesWrites(c client.WithWatch) client.WithWatch {
	refuse := func(object any) error { return fmt.Errorf("it writes %T", object) }
	return interceptor.NewClient(c, interceptor.Funcs{
		Create: func(_ context.Context, _ client.WithWatch, object client.Object, _ ...client.CreateOption) error {
			return refuse(object)
		},
		Patch: func(_ context.Context, _ client.WithWatch, object client.Object, _ client.Patch, _ ...client.PatchOption) error {
			return refuse(object)
		},
		Apply: func(_ context.Context, _ client.WithWatch, object runtime.ApplyConfiguration, _ ...client.ApplyOption) error {
			return refuse(object)
		},
		Delete: func(_ context.Context, _ client.WithWatch, object client.Object, _ ...client.DeleteOption) error {
			return refuse(object)
		},
		SubResourcePatch: func(_ context.Context, _ client.Client, _ string, object client.Object, _ client.Patch, _ ...client.SubResourcePatchOption) error {
			return refuse(object)
		},
	})
}

// TestWritesOfStaleDecisions: no CustomResourceDefinition is written, and no run starts, if the policy changed or
// was recreated since the decision, which also is so if a cache lacks the manager's own last write of its status.
func TestWritesOfStaleDecisions(t *testing.T) {
	known := &v1alpha1.ConversionPolicy{ObjectMeta: metav1.ObjectMeta{Name: "crontabs.example.com", UID: "1"}}
	cluster := inCluster(known)
	expect.NoError(t, cluster.Get(t.Context(), client.ObjectKeyFromObject(known), known))
	recreated, changed := known.DeepCopy(), known.DeepCopy()
	recreated.UID, changed.ResourceVersion = "2", "1"
	pin := step.Pin{Name: known.Name, UID: "3", ResourceVersion: "4"}
	r := &ConversionPolicyReconciler{Client: refusesWrites(cluster), Live: cluster}
	for what, policy := range map[string]*v1alpha1.ConversionPolicy{"was recreated": recreated, "has changed": changed} {
		for _, s := range []step.Step{
			step.SwitchCRD{Pin: pin, Conversion: &apiextensionsv1.CustomResourceConversion{Strategy: apiextensionsv1.NoneConverter}},
			step.RestoreCRD{Pin: pin},
			step.PruneStoredVersions{Pin: pin, StorageVersion: "v1"},
			step.EditVersions{Pin: pin, Changes: []step.VersionChange{{Name: "v1beta1", Field: "deprecated", Value: true}}},
			step.Create{Object: corev1apply.ConfigMap("nobodys", system)},
		} {
			if err := r.do(t.Context(), policy, s); !apierrors.IsConflict(err) {
				t.Errorf("%T for a policy that %s: %v, want a conflict", s, what, err)
			}
		}
	}
}

// TestStaleCacheIsNoOrphan: objects of a policy that the cache does not have yet are not deleted,
// even if the CustomResourceDefinition does not use them.
func TestStaleCacheIsNoOrphan(t *testing.T) {
	policy := &v1alpha1.ConversionPolicy{ObjectMeta: metav1.ObjectMeta{Name: "crontabs.example.com"}}
	child := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: system, Name: names.Child(policy.Name), Labels: names.Labels(policy.Name, names.ConverterComponent)}}
	for there, cluster := range map[bool]client.Client{true: inCluster(child, policy), false: inCluster(child)} {
		r := reconciling(t, inCluster(child), cluster)
		r.orphans.put(policy.Name, orphan{released: time.Unix(0, 0)})
		_, err := r.Reconcile(t.Context(), ctrl.Request{NamespacedName: client.ObjectKeyFromObject(policy)})
		expect.NoError(t, err)
		err = r.Client.Get(t.Context(), client.ObjectKeyFromObject(child), &appsv1.Deployment{})
		expect.Equal(t, fmt.Sprintf("the Deployment is deleted, while the policy exists: %t", there), !there, apierrors.IsNotFound(err))
	}
}

// TestOrphanIsNotForgotten: a deleted policy is looked after until its children were listed, and there is none.
func TestOrphanIsNotForgotten(t *testing.T) {
	const name = "crontabs.example.com"
	for what, c := range map[string]struct {
		during func(*ConversionPolicyReconciler) error
		known  bool
	}{
		"nothing is left":                  {func(*ConversionPolicyReconciler) error { return nil }, false},
		"the list fails":                   {func(*ConversionPolicyReconciler) error { return errors.New("refused") }, true},
		"the cache gets a child meanwhile": {func(r *ConversionPolicyReconciler) error { r.orphans.add(name, orphan{}); return nil }, true},
	} {
		var r *ConversionPolicyReconciler
		cluster := interceptor.NewClient(inCluster(), interceptor.Funcs{List: func(context.Context, client.WithWatch, client.ObjectList, ...client.ListOption) error {
			return c.during(r)
		}})
		r = reconciling(t, cluster, cluster)
		r.orphans.put(name, orphan{})
		_, _ = r.reconcileOrphan(t.Context(), name)
		_, known := r.orphans.get(name)
		expect.Equal(t, "known after: "+what, c.known, known)
	}
}

// TestCreateOnce: a manager accepts the objects that another one created, and not those of other clients.
func TestCreateOnce(t *testing.T) {
	made := func(labels map[string]string) *corev1.Secret {
		return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: system, Name: "one", Labels: labels}}
	}
	ours, others := names.Labels("crontabs.example.com", names.ConverterComponent), names.Labels("gadgets.example.com", names.ConverterComponent)
	for what, c := range map[string]struct {
		labels  map[string]string
		refused bool
	}{"ours": {ours, false}, "of another policy": {others, true}, "of another client": {nil, true}} {
		cluster := inCluster(made(c.labels))
		r := &ConversionPolicyReconciler{Client: cluster, Live: cluster}
		err := r.createOnce(t.Context(), made(ours))
		expect.Equal(t, fmt.Sprintf("one %s is refused: %v", what, err), c.refused, err != nil && strings.Contains(err.Error(), "exists without the labels"))
	}
	cluster := inCluster()
	expect.NoError(t, (&ConversionPolicyReconciler{Client: cluster, Live: cluster}).createOnce(t.Context(), made(ours)))
	expect.NoError(t, cluster.Get(t.Context(), client.ObjectKey{Namespace: system, Name: "one"}, &corev1.Secret{}))
}

// TestTrace checks the spans of one reconciliation and their attributes.
func TestTrace(t *testing.T) {
	policy := &v1alpha1.ConversionPolicy{ObjectMeta: metav1.ObjectMeta{Name: "crontabs.example.com"}}
	policy.Spec.Converter.Type = v1alpha1.ConverterNone
	crd := definitionOf("crontabs")
	crd.Status.StoredVersions = []string{"v1"}
	cluster, spans := inCluster(policy, crd), tracetest.NewInMemoryExporter()
	r := reconciling(t, cluster, cluster)
	r.Tracer = tracing.NewTracer(sdktrace.NewTracerProvider(sdktrace.WithSyncer(spans)))
	_, err := r.Reconcile(t.Context(), ctrl.Request{NamespacedName: client.ObjectKeyFromObject(policy)})
	expect.NoError(t, err)
	seen := map[string]int{}
	for _, span := range spans.GetSpans() {
		name, _, _ := strings.Cut(span.Name, " ")
		seen[name] = 1
	}
	expect.Equal(t, "spans", map[string]int{"reconcile": 1, "observe": 1, "plan": 1, "apply": 1, "report": 1}, seen)
	root := spans.GetSpans()[len(spans.GetSpans())-1]
	if root.Name != "reconcile" || !slices.Contains(root.Attributes, tracing.Policy.String(policy.Name)) || !slices.Contains(root.Attributes, tracing.CRD.String(crd.Name)) {
		t.Errorf("the trace is of %s %v", root.Name, root.Attributes)
	}
}
