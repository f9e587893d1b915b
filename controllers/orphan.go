// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"context"
	"fmt"
	"time"

	cmv1 "github.com/cert-manager/cert-manager/pkg/apis/certmanager/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
	"github.com/conversion-operator/conversion-operator/internal/operator/plan"
	"github.com/conversion-operator/conversion-operator/internal/operator/plan/names"
	"github.com/conversion-operator/conversion-operator/internal/operator/plan/observed"
)

// orphan is a policy that may be deleted and may have left objects: every policy that was reconciled,
// and every policy named by a child. It is in memory only; a restart costs a second check and a second
// event.
type orphan struct {
	// released is when the CustomResourceDefinition was first seen not to use the converter.
	released time.Time
	// reported is true after an event said that the converter is still in use.
	reported bool
}

// reconcileOrphan cleans up after a deleted policy. It is called for every
// CustomResourceDefinition without a policy, and returns early for most.
func (r *ConversionPolicyReconciler) reconcileOrphan(ctx context.Context, name string) (ctrl.Result, error) {
	known, is := r.orphans.get(name)
	if !is {
		return ctrl.Result{}, nil
	}
	r.orphans.forget(name) // before the list: a child that the cache gets meanwhile adds it again
	left, err := r.anyChild(ctx, name)
	if err == nil && !left {
		return ctrl.Result{}, nil
	}
	r.orphans.put(name, known)
	if err != nil {
		return ctrl.Result{}, err
	}
	// The cache may lag behind the creation of the policy.
	policy := &v1alpha1.ConversionPolicy{}
	if err := r.Live.Get(ctx, client.ObjectKey{Name: name}, policy); !apierrors.IsNotFound(err) {
		return ctrl.Result{}, err
	}
	state := observed.Cluster{Settings: r.settings(), Now: r.Now(),
		Policy: &v1alpha1.ConversionPolicy{ObjectMeta: metav1.ObjectMeta{Name: name}}}
	for _, read := range []func(context.Context, *observed.Cluster) error{r.observeCRD, r.observeCertificates, r.observePods, r.observeFleets, r.observeRuns, r.observeObjectRights} {
		if err := read(ctx, &state); err != nil {
			return ctrl.Result{}, fmt.Errorf("observe the leftovers of policy %s: %w", name, err)
		}
	}
	decided := r.decideOrphan(ctx, state)
	_, err = r.apply(ctx, state.Policy, decided)
	return resultOf(decided, err)
}

func (r *ConversionPolicyReconciler) decideOrphan(ctx context.Context, state observed.Cluster) plan.Plan {
	name := state.Policy.Name
	known, _ := r.orphans.get(name)
	if known.released.IsZero() {
		known.released = state.Now
	}
	decided, needed := plan.MakeOrphan(state, known.released)
	if needed {
		if !known.reported {
			ctrl.LoggerFrom(ctx).Info("The CustomResourceDefinition converts through a converter whose policy is gone")
			r.emitOrphanEvent(state.CRD)
		}
		known = orphan{reported: true}
	}
	r.orphans.put(name, known)
	return decided
}

// anyChild reports whether the cache has any object of a policy.
func (r *ConversionPolicyReconciler) anyChild(ctx context.Context, policy string) (bool, error) {
	for _, kind := range r.childKinds() {
		if _, certificates := kind.list.(*cmv1.CertificateList); certificates {
			continue // not cached, and never the only child
		}
		if err := r.Client.List(ctx, kind.list, instanceOf(names.Child(policy)), kind.from); err != nil {
			return false, err
		}
		if meta.LenList(kind.list) > 0 {
			return true, nil
		}
	}
	shards, err := r.allShards(ctx)
	return len(fleetsStoring(shards, policy)) > 0, err
}
