// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package conversion_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
	"github.com/conversion-operator/conversion-operator/internal/engine/conversion/compile"
	"github.com/conversion-operator/conversion-operator/internal/test/expect"
	"github.com/conversion-operator/conversion-operator/internal/test/rulecases"
)

// refusal is rules that do not compile, and the first error: where it is, and a part of its text.
type refusal struct{ rules, at, says string }

func (r refusal) check(t *testing.T, v1, v2 string) {
	t.Helper()
	result := between(t, v1, v2, r.rules)
	if result.Ruleset != nil || len(result.Errors) == 0 {
		t.Fatal("the rules are accepted")
	}
	if got := result.Errors[0]; got.Field != "spec.converter.declarative.spokes[0]."+r.at || !strings.Contains(got.Error(), r.says) {
		t.Errorf("got %v, want %q at %s", got, r.says, r.at)
	}
}

// TestCompileRefuses checks that errors name the field of the policy and the problem.
func TestCompileRefuses(t *testing.T) {
	const v1 = `a: {type: string}, num: {type: integer}, m: {type: object, additionalProperties: {type: string}}, l: {type: array, items: {type: object, properties: {x: {type: string}}}}, o: {type: object, properties: {i: {type: string}}}, e: {type: string, enum: [A, B]}, both: {type: string}, any: {x-kubernetes-preserve-unknown-fields: true}, er: {type: object, x-kubernetes-embedded-resource: true, properties: {spec: {type: string}}}, k: {type: array, x-kubernetes-list-type: map, x-kubernetes-list-map-keys: [id], items: {type: object, required: [id], properties: {id: {type: string}, x: {type: string}}}}`
	const v2 = `p: {type: object, properties: {i: {type: string}}}, b: {type: string}, c: {type: string}, n2: {type: integer}, names: {type: array, items: {type: string}}, strings: {type: object, additionalProperties: {type: string}}, lm: {type: object, additionalProperties: {type: object, properties: {x: {type: string}}}}, l: {type: array, items: {type: object, properties: {yy: {type: string}}}}, both: {type: string}`
	for name, test := range map[string]refusal{
		"a rule we know not":       {`{}`, "rules[0]", "upgrade the operator"},
		"unknown path":             {`{move: {from: .z, to: .b}}`, "rules[0].move.from", "no field z"},
		"into a list":              {`{move: {from: .l.x, to: .b}}`, "rules[0].move.from", "write .l[*].x"},
		"no list":                  {`{move: {from: ".a[*]", to: .b}}`, "rules[0].move.from", "neither a list nor a map"},
		"ends with [*]":            {`{move: {from: ".m[*]", to: ".b"}}`, "rules[0].move.from", "ends with [*]"},
		"an element without a key": {`{move: {from: ".l[z=a].x", to: .b}}`, "rules[0].move.from", ".l is no list whose only x-kubernetes-list-map-keys is the string that [z=a] names"},
		"an element by no key":     {`{move: {from: ".k[x=a].id", to: .b}}`, "rules[0].move.from", ".k is no list whose only"},
		"an element by nothing":    {`{move: {from: ".k[id].x", to: .b}}`, "rules[0].move.from", "neither [*] nor the key of an element, such as [name=main]"},
		"a whole element":          {`{move: {from: ".k[id=a]", to: .b}}`, "rules[0].move.from", "use an each rule with where"},
		"the key of an element":    {`{move: {from: ".k[id=a].id", to: .b}}`, "rules[0].move.from", "is a, as the path says"},
		"one element and all":      {`{move: {from: ".k[id=a].x", to: .b}}, {move: {from: ".k[*].x", to: .c}}`, "rules[1].move.from", "already belongs to"},
		"metadata":                 {`{move: {from: .metadata.name, to: .b}}`, "rules[0].move.from", `.metadata.name is the API server's, and is the same in every version: remove the rule; of the metadata, only single labels and annotations convert`},
		"all labels":               {`{move: {from: .metadata.labels, to: .b}}`, "rules[0].move.from", `of the metadata, only single labels and annotations convert: write .metadata.labels["name"]`},
		"all metadata":             {`{move: {from: .metadata, to: .b}}`, "rules[0].move.from", `of the metadata, only single labels and annotations convert: write .metadata.labels["name"]`},
		"apiVersion":               {`{move: {from: .apiVersion, to: .b}}`, "rules[0].move.from", "remove the rule"},
		"two rules, one field":     {`{move: {from: .a, to: .b}}, {move: {from: .a, to: .c}}`, "rules[1].move.from", "already belongs to"},
		"above a ruled field":      {`{move: {from: .o.i, to: .b}}, {move: {from: .o, to: .c}}`, "rules[1].move.from", "already belongs to"},
		"wildcards":                {`{move: {from: ".l[*].x", to: .b}}`, "rules[0].move.to", "same lists and maps"},
		"drop of the moved":        {`{move: {from: .a, to: .b}}, {drop: {to: .b}}`, "rules[1].drop.to", "already belongs to"},
		"an element of a copy":     {`{move: {from: ".l[*]", to: ".l[*].yy"}}`, "rules[0].move.from", "a rule for elements as a whole needs an each rule for their list or map"},
		"a dropped element":        {`{each: {from: .l, to: .l}}, {drop: {from: ".l[*]"}}`, "rules[1].drop.from", "ends with [*]"},
		"the key of a map":         {`{each: {from: .l, to: .strings, key: x}}, {move: {from: ".l[*].x", to: ".strings[*]"}}`, "rules[1].move.from", "is the key of the map"},
		"cel name of YAML":         {`{cel: {from: {y: .a}, to: {b: .b}, forward: {b: self.y}, backward: {y: self.b}}}`, "rules[0].cel.from[true]", "YAML reads y, n, yes, no, on and off"},
		"cel derives the moved":    {`{move: {from: .a, to: .b}}, {cel: {from: {a: .num}, to: {b: .b}, forward: {b: "string(self.a)"}}}`, "rules[1].cel.to[b]", "already belongs to"},
		"cel of the moved":         {`{move: {from: .a, to: .b}}, {cel: {from: {a: .a}, to: {c: .c}, forward: {c: self.a}, backward: {a: self.c}}}`, "rules[1].cel.from[a]", "already belongs to"},
		"nearly a name":            {`{move: {from: .Bth, to: .b}}`, "rules[0].move.from", "version v1: the object has no field Bth in the schema: did you mean .both?"},
		"a name elsewhere":         {`{move: {from: .i, to: .b}}`, "rules[0].move.from", "did you mean .o.i?"},
		"nothing like it":          {`{move: {from: .o.quite, to: .b}}`, "rules[0].move.from", ".o has no field quite in the schema, it has i: correct the path"},
		"into a scalar":            {`{move: {from: .a.x, to: .b}}`, "rules[0].move.from", ".a is of type string and has no fields: correct the path"},
		"into the unknown":         {`{move: {from: .any.x, to: .b}}`, "rules[0].move.from", "the schema does not say what is in .any: add x to the schema"},
		"into an embedded":         {`{move: {from: .er.spec, to: .b}}`, "rules[0].move.from", ".er is an object of a kind of its own: write a rule for all of it"},
		"below a ruled field":      {`{drop: {from: .o}}, {move: {from: .o.i, to: .b}}`, "rules[1].move.from", "is in .o, which already belongs to spec.converter.declarative.spokes[0].rules[0].drop.from: give every field to one rule"},
		"around a ruled field":     {`{drop: {to: .p.i}}, {drop: {to: .p}}`, "rules[1].drop.to", "has .p.i in it, which already belongs to"},
		"a key twice":              {`{move: {from: '.m["k"]', to: .b}}, {move: {from: '.m["k"]', to: .c}}`, "rules[1].move.from", ".m.k already belongs to"},
		"our own annotation":       {`{move: {from: .a, to: '.metadata.annotations["conversion-operator.io/v1"]'}}`, "rules[0].move.to", "is where conversion-operator preserves fields: use another name"},
		"no label at all":          {`{move: {from: .a, to: '.metadata.labels["a b"]'}}`, "rules[0].move.to", "cannot be: name part must consist of"},
		"no prefix of a label":     {`{move: {from: .a, to: '.metadata.labels["A/b"]'}}`, "rules[0].move.to", "cannot be: prefix part a lowercase RFC 1123 subdomain"},
	} {
		t.Run(name, func(t *testing.T) { test.check(t, v1, v2) })
	}
}

