// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package conversion_test

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
	"github.com/conversion-operator/conversion-operator/internal/engine/conversion"
	"github.com/conversion-operator/conversion-operator/internal/engine/conversion/compile"
	"github.com/conversion-operator/conversion-operator/internal/engine/conversion/internal/generate"
	"github.com/conversion-operator/conversion-operator/internal/engine/conversion/internal/kindtest"
	"github.com/conversion-operator/conversion-operator/internal/engine/tree"
	"github.com/conversion-operator/conversion-operator/internal/test/expect"
)

func from[T any](t testing.TB, text string) *T {
	t.Helper()
	return kindtest.From[T](t, text)
}

func widgets(t testing.TB, versions map[string]string) *apiextensionsv1.CustomResourceDefinition {
	t.Helper()
	return kindtest.Widgets(t, versions)
}

// between compiles rules between the spoke v1 and the hub v2.
func between(t testing.TB, v1, v2, rules string) compile.Result {
	t.Helper()
	return betweenGroups(t, v1, v2, "", rules)
}

func betweenGroups(t testing.TB, v1, v2, groups, rules string) compile.Result {
	t.Helper()
	return compile.Compile(widgets(t, map[string]string{"v1": v1, "v2": v2}),
		from[v1alpha1.DeclarativeConverter](t, "{hub: v2, ruleGroups: ["+groups+"], spokes: [{version: v1, rules: ["+rules+"]}]}"))
}

// converterOf returns the converter of a ruleset that went through its file form. It fails the test
// if Compile refused the rules.
func converterOf(t testing.TB, result compile.Result) *conversion.Converter {
	t.Helper()
	if len(result.Errors) > 0 || result.Ruleset == nil {
		t.Fatalf("the rules are refused: %v, missing: %v", result.Errors, result.Missing)
	}
	return kindtest.Converter(t, result.Ruleset)
}

// convert converts an object, and fails the test if that changed the input.
func convert(t testing.TB, c *conversion.Converter, object, to string) string {
	t.Helper()
	object = strings.ReplaceAll(object, `\"rules\":\"`+currentRules, `\"rules\":\"`+c.Fingerprint())
	input := []byte(object)
	output, err := c.Convert(nil, input, to)
	if err != nil {
		t.Fatalf("to %s: %v: %s", to, err, object)
	}
	if string(input) != object {
		t.Fatalf("the input was changed from %s to %s", object, input)
	}
	return string(output)
}

// objectOf, listOf, keyedBy and mapOf return the schemas of an object, of a list of objects, without keys or with one, and
// of a map of objects.
func objectOf(fields string) string { return "{type: object, properties: {" + fields + "}}" }

func listOf(fields string) string { return "{type: array, items: " + objectOf(fields) + "}" }

func keyedBy(key, fields string) string {
	return "{type: array, x-kubernetes-list-type: map, x-kubernetes-list-map-keys: [" + key + "], items: {type: object, required: [" + key + "], properties: {" + key + ": {type: string}" + fields + "}}}"
}

func mapOf(fields string) string {
	return "{type: object, additionalProperties: " + objectOf(fields) + "}"
}

// other returns the other one of v1 and v2.
func other(version string) string {
	if version == "v1" {
		return "v2"
	}
	return "v1"
}

// wantConverted converts an object, and compares what it becomes. The order of members means nothing.
func wantConverted(t testing.TB, c *conversion.Converter, object, to, want string) {
	t.Helper()
	if got := convert(t, c, object, to); !sameJSON(t, want, got) {
		t.Errorf("%s\nis at %s\n%s\nwant\n%s", object, to, got, want)
	}
}

// wantBytes is wantConverted for the same bytes, if nothing is preserved.
func wantBytes(t testing.TB, c *conversion.Converter, object, to, want string) {
	t.Helper()
	if strings.Contains(want, conversion.PreservedPrefix) {
		wantConverted(t, c, object, to, want)
		return
	}
	expect.Equal(t, fmt.Sprintf("%.300s\nat %s", object, to), want, convert(t, c, object, to))
}

