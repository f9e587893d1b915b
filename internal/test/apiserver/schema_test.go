//go:build integration

// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/conversion-operator/conversion-operator/internal/test/expect"
)

// testPruning writes fields that are in no schema, through the API server and into etcd. They are
// pruned at every version, and preserved data is not.
func testPruning(t *testing.T, s *apiServer) {
	k := s.installGadgets(t, "pruning")
	for _, written := range versions {
		name := "from-" + written
		garbage := "garbage: 1, ports: [{name: http, garbage: 2}]}, garbage: 3"
		object := k.gadget(t, written, name, "{spec: {"+own[written]+", "+garbage+"}")
		created, err := k.at(written).Create(t.Context(), object, metav1.CreateOptions{FieldValidation: "Ignore"})
		expect.NoError(t, err)
		pruned := "spec: {" + own[written] + ", ports: [{name: http}]}"
		wantFields(t, name+" as created", created, pruned)

		stored := k.stored(t, name)
		stored.Object["garbage"] = "in etcd"
		stored.Object["spec"].(map[string]any)["garbage"] = "in etcd"
		k.setStored(t, stored)
		for _, read := range versions {
			want := "spec: {ports: [{name: http}]}"
			if read == written {
				want = pruned
			}
			wantFields(t, name+" at "+read, k.get(t, read, name), want)
		}
		for _, other := range versions {
			k.mergePatch(t, other, name, "spec: {limit: 5}")
			expect.Equal(t, name+" in etcd", nil, k.stored(t, name).Object["garbage"])
		}
		wantFields(t, name+" in the end", k.get(t, written, name), "spec: {"+own[written]+", limit: 5, ports: [{name: http}]}")
	}
}

var defaultKind = twoVersions{
	v1:    "both: {type: string, default: both1}, only1: {type: string, default: one}",
	v2:    "both: {type: string, default: both2}, only2: {type: string, default: two}, mode: {type: string}",
	rules: defaultRules,
}

const defaultRules = "{hub: v2, spokes: [{version: v1, rules: [{default: {to: .spec.mode, value: Standard}}]}]}"

// testDefaults has defaults in both schemas and in a rule. The API server sets those of the
// request's version and, when it reads, those of the stored version. The rule sets its default only
// at the version that has the field.
func testDefaults(t *testing.T, s *apiServer) {
	k := s.installTwo(t, "defaults", defaultKind)
	wantFields(t, "first as created", k.create(t, "v1", "first", "spec: {}"), "spec: {both: both1, only1: one}")
	wantFields(t, "first at v2", k.get(t, "v2", "first"), "spec: {both: both1, mode: Standard}")

	wantFields(t, "second as created", k.create(t, "v2", "second", "spec: {}"), "spec: {both: both2, only2: two}")
	wantFields(t, "second in etcd", k.stored(t, "second"), "spec: {both: both2}")
	wantFields(t, "second at v1", k.get(t, "v1", "second"), "spec: {both: both2, only1: one}")

	k.create(t, "v2", "third", "spec: {mode: Odd, only2: null, both: b}")
	wantFields(t, "third at v1", k.get(t, "v1", "third"), "spec: {both: b, only1: one}")
	k.mergePatch(t, "v1", "third", "spec: {both: c}")
	wantFields(t, "third at v2", k.get(t, "v2", "third"), "spec: {mode: Odd, only2: two, both: c}")

	k.store(t, "v2")
	wantFields(t, "first at v2, with the defaults of the stored v1", k.get(t, "v2", "first"), "spec: {both: both1, mode: Standard}")
	k.mergePatch(t, "v2", "first", "spec: {mode: null}")
	wantFields(t, "first at v2 without a mode", k.get(t, "v2", "first"), "spec: {both: both1, only2: two}")
	wantFields(t, "first at v1", k.get(t, "v1", "first"), "spec: {both: both1, only1: one}")
	k.mergePatch(t, "v1", "first", "spec: {both: d}")
	wantFields(t, "first at v2 without a mode, after a write at v1", k.get(t, "v2", "first"), "spec: {both: d, only2: two}")
}

var derivedKind = twoVersions{
	v1: "size: {type: integer}, large: {type: boolean}",
	v2: "amount: {type: integer}, note: {type: string}",
	rules: `{hub: v2, spokes: [{version: v1, rules: [
		{move: {from: .spec.size, to: .spec.amount}},
		{cel: {from: {large: .spec.large}, to: {amount: .spec.amount}, backward: {large: self.amount > 10}}}]}]}`,
}

