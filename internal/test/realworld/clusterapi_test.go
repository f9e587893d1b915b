// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package realworld

import (
	"testing"

	"sigs.k8s.io/cluster-api/api/core/v1beta1"
	"sigs.k8s.io/cluster-api/api/core/v1beta2"
)

// TestMachineHealthCheck: Cluster API changed durations to seconds as integers.
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
		keeps:       []string{"cluster.x-k8s.io/conversion-data"},
		differences: differencesOfMachineHealthCheck(),
		examples: map[string][]any{
			".spec.nodeStartupTimeout":             {"10m0s", "0s", "1h0m0s", "90s", "1.5s", "600s", "1m30s", "-5s"},
			".spec.unhealthyConditions[*].timeout": {"5m0s", "300s", "0s", "45s", "1.5s", "1h0m1s"},
		},
	}
	p.check(t)
}

func differencesOfMachineHealthCheck() []difference {
	const (
		namespace = "theirs writes the object's own namespace into the reference; v1beta2 has no namespace there, and no rule reads metadata.namespace"
		fraction  = "theirs cuts 1.5s down to one second; ours has no value for it, and keeps the text"
		empty     = "v1beta2 allows no empty list of conditions, and theirs makes it nothing; ours copies it"
		zero      = "their v1beta1 cannot tell a counter of zero from a missing one, and drops both; ours copies the zero"
	)
	gaveNamespace := func(theirs, ours any) bool { return theirs == "some-namespace" && ours == absent }
	cut := func(theirs, ours any) bool { return show(theirs) == "1" && ours == absent }
	droppedZero := func(theirs, ours any) bool { return theirs == absent && show(ours) == "0" }
	return []difference{
		{"v1beta1", ".spec.remediationTemplate.namespace", gaveNamespace, namespace},
		{"v1beta2", ".spec.checks.nodeStartupTimeoutSeconds", cut, fraction},
		{"v1beta2", ".spec.checks", func(theirs, ours any) bool {
			return show(theirs) == `{"nodeStartupTimeoutSeconds":1}` && ours == absent
		}, fraction},
		{"v1beta2", ".spec.checks", func(theirs, ours any) bool { return theirs == absent && show(ours) == "{}" }, empty},
		{"v1beta2", ".status.currentHealthy", droppedZero, zero},
		{"v1beta2", ".status.expectedMachines", droppedZero, zero},
		{"v1beta2", ".status.remediationsAllowed", droppedZero, zero},
		{"v1beta2", ".status", func(theirs, ours any) bool { return theirs == absent && onlyZeros(ours) }, zero},
	}
}

// onlyZeros reports whether an object has only zero values.
func onlyZeros(object any) bool {
	for _, value := range asMap(object) {
		if show(value) != "0" {
			return false
		}
	}
	return asMap(object) != nil
}
