// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package realworld

import (
	"testing"

	"github.com/dapr/dapr/pkg/apis/subscriptions/v1alpha1"
	"github.com/dapr/dapr/pkg/apis/subscriptions/v2alpha1"
)

// TestSubscription: Dapr's v2alpha1. Its functions are those of v2alpha1, whose hub is v1alpha1.
func TestSubscription(t *testing.T) {
	p := project{
		sample: "dapr-subscriptions",
		module: "github.com/dapr/dapr",
		crd:    "charts/dapr/crds/subscription.yaml",
		spoke:  version{"v1alpha1", func() any { return &v1alpha1.Subscription{} }},
		hub:    version{"v2alpha1", func() any { return &v2alpha1.Subscription{} }},
		toHub: func(from, to any) error {
			return to.(*v2alpha1.Subscription).ConvertFrom(from.(*v1alpha1.Subscription))
		},
		fromHub: func(from, to any) error { return from.(*v2alpha1.Subscription).ConvertTo(to.(*v1alpha1.Subscription)) },
	}
	p.check(t)
}
