// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package testenv

import (
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
	"github.com/conversion-operator/conversion-operator/internal/test/expect"
)

// ChangeCRD changes the latest CustomResourceDefinition, and returns it. The operator, and controllers of the
// API server, may write it at any time.
func ChangeCRD(tb testing.TB, cluster client.Client, name string, change func(*apiextensionsv1.CustomResourceDefinition)) *apiextensionsv1.CustomResourceDefinition {
	tb.Helper()
	crd := &apiextensionsv1.CustomResourceDefinition{}
	expect.NoError(tb, retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		crd = &apiextensionsv1.CustomResourceDefinition{}
		if err := cluster.Get(tb.Context(), client.ObjectKey{Name: name}, crd); err != nil {
			return err
		}
		change(crd)
		return cluster.Update(tb.Context(), crd)
	}))
	return crd
}

// RecordStatuses records every status of a policy from now on, also those that last for a moment. The
// function that it returns ends that, and returns them.
func RecordStatuses(tb testing.TB, cluster client.WithWatch, policy string) (end func() []v1alpha1.ConversionPolicyStatus) {
	tb.Helper()
	changes, err := cluster.Watch(tb.Context(), &v1alpha1.ConversionPolicyList{}, client.MatchingFields{"metadata.name": policy})
	expect.NoError(tb, err)
	tb.Cleanup(changes.Stop)
	var recorded []v1alpha1.ConversionPolicyStatus
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for change := range changes.ResultChan() {
			if policy, is := change.Object.(*v1alpha1.ConversionPolicy); is {
				recorded = append(recorded, policy.Status)
			}
		}
	}()
	return func() []v1alpha1.ConversionPolicyStatus {
		changes.Stop()
		<-ended
		return recorded
	}
}
