// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package testenv

import (
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"

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
