// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package realworld

import (
	"testing"

	"sigs.k8s.io/cluster-api/api/core/v1beta1"
	"sigs.k8s.io/cluster-api/api/core/v1beta2"
)

// TestMachineHealthCheck is Cluster API's step to seconds as integers.
func TestMachineHealthCheck(t *testing.T) {
	p := project{
		sample: "cluster-api-machinehealthchecks",
		module: "sigs.k8s.io/cluster-api",
		crd:    "config/crd/bases/cluster.x-k8s.io_machinehealthchecks.yaml",
		spoke:  version{"v1beta1", func() any { return &v1beta1.MachineHealthCheck{} }},
		hub:    version{"v1beta2", func() any { return &v1beta2.MachineHealthCheck{} }},
		toHub: func(from, to any) error {
			return from.(*v1beta1.MachineHealthCheck).ConvertTo(to.(*v1beta2.MachineHealthCheck))
		},
		fromHub: func(from, to any) error {
			return to.(*v1beta1.MachineHealthCheck).ConvertFrom(from.(*v1beta2.MachineHealthCheck))
		},
		keeps: []string{"cluster.x-k8s.io/conversion-data"},
		examples: map[string][]any{
			".spec.nodeStartupTimeout":             {"10m0s", "0s", "1h0m0s", "90s", "1.5s", "600s", "1m30s", "-5s"},
			".spec.unhealthyConditions[*].timeout": {"5m0s", "300s", "0s", "45s"},
		},
	}
	p.check(t)
}
