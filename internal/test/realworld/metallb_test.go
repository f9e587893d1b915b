// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package realworld

import (
	"testing"

	"go.universe.tf/metallb/api/v1beta1"
	"go.universe.tf/metallb/api/v1beta2"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
)

// TestBGPPeer: MetalLB's v1beta2.
func TestBGPPeer(t *testing.T) {
	times := []any{"90s", "1m30s", "0s"}
	const zero = "their v1beta1 cannot tell a time of 0s from a missing one, and writes it; ours writes nothing"
	added := func(theirs, ours any) bool { return theirs == "0s" && ours == absent }
	p := kind[v1beta1.BGPPeer, v1beta2.BGPPeer]("metallb-bgppeers", "go.universe.tf/metallb", "config/crd/bases/metallb.io_bgppeers.yaml")
	p.differences = []difference{
		{"v1beta2", ".spec.holdTime", added, zero},
		{"v1beta2", ".spec.keepaliveTime", added, zero},
		{"v1beta1", ".spec.nodeSelectors[*].matchExpressions[*].values", func(theirs, ours any) bool { return show(theirs) == "[]" && ours == nil },
			"theirs writes an empty list of values where there is none; ours writes nothing"},
	}
	p.examples = map[string][]any{".spec.holdTime": times, ".spec.keepaliveTime": times, ".spec.connectTime": times}
	// The validation refuses every number of a field whose maximum is beyond its format.
	p.adapt = func(crd *apiextensionsv1.CustomResourceDefinition) {
		for _, version := range crd.Spec.Versions {
			fields := version.Schema.OpenAPIV3Schema.Properties["spec"].Properties
			for _, name := range []string{"myASN", "peerASN"} {
				number := fields[name]
				number.Format = "int64"
				fields[name] = number
			}
		}
	}
	p.check(t)
}
