//go:build integration

// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/conversion-operator/conversion-operator/internal/test/expect"
)

var nullKind = twoVersions{
	v1: `both: {type: string, nullable: true}, moved: {type: object, nullable: true}, own: {type: string, nullable: true},
  strict: {type: string}, here: {type: string, nullable: true}`,
	v2: `both: {type: string, nullable: true}, elsewhere: {type: object, nullable: true},
  strict: {type: string, nullable: true}, here: {type: string}`,
	rules: nullRules,
}

const nullRules = "{hub: v2, spokes: [{version: v1, rules: [{move: {from: .spec.moved, to: .spec.elsewhere}}]}]}"

// testNullable has nulls: they are values if both schemas allow them, and preserved if only one
// does, as the API server would remove them from a response.
func testNullable(t *testing.T, s *apiServer) {
	k := s.installTwo(t, "nulls", nullKind)
	k.create(t, "v1", "old", "spec: {both: null, moved: null, own: null}")
	wantFields(t, "old at v2", k.get(t, "v2", "old"), "spec: {both: null, elsewhere: null}")
	expect.NoError(t, k.replace(t, "v2", "old", "spec: {both: x, elsewhere: null}"))
	wantFields(t, "old at v1", k.get(t, "v1", "old"), "spec: {both: x, moved: null, own: null}")

	k.create(t, "v2", "new", "spec: {both: null, strict: null, here: x}")
	wantFields(t, "new at v1", k.get(t, "v1", "new"), "spec: {both: null, here: x}")
	wantFields(t, "new at v2", k.get(t, "v2", "new"), "spec: {both: null, strict: null, here: x}")
}

var validatedKind = twoVersions{
	v1: "low: {type: integer}, high: {type: integer}, class: {type: string}, mode: {type: string}",
	v2: `range: {type: object, properties: {min: {type: integer}, max: {type: integer}},
    x-kubernetes-validations: [{rule: "!has(self.min) || !has(self.max) || self.min <= self.max", message: "min must not be above max"}]},
  class: {type: string, x-kubernetes-validations: [{rule: self == oldSelf, message: "class cannot change"}]},
  mode: {type: string, enum: [Open, Shut]}, note: {type: string}`,
	rules: validatedRules,
}

const validatedRules = `
hub: v2
spokes:
- version: v1
  rules:
  - move: {from: .spec.low, to: .spec.range.min}
  - move: {from: .spec.high, to: .spec.range.max}
`

// testValidation has a new version with stricter validation. Objects of the old one are read there
// unchanged, and invalid values may stay when other fields change. New invalid values are rejected.
func testValidation(t *testing.T, s *apiServer) {
	k := s.installTwo(t, "validation", validatedKind)
	k.create(t, "v1", "wrong", "spec: {low: 9, high: 1, class: a, mode: Maybe}")
	wantFields(t, "wrong at v2", k.get(t, "v2", "wrong"), "spec: {range: {min: 9, max: 1}, class: a, mode: Maybe}")

	k.mergePatch(t, "v2", "wrong", "spec: {note: x}")
	wantFields(t, "wrong at v1 after a write at v2", k.get(t, "v1", "wrong"), "spec: {low: 9, high: 1, class: a, mode: Maybe}")
	k.wantRefused(t, "v2", "wrong", `{"spec": {"range": {"min": 8}}}`, "spec.range", "min must not be above max")
	k.wantRefused(t, "v2", "wrong", `{"spec": {"mode": "Perhaps"}}`, "spec.mode", "supported values", "Open")
	k.wantRefused(t, "v2", "wrong", `{"spec": {"class": "b"}}`, "spec.class", "class cannot change")
	k.mergePatch(t, "v1", "wrong", "spec: {class: b, low: 8}")
	wantFields(t, "wrong at v2 after a write at v1", k.get(t, "v2", "wrong"), "spec: {range: {min: 8, max: 1}, class: b, mode: Maybe, note: x}")
	k.mergePatch(t, "v2", "wrong", "spec: {range: {min: 0}, mode: Open}")

	_, err := k.at("v2").Create(t.Context(), k.gadget(t, "v2", "new", "spec: {range: {min: 2, max: 1}}"), metav1.CreateOptions{})
	if !apierrors.IsInvalid(err) {
		t.Errorf("creating what is wrong at v2: %v", err)
	}
}

// wantRefused expects that a JSON merge patch is rejected as invalid, with words in the message.
func (k *kind) wantRefused(t *testing.T, version, name, patch string, words ...string) {
	t.Helper()
	_, err := k.at(version).Patch(t.Context(), name, types.MergePatchType, []byte(patch), metav1.PatchOptions{})
	if !apierrors.IsInvalid(err) {
		t.Errorf("%s at %s: %v, want it to be invalid", patch, version, err)
		return
	}
	for _, word := range words {
		if !strings.Contains(err.Error(), word) {
			t.Errorf("%s at %s: %v: no word of %q", patch, version, err, word)
		}
	}
}
