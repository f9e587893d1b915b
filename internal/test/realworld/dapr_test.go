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
	p := kind[v1alpha1.Subscription, v2alpha1.Subscription]("dapr-subscriptions", "github.com/dapr/dapr", "charts/dapr/crds/subscription.yaml")
	p.check(t)
}