// TestKindsRefused has what each kind of rule refuses.
func TestKindsRefused(t *testing.T) {
	for _, kind := range rulecases.All(t) {
		for _, one := range kind.Refused.Rules {
			t.Run(kind.Name+": "+one.Name, func(t *testing.T) {
				refusal{string(one.Rule), "rules[0]." + one.At, one.Says}.check(t, string(kind.Refused.V1), string(kind.Refused.V2))
			})
		}
	}
}

// TestCompileRefusesLists has rules for fields in lists whose elements cannot be paired.
func TestCompileRefusesLists(t *testing.T) {
	const list, held = "l: {type: array, items: {type: object, properties: {f: {type: string}}}}", "l: {type: object, additionalProperties: {type: object, properties: {f: {type: string}}}}"
	for name, test := range map[string]struct {
		v1, v2 string
		refusal
	}{
		"a list and a map":          {list, held, refusal{`{move: {from: ".l[*].f", to: ".l[*].f"}}`, "rules[0].move.from", "is part of .l, which differs between the versions (.l is array on one side and object on the other)"}},
		"dropped on the other side": {list, list, refusal{`{drop: {from: ".l[*].f"}}, {drop: {to: .l}}`, "rules[0].drop.from", "goes through .l, which belongs to"}},
		"another on the other side": {"x" + list[1:] + ", " + list, list, refusal{`{drop: {from: ".l[*].f"}}, {move: {from: .x, to: .l}}`, "rules[0].drop.from", "goes through .l, which belongs to"}},
	} {
		t.Run(name, func(t *testing.T) { test.check(t, test.v1, test.v2) })
	}
}

