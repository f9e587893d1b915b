// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package conversion_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"reflect"
	"regexp"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
	"github.com/conversion-operator/conversion-operator/internal/engine/conversion"
	"github.com/conversion-operator/conversion-operator/internal/engine/conversion/compile"
	"github.com/conversion-operator/conversion-operator/internal/engine/conversion/internal/generate"
	"github.com/conversion-operator/conversion-operator/internal/engine/conversion/shape"
	"github.com/conversion-operator/conversion-operator/internal/engine/tree"
	"github.com/conversion-operator/conversion-operator/internal/test/expect"
)

// world is a kind with versions and rules, and a generator of its objects. Each law of conversion
// is a fuzzer in a file of its own, which tests it in many worlds.
type world struct {
	*generate.Objects
	*tally
	converter *conversion.Converter
	compiled  compile.Result
	ruleset   *conversion.Ruleset
	crd       *apiextensionsv1.CustomResourceDefinition
	schemas   map[string]*schema.Structural
	rules     *v1alpha1.DeclarativeConverter
}

// fuzzWorlds tests a law in worlds that the fuzzer chooses, with several objects in each. The law must have counted each of the parts.
func fuzzWorlds(f *testing.F, law func(t *testing.T, w *world), parts ...string) {
	c := newTally(f, 16, parts...)
	previous := debug.SetGCPercent(400) // garbage of many small worlds is a third of the work of a law
	f.Cleanup(func() { debug.SetGCPercent(previous) })
	f.Fuzz(func(t *testing.T, seed uint64, choices []byte) {
		if c.isOver() {
			return
		}
		w := newWorld(t, generate.Choose(seed%(1<<objectBits), choices))
		w.tally = c
		defer describe(t, w.crd, w.rules)
		c.world(t, seed, w.Choices, func() { law(t, w) })
	})
}

// describe logs the schemas and rules of a failed test.
func describe(t testing.TB, crd *apiextensionsv1.CustomResourceDefinition, rules *v1alpha1.DeclarativeConverter) {
	if !t.Failed() {
		return
	}
	for _, v := range crd.Spec.Versions {
		t.Logf("%s: %s", v.Name, generate.Plain(v.Schema.OpenAPIV3Schema))
	}
	t.Logf("rules: %s", generate.Plain(rules))
}

// newWorld returns the rich world, which has every kind of rule, or a random one: the spokes v1 and
// v3 of the hub v2.
func newWorld(t testing.TB, c *generate.Choices) *world {
	t.Helper()
	compiledRich.Do(func() {
		crd, rules := richWorld(t)
		compiledRich.world = worldOf(t, crd, rules)
	})
	w := *compiledRich.world
	if c.Often(4) {
		crd, rules := randomWorld(t, c)
		w = *worldOf(t, crd, rules)
	}
	w.Objects = &generate.Objects{Choices: c}
	w.Words, w.Values = hints(w.rules)
	return &w
}

// compiledRich is compiled once, because its expressions take long.
var compiledRich struct {
	sync.Once
	*world
}

func worldOf(t testing.TB, crd *apiextensionsv1.CustomResourceDefinition, rules *v1alpha1.DeclarativeConverter) *world {
	t.Helper()
	result := compile.Compile(crd, rules)
	return &world{tally: &tally{parts: map[string]int{}}, converter: converterOf(t, result), compiled: result, ruleset: result.Ruleset, crd: crd, schemas: structuralSchemas(t, crd), rules: rules}
}