// wantError fails the test immediately if the error is not of the type.
func wantError[E error](t testing.TB, what string, err error) E {
	t.Helper()
	typed, is := errors.AsType[E](err)
	if !is {
		t.Fatalf("%s: got %.300v, want %T", what, err, typed)
	}
	return typed
}

// sameJSON compares objects, ignoring the order of members. Of preserved data, only the versions are compared that have some:
// what is preserved says whether the object comes back.
func sameJSON(t testing.TB, a, b string) bool {
	t.Helper()
	left, ofLeft := splitPreserved(t, a)
	right, ofRight := splitPreserved(t, b)
	return left == right && slices.Equal(ofLeft, ofRight)
}

// canonicalOf returns a normal form of a JSON text, the same for equal values: the order of members,
// white space and escapes do not matter. Numbers are compared by their text. It fails for text
// that is not valid, or has a duplicate name in an object.
func canonicalOf(text []byte) (string, error) {
	a := tree.NewArena()
	defer a.Free()
	value, err := a.Read(text)
	if err != nil {
		return "", err
	}
	return string(a.Canonical(nil, value)), nil
}

// splitPreserved returns an object without preserved data, and the names of its annotations with such data.
func splitPreserved(t testing.TB, text string) (object string, annotations []string) {
	t.Helper()
	if !strings.Contains(text, conversion.PreservedPrefix) {
		canonical, err := canonicalOf([]byte(text))
		expect.NoError(t, err)
		return canonical, nil
	}
	value := decode(t, text)
	for _, name := range slices.Sorted(maps.Keys(annotationsOf(value))) {
		if strings.HasPrefix(name, conversion.PreservedPrefix) {
			annotations = append(annotations, name)
		}
	}
	object, err := canonicalOf([]byte(generate.Plain(withoutPreserved(value))))
	expect.NoError(t, err)
	return object, annotations
}

// sample returns a converter for the policy and both versions of a sample.
func sample(t testing.TB, name string) *conversion.Converter {
	t.Helper()
	policy, crd := readSample(t, filepath.Join("..", "..", "..", "config", "samples", name))
	return converterOf(t, compile.Compile(crd, policy.Spec.Converter.Declarative))
}

func readSample(t testing.TB, dir string) (*v1alpha1.ConversionPolicy, *apiextensionsv1.CustomResourceDefinition) {
	t.Helper()
	read := func(file string) string {
		text, err := os.ReadFile(filepath.Join(dir, file))
		expect.NoError(t, err)
		return string(text)
	}
	return from[v1alpha1.ConversionPolicy](t, read("2-policy.yaml")), from[apiextensionsv1.CustomResourceDefinition](t, read("3-crd-both.yaml"))
}

// widget encodes an object of the kind Widget without metadata.
func widget(version, fields string) string {
	return annotated(version, "", fields)
}

// annotated encodes an object with the annotation of one version: the version, and values by
// pointer. A pointer starts with ! for an absence, # for an order, ~ for an excluded element,
// @ for images, & for an anchor, and - for an omitted value.
func annotated(version, preserved, fields string) string {
	metadata := `{}`
	if owner, values, found := strings.Cut(preserved, " "); found {
		metadata = `{"annotations":{"` + conversion.AnnotationName("widgets.example.com", owner) + `":` + quoted(preservedText(values)) + `}}`
	}
	if fields != "" {
		fields = "," + fields
	}
	return `{"apiVersion":"example.com/` + version + `","kind":"Widget","metadata":` + metadata + fields + `}`
}

// digest returns the image, as a JSON string, of an element without keys that was converted to the
// canonical JSON.
func digest(became string) string {
	sum := sha256.Sum256([]byte(became))
	return `"` + hex.EncodeToString(sum[:8]) + `"`
}

