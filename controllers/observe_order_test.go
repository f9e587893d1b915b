// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"context"
	"errors"
	"math/rand/v2"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
	"github.com/conversion-operator/conversion-operator/internal/operator/plan/names"
	"github.com/conversion-operator/conversion-operator/internal/operator/plan/observed"
	"github.com/conversion-operator/conversion-operator/internal/test/expect"
)

// lists returns lists in another order each time, as caches do.
type lists struct {
	client.Client
	random      *rand.Rand
	deployments []runtime.Object
	pods        []runtime.Object
}

func (l lists) List(_ context.Context, list client.ObjectList, _ ...client.ListOption) error {
	var items []runtime.Object
	switch list.(type) {
	case *appsv1.DeploymentList:
		items = l.deployments
	case *corev1.PodList:
		items = l.pods
	}
	l.random.Shuffle(len(items), func(i, j int) { items[i], items[j] = items[j], items[i] })
	return meta.SetList(list, items)
}

// TestObserveIsIndependentOfOrder of the lists that a cache returns. The planner sorts lists; this
// test covers the fields that combine several objects.
func TestObserveIsIndependentOfOrder(t *testing.T) {
	failing := func(name, port, says string) *appsv1.Deployment {
		deployment := from[appsv1.Deployment](t, `{metadata: {name: `+name+`, labels: {`+names.RevisionLabel+`: `+name+`}, annotations: {`+names.EndpointAnnotation+`: '{"port": `+port+`}'}},
  status: {conditions: [{type: ReplicaFailure, status: "True", message: `+says+`}]}}`)
		return &deployment
	}
	pending := func(name, run, image string) *corev1.Pod {
		pod := from[corev1.Pod](t, `{metadata: {name: `+name+`, labels: {`+names.RunLabel+`: `+run+`}},
  status: {phase: Pending, containerStatuses: [{name: main, image: `+image+`, state: {waiting: {reason: ErrImagePull}}}]}}`)
		return &pod
	}
	l := lists{
		random:      rand.New(rand.NewPCG(0, 1)), //nolint:gosec // orders, and no secrets
		deployments: []runtime.Object{failing("a", "8001", "quota"), failing("b", "8002", "webhook"), failing("c", "8003", "limit")},
		pods:        []runtime.Object{pending("a", "run", "one"), pending("b", "run", "two"), pending("c", "run", "three")},
	}
	r := &ConversionPolicyReconciler{Client: l, Live: l}
	look := func() observed.Cluster {
		state := observed.Cluster{Policy: &v1alpha1.ConversionPolicy{}}
		runs := map[string]*observed.Run{"run": {ID: "run"}}
		expect.NoError(t, errors.Join(r.observeImages(t.Context(), &state), r.observePods(t.Context(), &state), r.addTrouble(t.Context(), runs)))
		state.Runs = []observed.Run{*runs["run"]}
		return state
	}
	want := look()
	if want.PodFailure.Message != "quota" || want.Runs[0].Trouble.Message != "the image one cannot be pulled" || len(want.Pods) != 3 || len(want.Revisions) != 3 {
		t.Errorf("observed %+v", want)
	}
	inOrder := cmp.Options{
		cmpopts.SortSlices(func(a, b observed.Pod) bool { return a.Name < b.Name }),
		cmpopts.SortSlices(func(a, b observed.StoredRevision) bool { return a.Hash < b.Hash }),
	}
	for range 20 {
		expect.Equal(t, "observed in any order", want, look(), inOrder)
	}
}
