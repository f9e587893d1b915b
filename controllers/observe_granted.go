// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/conversion-operator/conversion-operator/internal/operator/plan/observed"
	"github.com/conversion-operator/conversion-operator/internal/operator/plan/rights"
)

// Authorizer reports who may do what.
type Authorizer interface {
	// MayGrant reports whether the manager may create cluster roles with rights that it does not
	// have itself.
	MayGrant(ctx context.Context) (bool, error)
	// May reports whether a ServiceAccount has the rights of a grant.
	May(ctx context.Context, namespace string, grant rights.Grant) (bool, error)
}

// observeGranted reads which rights an administrator granted, if the manager may not grant them
// itself.
func (r *ConversionPolicyReconciler) observeGranted(ctx context.Context, state *observed.Cluster) error {
	if r.Authorizer == nil || state.CRD == nil {
		return nil
	}
	if may, err := r.Authorizer.MayGrant(ctx); may || err != nil {
		return err
	}
	state.Granted = &observed.Granted{}
	for _, ask := range []struct {
		grant   rights.Grant
		granted *bool
	}{{rights.ToMigrate(*state), &state.Granted.Migrate}, {rights.ToRead(*state), &state.Granted.Read}, {rights.ToClear(*state), &state.Granted.Clear}} {
		may, err := r.Authorizer.May(ctx, r.Settings.Namespace, ask.grant)
		if err != nil {
			return err
		}
		*ask.granted = may
	}
	return nil
}

// rightsAge is how long the answer about the manager's own rights is cached. They change with its
// installation.
const rightsAge = time.Minute

// reviewer is an Authorizer that creates access reviews.
type reviewer struct {
	client client.Writer
	now    func() time.Time

	mu    sync.Mutex
	asked time.Time
	may   bool
}

// NewAuthorizer returns an Authorizer that asks the API server of the client.
func NewAuthorizer(writer client.Writer, now func() time.Time) Authorizer {
	return &reviewer{client: writer, now: now}
}

func (r *reviewer) MayGrant(ctx context.Context) (bool, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.asked.IsZero() && r.now().Sub(r.asked) < rightsAge {
		return r.may, nil
	}
	r.may = true
	for _, verb := range []string{"create", "escalate", "bind"} {
		review := &authorizationv1.SelfSubjectAccessReview{Spec: authorizationv1.SelfSubjectAccessReviewSpec{
			ResourceAttributes: &authorizationv1.ResourceAttributes{Verb: verb, Group: rbacv1.GroupName, Resource: "clusterroles"}}}
		if err := r.client.Create(ctx, review); err != nil {
			return false, fmt.Errorf("asking what the manager may grant: %w", err)
		}
		r.may = r.may && review.Status.Allowed
	}
	r.asked = r.now()
	return r.may, nil
}

func (r *reviewer) May(ctx context.Context, namespace string, grant rights.Grant) (bool, error) {
	account := "system:serviceaccount:" + namespace + ":" + grant.Account
	for _, resource := range grant.Resources {
		plural, subresource, _ := strings.Cut(resource, "/")
		for _, verb := range grant.Verbs {
			review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
				User:   account,
				Groups: []string{"system:serviceaccounts", "system:serviceaccounts:" + namespace, "system:authenticated"},
				ResourceAttributes: &authorizationv1.ResourceAttributes{
					Verb: verb, Group: grant.Group, Resource: plural, Subresource: subresource},
			}}
			if err := r.client.Create(ctx, review); err != nil {
				return false, fmt.Errorf("asking whether %s may %s %s: %w", account, verb, resource, err)
			}
			if !review.Status.Allowed {
				return false, nil
			}
		}
	}
	return true, nil
}