// structuralSchemas returns the schemas of all versions.
func structuralSchemas(t testing.TB, crd *apiextensionsv1.CustomResourceDefinition) map[string]*schema.Structural {
	t.Helper()
	schemas := map[string]*schema.Structural{}
	for _, version := range crd.Spec.Versions {
		schemas[version.Name] = kindtest.Structural(t, version.Schema.OpenAPIV3Schema)
	}
	return schemas
}

// step returns the schema of an element, a member or a field, nil if there is none.
func step(at *schema.Structural, segment string) *schema.Structural {
	if at == nil {
		return nil
	}
	if segment == conversion.Each && at.Items != nil {
		return at.Items
	}
	if next, found := at.Properties[segment]; found && segment != conversion.Each {
		return &next
	}
	if at.AdditionalProperties == nil {
		return nil
	}
	return at.AdditionalProperties.Structural
}

// richHub, richSpoke and richOther are three versions that differ in every way that rules and
// preservation support.
const richHub = `spec: {type: object, properties: {
	host: {type: string}, port: {type: integer}, same: {type: string}, tz: {type: string},
	box: {type: object, properties: {image: {type: string}, size: {type: integer}, lid: {type: string}, count: {type: integer}, policy: {type: string}}},
	left: {type: string}, right: {type: string}, ip: {type: string}, time: {type: string}, nodes: {type: array, items: {type: object, properties: {a: {type: string}}}},
	kind2: {type: integer},
	moved: {type: object, properties: {a: {type: string}, b: {type: array, items: {type: string}}}},
	ports: {type: array, x-kubernetes-list-type: map, x-kubernetes-list-map-keys: [name], items: {type: object, properties: {
		name: {type: string}, title: {type: string}, weight: {type: integer}, mode: {type: string}, gone: {type: string}, w: {type: string}, n1: {type: string}, b: {type: boolean}, t: {type: string}, full: {type: string}}}},
	rows: {type: array, items: {type: object, properties: {x: {type: string}, hubOnly: {type: integer}, p: {type: string}, q: {type: string}, policy: {type: string}, gone: {type: string}, w: {type: array, items: {type: integer}}, n2: {type: integer}, show: {type: boolean}}}},
	grid: {type: array, items: {type: array, items: {type: object, properties: {yy: {type: string}, h: {type: string}, gone: {type: string}}}}},
	byName: {type: object, additionalProperties: {type: object, properties: {to: {type: string}, h: {type: string}}}},
	open: {type: object, properties: {o: {type: string}}},
	hi: {type: integer}, lo: {type: integer}, parts: {type: array, items: {type: string}}, pairs: {type: array, items: {type: object, properties: {k: {type: string}, v: {type: string}}}},
	secrets: {type: array, items: {type: object, properties: {name: {type: string}, more: {type: string}}}}, vars: {type: object, additionalProperties: {type: string}},
	bounds: {type: object, additionalProperties: {type: object, properties: {max: {type: integer}, min: {type: integer}}}},
	zones: {type: array, items: {type: string}}, at: {type: string}, flag: {type: string},
	az: {type: object, properties: {from: {type: string}, name: {type: string}}}, cpu: {type: string}, mode: {type: string}, fresh: {type: object, properties: {level: {type: integer}, more: {type: string}}},
	doc: {type: object, properties: {a: {type: string}, b: {type: object, properties: {c: {type: integer}}}, d: {type: boolean, default: true}}}, free: {type: string},
	quota: {type: object, additionalProperties: {type: string}}}}, top: {type: string}`