// testDerived has a field that a rule derives from the field of another rule. It follows that field after every write, and at
// whichever version objects are stored. What clients write to it is dropped.
func testDerived(t *testing.T, s *apiServer) {
	k := s.installTwo(t, "derived", derivedKind)
	k.create(t, "v1", "one", "spec: {size: 1, large: true}")
	wantFields(t, "one, stored as it was written", k.get(t, "v1", "one"), "spec: {size: 1, large: true}")
	wantFields(t, "one at v2", k.get(t, "v2", "one"), "spec: {amount: 1}")
	k.mergePatch(t, "v2", "one", "spec: {note: a}")
	wantFields(t, "one, written at v2", k.get(t, "v1", "one"), "spec: {size: 1, large: false}")

	k.store(t, "v2")
	k.mergePatch(t, "v1", "one", "spec: {size: 20}")
	wantFields(t, "one, stored at v2", k.get(t, "v1", "one"), "spec: {size: 20, large: true}")
	k.mergePatch(t, "v1", "one", "spec: {large: false}")
	wantFields(t, "one, where it was written", k.get(t, "v1", "one"), "spec: {size: 20, large: true}")
	wantFields(t, "one at v2 in the end", k.get(t, "v2", "one"), "spec: {amount: 20, note: a}")

	_, err := k.apply(t, "v1", "client", "spec: {size: 3}", true)
	expect.NoError(t, err)
	wantFields(t, "applied", k.get(t, "v1", "one"), "spec: {size: 3, large: false}")
}

var formKind = twoVersions{
	v1: `size: {x-kubernetes-int-or-string: true},
  template: {type: object, x-kubernetes-embedded-resource: true, x-kubernetes-preserve-unknown-fields: true},
  blob: {x-kubernetes-preserve-unknown-fields: true},
  tags: {type: array, x-kubernetes-list-type: set, items: {type: string}},
  ports: {type: array, x-kubernetes-list-type: map, x-kubernetes-list-map-keys: [number, protocol],
    items: {type: object, required: [number], properties: {number: {type: integer}, protocol: {type: string, default: TCP}, old: {type: string}}}},
  zones: {type: object, additionalProperties: {type: object, properties: {weight: {type: number}, old: {type: string}}}},
  quantity: {type: number}`,
	v2: `amount: {x-kubernetes-int-or-string: true},
  pod: {type: object, properties: {template: {type: object, x-kubernetes-embedded-resource: true, x-kubernetes-preserve-unknown-fields: true}}},
  data: {x-kubernetes-preserve-unknown-fields: true},
  labels: {type: array, x-kubernetes-list-type: set, items: {type: string}},
  ports: {type: array, x-kubernetes-list-type: map, x-kubernetes-list-map-keys: [number, protocol],
    items: {type: object, required: [number], properties: {number: {type: integer}, protocol: {type: string, default: TCP}, new: {type: string}}}},
  zones: {type: object, additionalProperties: {type: object, properties: {share: {type: number}, new: {type: string}}}},
  quantity: {type: number}`,
	rules: formRules,
}

const formRules = `
hub: v2
spokes:
- version: v1
  rules:
  - move: {from: .spec.size, to: .spec.amount}
  - move: {from: .spec.template, to: .spec.pod.template}
  - move: {from: .spec.blob, to: .spec.data}
  - move: {from: .spec.tags, to: .spec.labels}
  - move: {from: '.spec.zones[*].weight', to: '.spec.zones[*].share'}
`

// testForms has values of every type and format of schemas.
func testForms(t *testing.T, s *apiServer) {
	k := s.installTwo(t, "forms", formKind)
	for name, form := range map[string]struct{ v1, v2 string }{
		"integer":      {"size: 9007199254740993", "amount: 9007199254740993"},
		"string":       {"size: 50%", "amount: 50%"},
		"embedded":     {"template: {apiVersion: v1, kind: Pod, metadata: {name: p, labels: {a: b}}, spec: {any: [1, {b: 2.5}]}}", "pod: {template: {apiVersion: v1, kind: Pod, metadata: {name: p, labels: {a: b}}, spec: {any: [1, {b: 2.5}]}}}"},
		"blob":         {"blob: {apiVersion: {x: [[], {}, '', 0, false]}}", "data: {apiVersion: {x: [[], {}, '', 0, false]}}"},
		"blob-scalar":  {"blob: 1", "data: 1"},
		"set":          {"tags: [b, a, 'ü']", "labels: [b, a, 'ü']"},
		"empty-set":    {"tags: []", "labels: []"},
		"ports":        {"ports: [{number: 53, protocol: UDP}, {number: 53, protocol: TCP}]", "ports: [{number: 53, protocol: UDP}, {number: 53, protocol: TCP}]"},
		"zones":        {"zones: {'a/b.c~d': {weight: 0.25}, e: {}}", "zones: {'a/b.c~d': {share: 0.25}, e: {}}"},
		"large-number": {"quantity: 1e21", "quantity: 1e21"},
		"whole-number": {"quantity: 1.0", "quantity: 1.0"},
	} {
		k.create(t, "v1", "old-"+name, "spec: {"+form.v1+"}")
		k.create(t, "v2", "new-"+name, "spec: {"+form.v2+"}")
		for _, object := range []string{"old-" + name, "new-" + name} {
			for range 2 {
				wantFields(t, object+" at v1", k.get(t, "v1", object), "spec: {"+form.v1+"}")
				wantFields(t, object+" at v2", k.get(t, "v2", object), "spec: {"+form.v2+"}")
				k.mergePatch(t, "v2", object, "metadata: {labels: {touched: 'yes'}}")
			}
		}
	}
}

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
	expect.Contains(t, patch+" at "+version+": the error", err.Error(), words...)
}
