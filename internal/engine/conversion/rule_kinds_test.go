// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package conversion_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
	"github.com/conversion-operator/conversion-operator/internal/engine/conversion"
	"github.com/conversion-operator/conversion-operator/internal/engine/conversion/compile"
	"github.com/conversion-operator/conversion-operator/internal/test/expect"
)

const (
	kindsSpoke = `moved: {type: string}, joined: {type: string}, word: {type: string}, one: {type: string}, text: {type: string}, gone: {type: string},
		list: {type: array, items: {type: object, properties: {name: {type: string}, size: {type: integer}}}}, shout: {type: string},
		refs: {type: array, items: {type: object, properties: {name: {type: string}}}}, env: {type: array, items: {type: object, properties: {k: {type: string}, v: {type: string}}}},
		csv: {type: string}, stamp: {type: integer}, flag: {type: boolean}, some: {type: string},
		sources: {type: array, items: {type: object, properties: {a: {type: string}}}}, doc: {type: string}, tree: {type: object, properties: {a: {type: string}}}, docs: {type: string}, body: {type: string}`
	kindsHub = `to: {type: string}, left: {type: string}, right: {type: integer}, code: {type: string}, many: {type: array, items: {type: string}}, number: {type: integer},
		map: {type: object, additionalProperties: {type: object, properties: {size: {type: integer}}}}, whisper: {type: string}, fresh: {type: string},
		names: {type: array, items: {type: string}}, vars: {type: object, additionalProperties: {type: string}},
		parts: {type: array, items: {type: string}}, moment: {type: string}, bool: {type: string}, always: {type: string},
		sources: {type: array, items: {type: object, properties: {a: {type: string}, b: {type: string}}}}, value: {type: object, properties: {a: {type: string}}}, yaml: {type: string}, parsed: {type: array, items: {type: string}}, anything: {x-kubernetes-preserve-unknown-fields: true}`
	// kindsRules has a rule of each kind.
	kindsRules = `{move: {from: .moved, to: .to}}, {format: {from: .joined, template: "{l}:{r}", to: {l: .left, r: .right}}},
		{default: {to: .fresh, value: a}}, {values: {from: .word, to: .code, table: [{from: a, to: b}]}}, {drop: {from: .gone}},
		{each: {from: .one, to: .many}}, {cast: {from: .text, to: .number, as: Integer}}, {each: {from: .list, to: .map, key: name}},
		{each: {from: .refs, to: .names}}, {move: {from: ".refs[*].name", to: ".names[*]"}}, {each: {from: .env, to: .vars, key: k}}, {move: {from: ".env[*].v", to: ".vars[*]"}},
		{cast: {from: .csv, to: .parts, as: List, separator: ","}}, {cast: {from: .stamp, to: .moment, as: Timestamp}}, {cast: {from: .flag, to: .bool, as: Boolean}},
		{cast: {from: .doc, to: .value, as: YAML}}, {cast: {from: .tree, to: .yaml, as: YAML}}, {cast: {from: .docs, to: .parsed, as: JSON}}, {cast: {from: .body, to: .anything, as: JSON}},
		{each: {from: .sources, to: .sources, where: [{to: .a}]}},
		{cel: {from: {s: .shout}, to: {w: .whisper}, forward: {w: self.s.lowerAscii()}, backward: {s: self.w.upperAscii()}}},
		{cel: {from: {s: .some}, to: {a: .always}, forward: {a: "self.?s.orValue('none')"}, backward: {s: self.a}, whenMissing: Evaluate}}`
)

// TestEveryKindOfRule checks that a canary object is converted by every rule, so that probes detect
// a pod which cannot apply it, and that the other tests of rules have each kind.
func TestEveryKindOfRule(t *testing.T) {
	// Which rules are refused, what each of them cannot express, and how their work grows.
	tests := map[string]string{"kindsRules": kindsRules}
	for _, file := range []string{"compile_test.go", filepath.Join("compile", "roundtrip_test.go"), "growth_test.go"} {
		text, err := os.ReadFile(file)
		expect.NoError(t, err)
		tests[file] = string(text)
	}
	for member := range reflect.TypeFor[v1alpha1.Rule]().Fields() {
		kind, _, _ := strings.Cut(member.Tag.Get("json"), ",")
		if kind == "use" {
			continue // it is other rules: TestGroups of package compile
		}
		for name, text := range tests {
			expect.Contains(t, name, text, "{"+kind+": {")
		}
	}
	// v3 has none of the fields, so it preserves all of them.
	crd := widgets(t, map[string]string{"v1": spaces(kindsSpoke), "v2": spaces(kindsHub), "v3": ""})
	c := converterOf(t, compile.Compile(crd, from[v1alpha1.DeclarativeConverter](t,
		"{hub: v2, spokes: [{version: v1, rules: ["+spaces(kindsRules)+"]}, {version: v3}]}")))
	toHub, toSpoke := canaryAt(t, c, "v1", "v2"), canaryAt(t, c, "v2", "v1")
	for _, exchange := range c.Ruleset().Spokes[0].Root.Exchanges {
		if !hasOne(toHub, exchange.Hub) {
			t.Errorf("the canary of v1 has nothing that becomes a value of %v: see canary.go", exchange.Hub[0].Path)
		}
		if !hasOne(toSpoke, exchange.Spoke) {
			t.Errorf("the canary of v2 has nothing that becomes a value of %v: see canary.go", exchange.Spoke[0].Path)
		}
	}
}

// canaryAt converts the canary object of one version to another.
func canaryAt(t *testing.T, c *conversion.Converter, from, to string) map[string]json.RawMessage {
	t.Helper()
	text, err := c.Convert(nil, c.Canary(from, to), to)
	expect.NoError(t, err)
	object := map[string]json.RawMessage{}
	expect.NoError(t, json.Unmarshal(text, &object))
	return object
}

// hasOne reports whether an object has one of the fields at its root.
func hasOne(object map[string]json.RawMessage, fields []conversion.Field) bool {
	for _, field := range fields {
		if object[field.Path[0]] != nil {
			return true
		}
	}
	return false
}