const richSpoke = `spec: {type: object, properties: {
	hostPort: {type: string}, same: {type: string}, owner: {type: string}, size: {type: string}, gone: {type: string}, node: {type: object, properties: {a: {type: string}}},
	image: {type: string}, policy: {type: string},
	box: {type: object, properties: {size: {type: integer}, shape: {type: string}, ips: {type: array, items: {type: string}}, time: {type: integer}}},
	left: {type: string}, right: {type: string},
	kind2: {type: string},
	deep: {type: object, properties: {er: {type: object, properties: {a: {type: string}, b: {type: array, items: {type: string}}}}, own: {type: string}, gone: {type: string}}},
	ports: {type: array, x-kubernetes-list-type: map, x-kubernetes-list-map-keys: [name], items: {type: object, properties: {
		name: {type: string}, label: {type: string}, note: {type: string}, prio: {type: integer}, policy: {type: string}, w: {type: array, items: {type: string}}, n1: {type: integer}, e: {type: string}, short: {type: string}}}},
	rows: {type: array, items: {type: object, properties: {x: {type: string}, only: {type: integer}, pq: {type: string}, d: {type: string}, policy: {type: string}, w: {type: integer}, n1: {type: string}, hide: {type: boolean}}}},
	grid: {type: array, items: {type: array, items: {type: object, properties: {z: {type: string}, s: {type: string}}}}},
	byName: {type: object, additionalProperties: {type: object, properties: {from: {type: string}, s: {type: string}}}},
	open: {type: object, x-kubernetes-preserve-unknown-fields: true},
	secrets: {type: array, items: {type: string}}, vars: {type: array, items: {type: object, properties: {k: {type: string}, v: {type: string}, w: {type: string}}}},
	bounds: {type: object, additionalProperties: {type: integer}}, zones: {type: string}, at: {type: integer}, flag: {type: boolean},
	zone: {type: string}, packed: {type: integer}, joined: {type: string}, pairs: {type: object, additionalProperties: {type: string}},
	doc: {type: string}, free: {x-kubernetes-preserve-unknown-fields: true},
	quota: {type: object, additionalProperties: {type: string}}}}, bottom: {type: string}`

const richOther = `spec: {type: object, properties: {same: {type: string}, address: {type: object, properties: {host: {type: string}, port: {type: integer}}}}}`

