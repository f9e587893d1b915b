// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package realworld

import (
	"testing"

	"sigs.k8s.io/cluster-api-ipam-provider-in-cluster/api/v1alpha1"
	"sigs.k8s.io/cluster-api-ipam-provider-in-cluster/api/v1alpha2"
)

// TestInClusterIPPool: v1alpha2 of the Cluster API IPAM provider in-cluster.
func TestInClusterIPPool(t *testing.T) {
	p := project{
		sample: "cluster-api-inclusterippools",
		module: "sigs.k8s.io/cluster-api-ipam-provider-in-cluster",
		crd:    "config/crd/bases/ipam.cluster.x-k8s.io_inclusterippools.yaml",
		spoke:  version{"v1alpha1", func() any { return &v1alpha1.InClusterIPPool{} }},
		hub:    version{"v1alpha2", func() any { return &v1alpha2.InClusterIPPool{} }},
		toHub: func(from, to any) error {
			return from.(*v1alpha1.InClusterIPPool).ConvertTo(to.(*v1alpha2.InClusterIPPool))
		},
		fromHub: func(from, to any) error {
			return to.(*v1alpha1.InClusterIPPool).ConvertFrom(from.(*v1alpha2.InClusterIPPool))
		},
		keeps: []string{"cluster.x-k8s.io/conversion-data"},
		differences: []difference{
			{"v1alpha2", ".spec.addresses", func(theirs, ours any) bool {
				all, _ := theirs.([]any)
				some, _ := ours.([]any)
				return len(all) == len(some)+1
			}, "theirs computes the first and the last address of a subnet; expressions cannot"},
		},
		examples: map[string][]any{".spec.subnet": {"", "10.0.0.0/24", "192.168.4.0/22", "fd00::/64"}},
	}
	p.check(t)
}
