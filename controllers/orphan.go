// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"context"
	"fmt"
	"sync"
	"time"

	cmv1 "github.com/cert-manager/cert-manager/pkg/apis/certmanager/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
	"github.com/conversion-operator/conversion-operator/internal/plan"
	"github.com/conversion-operator/conversion-operator/internal/plan/observed"
)

// orphans are the policies that may be gone and have left something behind: those
// that there were, and those that something was seen of. It is forgotten with the
// manager, which costs a second check and a second event.
type orphans struct {
	mu    sync.Mutex
	known map[string]orphan
}

type orphan struct {
	// released is when its CustomResourceDefinition was first seen to do without it.
	released time.Time
	// announced tells that an event has said of it that it is needed.
	announced bool
}

func (o *orphans) get(policy string) (orphan, bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	is, known := o.known[policy]
	return is, known
}

// see keeps in mind that something is left of a policy.
func (o *orphans) see(policy string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.known == nil {
		o.known = map[string]orphan{}
	}
	if _, seen := o.known[policy]; !seen {
		o.known[policy] = orphan{}
	}
}

func (o *orphans) put(policy string, is orphan) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.known == nil {
		o.known = map[string]orphan{}
	}
	o.known[policy] = is
}

func (o *orphans) forget(policy string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	delete(o.known, policy)
}

// tendOrphan looks after the leftovers of a policy that is gone. It is asked about
// every CustomResourceDefinition of the cluster, and ends early for most.
func (r *ConversionPolicyReconciler) tendOrphan(ctx context.Context, name string) (ctrl.Result, error) {
	if _, known := r.orphans.get(name); !known {
		return ctrl.Result{}, nil
	}
	left, err := r.anyChild(ctx, name)
	if err != nil || !left {
		r.orphans.forget(name)
		return ctrl.Result{}, err
	}
	// The cache may not know yet of a policy that was just created.
	policy := &v1alpha1.ConversionPolicy{}
	if err := r.Live.Get(ctx, client.ObjectKey{Name: name}, policy); !apierrors.IsNotFound(err) {
		return ctrl.Result{}, err
	}
	state := observed.Cluster{Settings: r.Settings, Now: r.Now(),
		Policy: &v1alpha1.ConversionPolicy{ObjectMeta: metav1.ObjectMeta{Name: name}}}
	for _, read := range []func(context.Context, *observed.Cluster) error{r.observeCRD, r.observeCertificates, r.observePods, r.observeRuns, r.observeObjectRights} {
		if err := read(ctx, &state); err != nil {
			return ctrl.Result{}, fmt.Errorf("observe the leftovers of policy %s: %w", name, err)
		}
	}
	decided := r.decideOrphan(ctx, state)
	_, err = r.apply(ctx, state.Policy, decided)
	return afterWrites(decided, err)
}

func (r *ConversionPolicyReconciler) decideOrphan(ctx context.Context, state observed.Cluster) plan.Plan {
	name := state.Policy.Name
	known, _ := r.orphans.get(name)
	if known.released.IsZero() {
		known.released = state.Now
	}
	decided, needed := plan.MakeOrphan(state, known.released)
	if needed {
		if !known.announced {
			ctrl.LoggerFrom(ctx).Info("The CustomResourceDefinition converts through a converter whose policy is gone")
			r.announceOrphan(state.CRD)
		}
		known = orphan{announced: true}
	}
	r.orphans.put(name, known)
	return decided
}

// anyChild reports whether the cache has anything that was made for a policy.
func (r *ConversionPolicyReconciler) anyChild(ctx context.Context, policy string) (bool, error) {
	for _, kind := range r.childKinds() {
		if _, certificates := kind.list.(*cmv1.CertificateList); certificates {
			continue // those of cert-manager are not in the cache, and never alone
		}
		if err := r.Client.List(ctx, kind.list, childrenNamed(policy), kind.from); err != nil {
			return false, err
		}
		if meta.LenList(kind.list) > 0 {
			return true, nil
		}
	}
	return false, nil
}
