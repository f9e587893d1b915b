// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cmd

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
)

// findPolicies reads the policies with these names, or all of them, sorted by name.
// A missing policy is an error.
func findPolicies(ctx context.Context, api client.Client, names []string) ([]*v1alpha1.ConversionPolicy, error) {
	list := &v1alpha1.ConversionPolicyList{}
	if err := api.List(ctx, list, selectNames(names)...); err != nil {
		return nil, policyReadError(err)
	}
	var found []*v1alpha1.ConversionPolicy
	for i := range list.Items {
		if len(names) == 0 || slices.Contains(names, list.Items[i].Name) {
			found = append(found, &list.Items[i])
		}
	}
	slices.SortFunc(found, byName)
	for _, name := range names {
		if !slices.ContainsFunc(found, func(policy *v1alpha1.ConversionPolicy) bool { return policy.Name == name }) {
			return nil, noPolicy(name)
		}
	}
	return found, nil
}

func byName(a, b *v1alpha1.ConversionPolicy) int { return cmp.Compare(a.Name, b.Name) }

// selectNames reads a single policy by name: the user may have no right to list others.
func selectNames(names []string) []client.ListOption {
	if len(names) != 1 {
		return nil
	}
	return []client.ListOption{client.MatchingFields{"metadata.name": names[0]}}
}

// getPolicy reads a policy.
func getPolicy(ctx context.Context, api client.Client, name string) (*v1alpha1.ConversionPolicy, error) {
	policy := &v1alpha1.ConversionPolicy{}
	err := api.Get(ctx, client.ObjectKey{Name: name}, policy)
	if apierrors.IsNotFound(err) {
		return nil, noPolicy(name)
	}
	return policy, policyReadError(err)
}

func noPolicy(name string) error { return fmt.Errorf("the cluster has no ConversionPolicy %s", name) }

// policyReadError adds what to do to an error about policies.
func policyReadError(err error) error {
	switch {
	case err == nil:
		return nil
	case meta.IsNoMatchError(err):
		return errors.New("the cluster does not know ConversionPolicies: install the operator, or choose another cluster with --context")
	}
	return fmt.Errorf("read ConversionPolicies: %w", err)
}