func randomWorld(t testing.TB, c *generate.Choices) (*apiextensionsv1.CustomResourceDefinition, *v1alpha1.DeclarativeConverter) {
	spoke, hub := c.Schemas()
	other := c.Changed(hub)
	crd := widgets(t, map[string]string{"v1": "", "v2": "", "v3": ""})
	crd.Spec.Versions[0].Schema.OpenAPIV3Schema = spoke
	crd.Spec.Versions[1].Schema.OpenAPIV3Schema = hub
	crd.Spec.Versions[2].Schema.OpenAPIV3Schema = other
	rules := &v1alpha1.DeclarativeConverter{Hub: "v2", Spokes: []v1alpha1.Spoke{{Version: "v1"}, {Version: "v3"}}}
	for i, s := range []*apiextensionsv1.JSONSchemaProps{spoke, other} {
		// A value of the hub that one spoke preserved without an image may have one by the expressions of
		// another spoke.
		c.WithoutExpressions = i > 0
		rules.Spokes[i].Rules = c.Rules(s, hub, func(some []v1alpha1.Rule) bool {
			rules.Spokes[i].Rules = some
			result := compile.Compile(crd, rules)
			if (result.Ruleset == nil) == (len(result.Errors) == 0) {
				t.Fatalf("there is a ruleset, and errors, or neither: %v", result.Errors)
			}
			return result.Ruleset != nil
		})
	}
	return crd, rules
}

// holes matches the holes of a template.
var holes = regexp.MustCompile(`\{[^}]*\}`)

// castWords are texts that casts can read, and some that they nearly can.
var castWords = map[v1alpha1.CastType][]string{
	v1alpha1.CastNumber:       {"0.5", "0.50", "1e3", "-0", "12345678901234567890", "1E400", "1e-7", "NaN", "0x1p-2", ".5"},
	v1alpha1.CastMilliseconds: {"1.5s", "90s", "-1m30s", "1µs", "2562047h", "100ms"},
	v1alpha1.CastTimestamp:    {"2026-01-02T03:04:05Z", "2026-01-02T03:04:05.5Z", "2026-01-02T03:04:05+01:00", "0000-01-01T00:00:00+23:59", "9999-12-31T23:59:59Z", "1969-12-31T23:59:59Z", "2000-02-30T00:00:00Z"},
	v1alpha1.CastBoolean:      {"true", "false", "True", "0"},
	v1alpha1.CastList:         {"a,b", "a,", ",", "a, b", "--", "aaa", "", "a--b,c"},
	v1alpha1.CastJSON: {
		"{}", "[]", `{"a":"x"}`, `{ "a" : 1, "b": {"c": [1.0, 12345678901234567890]} }`, `[{"a":null,"z":1}]`, `{"a":1,"a":2}`, `["a","b"]`, `1`, `"x"`, `null`, `{"d":true,"unknown":{"e":"f"}}`, `{"a":`,
	},
	v1alpha1.CastYAML: {
		"{}", "[]\n", "a: x\n", "a: 1 # why\nb: {c: [1.0, 0x10]}\n", "- a: ~\n  z: 1\n", "a: 1\na: 2", "- a\n- b\n", "1", "x: y: z", "~", "---\na: 1\n---\nb: 1", "d: true\nunknown:\n  e: f\n",
		"a: &x {b: 1}\nb: *x\nc: {<<: *x, a: yes}\n", "a: !x 1", "", "# nothing", "a: .inf", "a:\n- name: b\n",
	},
	v1alpha1.CastQuantity: {"2Gi", "2048Mi", "0.5", "500m", "1e3", "1E", "1Ei", "9e18", "-1k", "1e400", "0.1n", "1.5Ki", "8Ei", "+1", "1."},
}

// hints returns words and values that the rules look for.
func hints(rules *v1alpha1.DeclarativeConverter) (words []string, values []any) {
	for _, spoke := range rules.Spokes {
		for _, rule := range spoke.Rules {
			switch {
			case rule.Format != nil:
				words = append(words, holes.Split(rule.Format.Template, -1)...)
			case rule.Values != nil:
				for _, pair := range rule.Values.Table {
					words = append(words, pair.From, pair.To)
				}
			case rule.Cast != nil:
				words = append(words, castWords[rule.Cast.As]...)
			case rule.CEL != nil:
				words = append(words, "a", "b", "w") // constants of expressions, and the name of the objects
				if rule.CEL.WhenMissing == v1alpha1.CELEvaluate {
					values = append(append(values, generate.Constants...), "w")
				}
			case rule.Default != nil && rule.Default.Value == nil:
				values = append(values, "default", "w") // the namespace and the name of the objects
			case rule.Default != nil:
				if value, err := decodeAny(rule.Default.Value.Raw); err == nil {
					values = append(values, value)
				}
			}
		}
	}
	return words, values
}