func TestCompileUnknownFields(t *testing.T) {
	crd := widgets(t, map[string]string{"v1": "a: {type: string}"})
	crd.Spec.PreserveUnknownFields = true
	result := compile.Compile(crd, &v1alpha1.DeclarativeConverter{Hub: "v1"})
	expect.Equal(t, "number of errors", 1, len(result.Errors))
	expect.Contains(t, "errors", fmt.Sprint(result.Errors), "set it to false")
}

// TestCompileMissing covers policies with versions that the CustomResourceDefinition lacks.
func TestCompileMissing(t *testing.T) {
	const rules = `{hub: v2, spokes: [{version: v1, rules: []}, {version: v3, rules: []}]}`
	for name, test := range map[string]struct {
		versions []string
		missing  []string
		planned  []string
	}{
		"all":                {[]string{"v1", "v2", "v3"}, nil, []string{"v1", "v2", "v3"}},
		"one, the hub":       {[]string{"v2"}, []string{"v1", "v3"}, []string{"v2"}},
		"one, a spoke":       {[]string{"v1"}, []string{"v2", "v3"}, []string{"v1"}},
		"one, not named":     {[]string{"v9"}, []string{"v2", "v1", "v3"}, nil},
		"two, with the hub":  {[]string{"v1", "v2"}, []string{"v3"}, []string{"v1", "v2"}},
		"two, not the hub":   {[]string{"v1", "v3"}, []string{"v2"}, nil},
		"one without a rule": {[]string{"v2", "v9"}, []string{"v1", "v3"}, []string{"v2", "v9"}},
	} {
		t.Run(name, func(t *testing.T) {
			versions := map[string]string{}
			for _, version := range test.versions {
				versions[version] = "a: {type: string}"
			}
			result := compile.Compile(widgets(t, versions), from[v1alpha1.DeclarativeConverter](t, rules))
			var missing, planned []string
			for _, err := range result.Missing {
				missing = append(missing, err.BadValue.(string))
			}
			if result.Ruleset != nil {
				planned = converterOf(t, result).Ruleset().Versions
			}
			expect.Equal(t, "missing", test.missing, missing)
			expect.Equal(t, "planned", test.planned, planned)
		})
	}
}

func TestCompileVerdict(t *testing.T) {
	result := between(t, `a: {type: string}, own: {type: string}, x: {type: string}`, `b: {type: string}, x: {type: integer}`, `{move: {from: .a, to: .b}}`)
	want := []compile.Verdict{{
		Version: "v1", ToHub: v1alpha1.FidelityPreserved, FromHub: v1alpha1.FidelityPreserved, Preserved: []compile.VersionedField{{Version: "v1", Path: ".own"}, {Version: "v1", Path: ".x"}, {Version: "v2", Path: ".x"}},
	}}
	expect.Equal(t, "verdicts", want, result.Verdicts)
	const warning = "not copied between v1 and v2, each version keeps its own: .x is string on one side and integer on the other: write"
	expect.Equal(t, "number of warnings", 1, len(result.Warnings))
	expect.Contains(t, "warnings", fmt.Sprint(result.Warnings), warning)
}

func TestCompileVerdictOfDrops(t *testing.T) {
	result := between(t, `x: {type: string}, old: {type: string}, own: {type: string}`, `x: {type: string}`, `{drop: {from: .old}}`)
	want := []compile.Verdict{{
		Version: "v1", ToHub: v1alpha1.FidelityLossy, FromHub: v1alpha1.FidelityExact, Preserved: []compile.VersionedField{{Version: "v1", Path: ".own"}}, Dropped: []compile.VersionedField{{Version: "v1", Path: ".old"}},
	}}
	expect.Equal(t, "verdicts", want, result.Verdicts)
}

// TestCompileEqualSchemas checks that fields with equal schemas are copied byte by byte.
func TestCompileEqualSchemas(t *testing.T) {
	for name, schema := range map[string]string{
		"anything":          `x: {type: object, x-kubernetes-preserve-unknown-fields: true}`,
		"anything at all":   `x: {x-kubernetes-preserve-unknown-fields: true}`,
		"any map":           `x: {type: object, additionalProperties: true}`,
		"int-or-string":     `x: {x-kubernetes-int-or-string: true}`,
		"nullable":          `x: {type: object, nullable: true, properties: {yy: {type: string}}}`,
		"embedded resource": `x: {type: object, x-kubernetes-embedded-resource: true, x-kubernetes-preserve-unknown-fields: true}`,
		"map of scalars":    `x: {type: object, additionalProperties: {type: integer}}`,
		"lists of lists":    `x: {type: array, items: {type: array, items: {type: array, items: {type: object, properties: {yy: {type: string}}}}}}`,
	} {
		t.Run(name, func(t *testing.T) {
			c := converterOf(t, between(t, schema, schema+", only: {type: string}", ``))
			const fields = `"x":[ {"z" : 1e400, "a":[[]]} ,0.10, null ]`
			wantBytes(t, c, widget("v1", fields), "v2", widget("v2", fields))
		})
	}
}
