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
	p := kind[v1alpha1.InClusterIPPool, v1alpha2.InClusterIPPool]("cluster-api-inclusterippools", "sigs.k8s.io/cluster-api-ipam-provider-in-cluster", "config/crd/bases/ipam.cluster.x-k8s.io_inclusterippools.yaml")
	p.keeps = []string{"cluster.x-k8s.io/conversion-data"}
	p.differences = []difference{
		{"v1alpha2", ".spec.addresses", func(theirs, ours any) bool {
			all, _ := theirs.([]any)
			some, _ := ours.([]any)
			return len(all) == len(some)+1
		}, "theirs computes the first and the last address of a subnet; expressions cannot"},
	}
	p.examples = map[string][]any{".spec.subnet": {"", "10.0.0.0/24", "192.168.4.0/22", "fd00::/64"}}
	p.check(t)
}
