// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package realworld

import (
	"testing"

	"sigs.k8s.io/kueue/apis/kueue/v1beta1"
	"sigs.k8s.io/kueue/apis/kueue/v1beta2"
)

// TestClusterQueue: Kueue's v1beta2.
func TestClusterQueue(t *testing.T) {
	p := project{
		sample:   "kueue-clusterqueues",
		module:   "sigs.k8s.io/kueue",
		crd:      "config/components/crd/bases/kueue.x-k8s.io_clusterqueues.yaml",
		spoke:    version{"v1beta1", func() any { return &v1beta1.ClusterQueue{} }},
		hub:      version{"v1beta2", func() any { return &v1beta2.ClusterQueue{} }},
		toHub:    func(from, to any) error { return from.(*v1beta1.ClusterQueue).ConvertTo(to.(*v1beta2.ClusterQueue)) },
		fromHub:  func(from, to any) error { return to.(*v1beta1.ClusterQueue).ConvertFrom(from.(*v1beta2.ClusterQueue)) },
		examples: map[string][]any{quantity: quantities},
	}
	p.check(t)
}