// pair chooses two versions.
func (w *world) pair() (from, to string) {
	pair := generate.One(w.Choices, w.ruleset.Pairs()...)
	return pair[0], pair[1]
}

// object generates an object of a version as text. The API server accepts it, unless MisfitEvery is
// set.
func (w *world) object(version string) string {
	object := w.Object(w.schemas[version], "example.com/"+version, "Widget")
	if w.MisfitEvery == 0 {
		w.fit(version, object)
	}
	return string(w.Text(object))
}

// fit removes values that the API server would refuse or prune, because they would not come back
// from an annotation.
func (w *world) fit(version string, object map[string]any) {
	envelope := map[string]any{}
	for _, name := range []string{"apiVersion", "kind", "metadata"} {
		if value, found := object[name]; found {
			envelope[name] = value
		}
		delete(object, name)
	}
	if s := w.converter.ShapeOf(version); s != nil {
		trim(s, object)
	}
	maps.Copy(object, envelope)
}

func fits(s *shape.Schema, value any) bool {
	n, err := tree.NewArena().Read([]byte(generate.Plain(value)))
	return err == nil && s.Fits(n) == nil
}

// trim removes the values that do not fit.
func trim(s *shape.Schema, value any) {
	switch value := value.(type) {
	case map[string]any:
		for name := range value {
			switch member := s.Field(name); {
			case member == nil:
				delete(value, name)
			case !fits(member, value[name]):
				trim(member, value[name])
				if !fits(member, value[name]) {
					delete(value, name)
				}
			}
		}
	case []any:
		if items := s.Items(); items != nil {
			for _, element := range value {
				trim(items, element)
			}
		}
	}
}

// decodeAny reads JSON. Numbers are their text, so that reflect.DeepEqual compares values as they are written.
func decodeAny(text []byte) (value any, err error) {
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.UseNumber()
	if err := decoder.Decode(&value); err != nil {
		return nil, err
	}
	if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("something stands behind the value: %w", err)
	}
	return value, nil
}

func decode(t testing.TB, text string) map[string]any {
	t.Helper()
	value, err := decodeAny([]byte(text))
	object, isObject := value.(map[string]any)
	if err != nil || !isObject {
		t.Fatalf("%v: not a JSON object: %s", err, text)
	}
	return object
}

// withoutServerMetadata decodes an object, without the metadata that the API server restores and
// the converter is not responsible for.
func withoutServerMetadata(t testing.TB, text string) map[string]any {
	t.Helper()
	object := decode(t, text)
	metadata, _ := object["metadata"].(map[string]any)
	object["metadata"] = maps.Collect(func(yield func(string, any) bool) {
		for _, name := range []string{"name", "namespace", "uid", "labels", "annotations"} {
			value, found := metadata[name]
			if texts, isMap := value.(map[string]any); isMap && len(texts) == 0 {
				continue // empty labels are equal to no labels
			}
			if found && !yield(name, value) {
				return
			}
		}
	})
	return object
}

// withoutPreserved returns an object without preserved data.
func withoutPreserved(object map[string]any) map[string]any {
	metadata, _ := object["metadata"].(map[string]any)
	annotations, _ := metadata["annotations"].(map[string]any)
	maps.DeleteFunc(annotations, func(name string, _ any) bool { return strings.HasPrefix(name, conversion.PreservedPrefix) })
	if len(annotations) == 0 {
		delete(metadata, "annotations")
	}
	return object
}

