// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package plan_test

import (
	"testing"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
	"github.com/conversion-operator/conversion-operator/internal/plan/observed"
)

// TestTroublesOfPods: what keeps pods away is told with what to do about it, also
// where one pod is enough for now.
func TestTroublesOfPods(t *testing.T) {
	const noPorts = "it cannot be scheduled: 0/1 nodes are available: 1 node(s) didn't have free ports for the requested pod ports"
	cases := map[string]struct {
		change  func(*observed.Cluster)
		message string
	}{
		"no free ports": {func(o *observed.Cluster) {
			o.Pods[1].Trouble = observed.PodTrouble{Cause: observed.PodWithoutPort, Message: noPorts}
		},
			"1 of 2 converter pods are ready: conversions work with reduced redundancy; pod converter-1: " + noPorts + ": with spec.workload.hostNetwork, each pod needs its port on a node of its own"},
		"the port is in use": {func(o *observed.Cluster) {
			o.Pods[1].Trouble = observed.PodTrouble{Cause: observed.PodExits, Message: "container converter exits on start, see its log"}
		},
			"see its log: with spec.workload.hostNetwork, another process may listen at its port"},
		"not admitted": {func(o *observed.Cluster) {
			o.PodFailure = observed.PodTrouble{Cause: observed.PodForbidden, Message: `violates PodSecurity "restricted:latest": host namespaces`}
		},
			"kubectl label namespace conversion-system --overwrite pod-security.kubernetes.io/enforce=privileged"},
		"another cause": {func(o *observed.Cluster) { o.PodFailure.Message = "exceeded quota" }, "conversions work with reduced redundancy; the Deployment cannot create pods: exceeded quota"},
	}
	t.Run("pods of another shape are not admitted", func(t *testing.T) {
		w := active(t)
		w.observed.PodFailure.Message = "exceeded quota"
		expectCondition(t, w.plan().Status, v1alpha1.WebhookAvailableCondition, "True", v1alpha1.ReasonAllPodsReady,
			"2 of 2 converter pods are ready; the Deployment cannot create pods: exceeded quota")
	})
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			w := active(t)
			w.lies = true
			w.observed.Policy.Spec.Workload.HostNetwork = true
			w.observed.Pods[1].Ready = false
			c.change(&w.observed)
			expectCondition(t, w.plan().Status, v1alpha1.WebhookAvailableCondition, "True", v1alpha1.ReasonSomePodsReady, c.message)
		})
	}
}