const richRules = `{hub: v2, spokes: [{version: v1, rules: [
	{format: {from: .spec.hostPort, template: "{h}:{p}", to: {h: .spec.host, p: .spec.port}}},
	{move: {from: .spec.image, to: .spec.box.image}},
	{move: {from: .spec.left, to: .spec.right}}, {move: {from: .spec.right, to: .spec.left}},
	{move: {from: .spec.deep.er, to: .spec.moved}},
	{move: {from: ".spec.ports[*].label", to: ".spec.ports[*].title"}},
	{format: {from: ".spec.rows[*].pq", template: "<{p}-{q}>", to: {p: ".spec.rows[*].p", q: ".spec.rows[*].q"}}},
	{move: {from: ".spec.grid[*][*].z", to: ".spec.grid[*][*].yy"}},
	{move: {from: ".spec.byName[*].from", to: ".spec.byName[*].to"}},
	{move: {from: '.spec.quota["cpu"]', to: .spec.cpu}},
	{values: {from: .spec.policy, to: .spec.box.policy, table: [{from: a, to: b}, {from: b, to: a}, {from: "", to: ":"}, {from: ":", to: ":"}]}},
	{values: {from: ".spec.ports[*].policy", to: ".spec.ports[*].mode", table: [{from: a, to: b}, {from: x, to: b}]}},
	{values: {from: ".spec.rows[*].policy", to: ".spec.rows[*].policy", table: [{from: a, to: b}, {from: b, to: c}]}},
	{each: {from: .spec.node, to: .spec.nodes}}, {each: {from: .spec.box.ips, to: .spec.ip}}, {each: {from: ".spec.rows[*].w", to: ".spec.rows[*].w"}},
	{each: {from: ".spec.ports[*].w", to: ".spec.ports[*].w"}},
	{cast: {from: .spec.size, to: .spec.box.count, as: Integer}}, {cast: {from: .spec.box.time, to: .spec.time, as: Seconds}}, {cast: {from: ".spec.rows[*].n1", to: ".spec.rows[*].n2", as: Seconds}},
	{cast: {from: ".spec.ports[*].n1", to: ".spec.ports[*].n1", as: Integer}},
	{each: {from: .spec.secrets, to: .spec.secrets}}, {move: {from: ".spec.secrets[*]", to: ".spec.secrets[*].name"}}, {each: {from: .spec.bounds, to: .spec.bounds}}, {move: {from: ".spec.bounds[*]", to: ".spec.bounds[*].max"}}, {each: {from: .spec.vars, to: .spec.vars, key: k}}, {move: {from: ".spec.vars[*].v", to: ".spec.vars[*]"}},
	{cast: {from: .spec.zones, to: .spec.zones, as: List, separator: ":"}}, {cast: {from: .spec.at, to: .spec.at, as: Timestamp}}, {cast: {from: .spec.flag, to: .spec.flag, as: Boolean}},
	{cast: {from: .spec.doc, to: .spec.doc, as: YAML}}, {cast: {from: .spec.free, to: .spec.free, as: JSON}},
	{drop: {from: .spec.gone}}, {drop: {from: .spec.deep.gone}}, {drop: {to: ".spec.ports[*].gone"}}, {drop: {to: ".spec.grid[*][*].gone"}}, {drop: {to: ".spec.rows[*].gone"}},
	{default: {to: .spec.mode, value: a}}, {default: {to: .spec.box.lid, value: b}}, {default: {to: .spec.fresh.level, value: 80}},
	{default: {from: ".spec.ports[*].prio", value: 1}}, {default: {from: ".spec.rows[*].d", value: a}},
	{cel: {from: {p: .spec.packed}, to: {hi: .spec.hi, lo: .spec.lo}, forward: {hi: self.p / 100, lo: self.p % 100}, backward: {p: "self.?hi.orValue(0) * 100 + self.lo"}}},
	{cel: {from: {j: .spec.joined}, to: {p: .spec.parts, l: '.metadata.labels["other"]'}, forward: {p: "self.j.split(':')", l: "self.j.startsWith('a') ? optional.of('l') : optional.none()"},
		backward: {j: "has(self.l) && !has(self.p) ? 'a' : self.p.join(':')"}}},
	{cel: {from: {m: .spec.pairs}, to: {l: .spec.pairs}, forward: {l: "self.m.transformList(k, v, {'k': k, 'v': v})"}, backward: {m: "self.l.transformMapEntry(i, e, {e.k: e.v})"}}},
	{cel: {from: {e: ".spec.ports[*].e"}, to: {b: ".spec.ports[*].b", t: ".spec.ports[*].t"}, forward: {b: "self.e.startsWith('a')", t: "self.e.upperAscii()"}, backward: {e: "self.?t.orValue(string(self.b)).lowerAscii()"}}},
	{cel: {from: {z: .spec.zone}, to: {kind: .spec.az.from, name: .spec.az.name}, whenMissing: Evaluate, forward: {kind: "has(self.z) ? 'a' : 'b'", name: self.z}, backward: {z: self.name}}},
	{cel: {from: {s: ".spec.ports[*].short"}, to: {l: ".spec.ports[*].full"}, whenMissing: Evaluate, forward: {l: "self.?s.orValue('a')"}, backward: {s: "self.?l.orValue('b')"}}},
	{cel: {from: {o: ".spec.rows[*].hide"}, to: {o: ".spec.rows[*].show"}, whenMissing: Evaluate, forward: {o: "!self.?o.orValue(false)"}, backward: {o: "!self.?o.orValue(true)"}}},
	{move: {from: .bottom, to: '.metadata.labels["bottom"]'}}
	]}, {version: v3, rules: [{move: {from: .spec.address.host, to: .spec.host}}, {move: {from: .spec.address.port, to: .spec.port}}]}]}`

func richWorld(t testing.TB) (*apiextensionsv1.CustomResourceDefinition, *v1alpha1.DeclarativeConverter) {
	t.Helper()
	crd := widgets(t, map[string]string{"v1": spaces(richSpoke), "v2": spaces(richHub), "v3": richOther})
	return crd, from[v1alpha1.DeclarativeConverter](t, spaces(richRules))
}

// spaces replaces tabs, which YAML does not allow.
func spaces(text string) string {
	return strings.ReplaceAll(text, "\t", " ")
}