// wantEqual compares two decoded values.
func wantEqual(t testing.TB, want, got any, format string, args ...any) {
	t.Helper()
	if !reflect.DeepEqual(want, got) {
		t.Fatalf(format+"\nwant %s\ngot  %s", append(slices.Clip(args), generate.Plain(want), generate.Plain(got))...)
	}
}

// surviving returns an object without the values that rules drop on the way to a version. An object
// may exist only because of preserved data of that version in it: on the way back through the hub,
// the preserved data is that after the conversion. TestRecorded checks what is preserved in the
// end.
func (w *world) surviving(t testing.TB, object, from, to string) string {
	t.Helper()
	switch {
	case from != w.ruleset.Hub && to != w.ruleset.Hub:
		atHub := w.surviving(t, convert(t, w.converter, object, w.ruleset.Hub), w.ruleset.Hub, to)
		there := convert(t, w.converter, object, to)
		wayBack := convert(t, w.converter, there, w.ruleset.Hub)
		survives := convert(t, w.converter, w.withPreservedOf(t, to, atHub, wayBack), from)
		return w.withPreservedOf(t, to, survives, convert(t, w.converter, there, from))
	case from == w.ruleset.Hub:
		return generate.Plain(withoutDropped(w.rootOf(to), decode(t, object), false))
	}
	return generate.Plain(withoutDropped(w.rootOf(from), decode(t, object), true))
}

func (w *world) spoke(version string) *conversion.Spoke {
	return &w.ruleset.Spokes[slices.IndexFunc(w.ruleset.Spokes, func(spoke conversion.Spoke) bool { return spoke.Version == version })]
}

// rootOf returns the root scope of a spoke.
func (w *world) rootOf(version string) *conversion.Scope { return &w.spoke(version).Root }

func withoutDropped(s *conversion.Scope, value any, ofSpoke bool) any {
	drops := s.DropHub
	if ofSpoke {
		drops = s.DropSpoke
	}
	for _, drop := range drops {
		parent, _ := lookUp(value, drop[:len(drop)-1]).(map[string]any)
		delete(parent, drop[len(drop)-1])
	}
	for i := range s.Collections {
		c := &s.Collections[i]
		switch held := lookUp(value, c.At(!ofSpoke)).(type) {
		case map[string]any:
			if c.Form(!ofSpoke) == conversion.FormOne {
				withoutDropped(&c.Scope, held, ofSpoke)
				continue
			}
			for name := range held {
				withoutDropped(&c.Scope, held[name], ofSpoke)
			}
		case []any:
			for _, element := range held {
				withoutDropped(&c.Scope, element, ofSpoke)
			}
		}
	}
	return value
}

// annotationsOf returns the annotations of an object, nil if it has none.
func annotationsOf(object map[string]any) map[string]any {
	annotations, _ := lookUp(object, conversion.Path{"metadata", "annotations"}).(map[string]any)
	return annotations
}

func lookUp(value any, at conversion.Path) any {
	for _, name := range at {
		object, _ := value.(map[string]any)
		value = object[name]
	}
	return value
}

// TestWorlds checks that random worlds have what the laws are about: moved objects, lists and maps with rules for fields
// in them, moves to fields that allow more, elements that are excluded, and expressions for missing fields.
func TestWorlds(t *testing.T) {
	made := worldParts{}
	for seed := range uint64(100) {
		for _, kind := range []uint64{generate.Nested, generate.Nested | generate.Selecting, generate.Expressions} {
			crd, rules := randomWorld(t, generate.Choose(kind|seed, nil))
			for _, spoke := range compile.Compile(crd, rules).Ruleset.Spokes {
				made.addScope(t, &spoke.Root, "")
			}
		}
	}
	for kind, least := range map[string]int{
		"renamed": 10, "renamed in elements": 10, "a renamed key": 10,
		"an object in another": 10, "in another object": 10, "in another object in elements": 10, "moved to what allows more": 10,
		"a list and a map": 2, "another form": 10, "elements as a whole": 4, "excluded of the spoke": 4, "excluded of the hub": 4, "excluded by values": 4, "excluded in elements": 2, "excluded in another object": 2,
		"moved from one element": 3, "moved to one element": 10, "computed from one element, or for it": 5,
		"of missing fields": 4, "of missing fields in elements": 2, "of missing fields of the spoke": 4, "of missing fields of the hub": 4,
	} {
		if made[kind] < least {
			t.Errorf("%s: %d, want %d among %v", kind, made[kind], least, made)
		}
	}
}

