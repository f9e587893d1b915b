// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package draft

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/conversion-operator/conversion-operator/internal/test/expect"
)

// TestKept: a policy keeps its rules, and gets no other for their fields.
func TestKept(t *testing.T) {
	for name, test := range map[string]struct {
		v1, v2     string
		kept, want []string
	}{
		"a field": {
			`image: {type: string}, replicaCount: {type: integer}`, `images: {type: string}, pictures: {type: string}, replicas: {type: integer}`,
			[]string{`move: {from: .spec.image, to: .spec.pictures}`}, []string{`move: {from: .spec.replicaCount, to: .spec.replicas}`},
		},
		// The field of the hub with the same path is free, and gets its own rule.
		"a field with the same path": {
			`image: {type: string}, imageName: {type: string}`, `image: {type: string}, picture: {type: string}`,
			[]string{`move: {from: .spec.image, to: .spec.picture}`}, []string{`move: {from: .spec.imageName, to: .spec.image}`},
		},
		"a dropped field": {
			`image: {type: string}`, `images: {type: string}`,
			[]string{`drop: {from: .spec.image}`}, []string{},
		},
		// Fields in an object that only has another name correspond by their own names.
		"an object with another name": {
			`pod: {type: object, properties: {image: {type: string}, pullSecret: {type: string}}}`,
			`template: {type: object, properties: {image: {type: string}, pullSecrets: {type: string}, x: {type: string}}}`,
			[]string{`move: {from: .spec.pod, to: .spec.template}`}, []string{`move: {from: .spec.pod.pullSecret, to: .spec.template.pullSecrets}`},
		},
		// The object around a field with a rule does not move as a whole.
		"a field in an object": {
			`pod: {type: object, properties: {image: {type: string}}}`, `pods: {type: object, properties: {image: {type: string}}}`,
			[]string{`move: {from: .spec.pod.image, to: .spec.pods.image}`}, []string{},
		},
		"a label": {
			`image: {type: string}, replicaCount: {type: integer}`, `replicas: {type: integer}`,
			[]string{`move: {from: .spec.image, to: '.metadata.labels["image"]'}`}, []string{`move: {from: .spec.replicaCount, to: .spec.replicas}`},
		},
	} {
		t.Run(name, func(t *testing.T) {
			kept := rulesOf(t, test.kept...).Spokes[0].Rules
			made := make2(t, Input{CRD: widgets(t, test.v1, test.v2), Rules: kept})
			expect.Equal(t, "drafted rules", test.want, textsOf(made))
			all := made.Policy.Spec.Converter.Declarative.Spokes[0].Rules
			if len(all) != len(kept)+len(made.Rules) || cmp.Diff(kept, all[:len(kept)]) != "" {
				t.Errorf("the policy does not begin with its own rules: %v", all)
			}
		})
	}
	input := Input{CRD: widgets(t, `a: {type: string}`, `b: {type: string}`), Spoke: "v1", Hub: "v2", Pairs: []Pair{{}}, Rules: rulesOf(t, `drop: {from: .spec.a}`).Spokes[0].Rules}
	_, err := Make(input)
	expect.Equal(t, "rules of a policy are completed from pairs", false, err == nil)
}