// worldParts counts what worlds have.
type worldParts map[string]int

func (made worldParts) addIf(is bool, kind string) {
	if is {
		made[kind]++
	}
}

// addScope counts the parts of a scope. In is empty, or " in elements".
func (made worldParts) addScope(t *testing.T, scope *conversion.Scope, in string) {
	t.Helper()
	for _, move := range scope.Moves {
		made.addIf(slices.ContainsFunc(move.Spoke, conversion.IsSelector), "moved from one element"+in)
		made.addIf(slices.ContainsFunc(move.Hub, conversion.IsSelector), "moved to one element"+in)
	}
	for i := range scope.Exchanges {
		for _, field := range slices.Concat(scope.Exchanges[i].Spoke, scope.Exchanges[i].Hub) {
			made.addIf(slices.ContainsFunc(field.Path, conversion.IsSelector), "computed from one element, or for it"+in)
		}
		cel := scope.Exchanges[i].CEL
		made.addIf(scope.Exchanges[i].Common != nil, "moved to what allows more")
		if cel == nil || !cel.WhenMissing {
			continue
		}
		ofSpoke, ofHub, err := cel.FromNothing(nil, nil)
		expect.NoError(t, err)
		made["of missing fields"]++
		made.addIf(in != "", "of missing fields"+in)
		made["of missing fields of the spoke"] += len(ofSpoke)
		made["of missing fields of the hub"] += len(ofHub)
	}
	for i := range scope.Collections {
		c := &scope.Collections[i]
		made.addIf(c.IsOne(), "an object in another")
		made.addIf(c.SpokeForm != c.HubForm && (c.SpokeForm == conversion.FormMap || c.HubForm == conversion.FormMap), "a list and a map")
		made.addIf(c.SpokeForm != c.HubForm && !c.IsOne(), "another form")
		made.addIf(slices.ContainsFunc(c.Scope.Exchanges, func(x conversion.Exchange) bool { return len(x.Spoke[0].Path)*len(x.Hub[0].Path) == 0 }), "elements as a whole")
		made.addIf(slices.ContainsFunc(c.Scope.Moves, func(m conversion.Move) bool { return len(m.Hub) == 1 && slices.Contains(c.Keys, m.Hub[0]) }), "a renamed key")
		moves := !slices.Equal(c.Spoke, c.Hub)
		elsewhere := moves && !slices.Equal(c.Spoke[:len(c.Spoke)-1], c.Hub[:len(c.Hub)-1])
		made.addIf(moves && !elsewhere, "renamed")
		made.addIf(moves && !elsewhere && in != "", "renamed"+in)
		made.addIf(elsewhere, "in another object")
		made.addIf(elsewhere && in != "", "in another object"+in)
		made.addIf(c.ExcludeSpoke != nil, "excluded of the spoke")
		made.addIf(c.ExcludeHub != nil, "excluded of the hub")
		for _, x := range []*conversion.Exclusion{c.ExcludeSpoke, c.ExcludeHub} {
			made.addIf(x != nil && len(x.Values) > 0, "excluded by values")
			made.addIf(x != nil && in != "", "excluded"+in)
			made.addIf(x != nil && moves, "excluded in another object")
		}
		inside := in
		if !c.IsOne() {
			inside = " in elements"
		}
		made.addScope(t, &c.Scope, inside)
	}
}
