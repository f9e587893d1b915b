// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package conversion_test

import (
	"strings"
	"testing"

	"github.com/conversion-operator/conversion-operator/internal/engine/conversion"
	"github.com/conversion-operator/conversion-operator/internal/engine/conversion/internal/generate"
	"github.com/conversion-operator/conversion-operator/internal/test/expect"
	"github.com/conversion-operator/conversion-operator/internal/test/rulecases"
)

// roundTripTest converts an object from v1 or v2 to the other version, and back.
type roundTripTest struct{ from, object, want string }

// check gives the object a name, so that it is whole.
func (test roundTripTest) check(t *testing.T, c *conversion.Converter) {
	t.Helper()
	object := named(test.from, "", test.object)
	wantRoundTrip(t, c, test.from, object, test.want, object)
}

// roundTrips are objects by what they have.
type roundTrips map[string]roundTripTest

func (tests roundTrips) check(t *testing.T, c *conversion.Converter) {
	t.Helper()
	for name, test := range tests {
		t.Run(name, func(t *testing.T) { test.check(t, c) })
	}
}

// wantRoundTrip converts an object from v1 or v2 to the other version, where it must be want, and back.
func wantRoundTrip(t *testing.T, c *conversion.Converter, from, object, want, back string) {
	t.Helper()
	there := convert(t, c, object, other(from))
	if !sameJSON(t, want, there) {
		t.Errorf("%s\nis at %s\n%s\nwant\n%s", object, other(from), there, want)
	}
	wantConverted(t, c, there, from, back)
}

// misfitTest converts a value that the schema of its version refuses: if the other version does not
// have the field, the value stays in the annotation.
type misfitTest struct {
	roundTripTest
	back string
}

func (test misfitTest) check(t *testing.T, c *conversion.Converter) {
	t.Helper()
	wantRoundTrip(t, c, test.from, named(test.from, "", test.object), test.want, test.back)
}

type misfits map[string]misfitTest

func (tests misfits) check(t *testing.T, c *conversion.Converter) {
	t.Helper()
	for name, test := range tests {
		t.Run(name, func(t *testing.T) { test.check(t, c) })
	}
}

// toSpoke are objects that are wanted at v1, by what they have.
type toSpoke map[string]struct{ object, want string }

func (tests toSpoke) check(t *testing.T, c *conversion.Converter) {
	t.Helper()
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			wantConverted(t, c, test.object, "v1", test.want)
		})
	}
}

// named encodes an object with a name, and preserved data as in annotated.
func named(version, preserved, fields string) string {
	return withName(annotated(version, preserved, fields))
}

// TestKinds converts the objects of each kind of rule.
func TestKinds(t *testing.T) {
	for _, kind := range rulecases.All(t) {
		for _, of := range kind.Conversions {
			c := converterOf(t, between(t, string(of.V1), string(of.V2), string(of.Rules)))
			for _, object := range of.Objects {
				t.Run(kind.Name+": "+of.Name+": "+object.Name, func(t *testing.T) { checkObject(t, c, object) })
			}
		}
	}
}

func checkObject(t *testing.T, c *conversion.Converter, of rulecases.Object) {
	t.Helper()
	const some = " {}"
	from, preserved, back := "v1", "", ""
	if of.From != "" {
		from, of.V1, of.V2 = of.From, of.V2, of.V1
	}
	if of.Preserved {
		preserved = from + some
	}
	object := named(from, "", of.V1)
	there, want := convert(t, c, object, other(from)), object
	if of.Edit != nil {
		edited := decode(t, named(other(from), "", *of.Edit))
		edited["metadata"] = decode(t, there)["metadata"]
		there = generate.Plain(edited)
	} else if at := named(other(from), preserved, of.V2); !sameJSON(t, at, there) {
		t.Errorf("%s\nis at %s\n%s\nwant\n%s", object, other(from), there, at)
	}
	if of.Stays {
		back = from + some
	}
	if of.Back != nil {
		want = named(from, back, *of.Back)
	}
	wantConverted(t, c, there, from, want)
}

// TestDefaultOfFragment converts an object without name and uid: defaults are not filled in.
func TestDefaultOfFragment(t *testing.T) {
	c := converterOf(t, between(t, "x: {type: string}", "x: {type: string}, mode: {type: string}", `{default: {to: .mode, value: Standard}}`))
	wantBytes(t, c, widget("v1", `"x":"1"`), "v2", widget("v2", `"x":"1"`))
	fragment := widget("v2", `"mode":"Standard"`)
	got := convert(t, c, fragment, "v1")
	wantConverted(t, c, fragment, "v1", annotated("v1", `v2 {"/mode":"Standard"}`, ""))
	expect.Equal(t, "back", fragment, convert(t, c, got, "v2"))
}

// TestDefaultInRestored has an absent field that a rule fills in. The object around it is empty at
// the other version, where it is a preserved object.
func TestDefaultInRestored(t *testing.T) {
	c := converterOf(t, between(t, "image: {type: string}, box: {type: object, properties: {own: {type: string}}}",
		"box: {type: object, properties: {image: {type: string}, lid: {type: string}}}",
		"{move: {from: .image, to: .box.image}}, {default: {to: .box.lid, value: closed}}"))
	object := named("v2", `v1 {"/box":{}}`, `"box":{"image":"1"}`)
	wantRoundTrip(t, c, "v2", object, named("v1", `v2 {"!/box/lid":true}`, `"image":"1","box":{}`), object)
}

// TestDefaultsFromMetadata has fields that get the name and the namespace of the object.
func TestDefaultsFromMetadata(t *testing.T) {
	c := converterOf(t, between(t, "o: {type: object, properties: {a: {type: string}, ns: {type: string}}}, me: {type: string}",
		"o: {type: object, properties: {a: {type: string}}}, l: {type: array, items: {type: object, properties: {b: {type: string}}}}",
		`{default: {from: .o.ns, valueFrom: .metadata.namespace}}, {default: {from: .me, valueFrom: .metadata.name}}`))
	at := func(version, annotations, fields string) string {
		if annotations != "" {
			owner, values, _ := strings.Cut(annotations, " ")
			annotations = `,"annotations":{"` + conversion.AnnotationName("widgets.example.com", owner) + `":` + quoted(preservedText(values)) + `}`
		}
		return `{"apiVersion":"example.com/` + version + `","kind":"Widget","metadata":{"name":"w","namespace":"n"` + annotations + `},` + fields + `}`
	}
	for name, test := range map[string]struct{ from, to, object, there string }{
		"filled":                 {"v2", "v1", at("v2", "", `"o":{"a":"x"}`), at("v1", "", `"o":{"a":"x","ns":"n"},"me":"w"`)},
		"without the parent":     {"v2", "v1", at("v2", "", `"l":[]`), at("v1", `v2 {"/l":[]}`, `"me":"w"`)},
		"another value":          {"v1", "v2", at("v1", "", `"o":{"ns":"other"},"me":"w"`), at("v2", `v1 {"/o/ns":"other"}`, `"o":{}`)},
		"no value":               {"v1", "v2", at("v1", "", `"o":{}`), at("v2", `v1 {"!/me":0,"!/o/ns":0}`, `"o":{}`)},
		"removed on the way":     {"v1", "v2", at("v1", "", `"o":{"ns":"n"},"me":"w"`), at("v2", "", `"o":{}`)},
		"the name of the object": {"v1", "v2", at("v1", "", `"o":{"ns":"w"},"me":"n"`), at("v2", `v1 {"/me":"n","/o/ns":"w"}`, `"o":{}`)},
	} {
		t.Run(name, func(t *testing.T) {
			wantConverted(t, c, test.object, test.to, test.there)
			wantConverted(t, c, test.there, test.from, test.object)
		})
	}
	for _, metadata := range []string{`{"uid":"u"}`, `{"uid":"u","name":"","namespace":7}`, `{"name":"w","uid":"u","namespace":null}`} {
		object := `{"apiVersion":"example.com/v2","kind":"Widget","metadata":` + metadata + `,"o":{"a":"x"}}`
		if got := convert(t, c, object, "v1"); strings.Contains(got, `"ns"`) {
			t.Errorf("an object without a namespace got one: %s", got)
		}
	}
	// A fragment, as server-side apply sends it, has no uid but a name.
	if got := convert(t, c, `{"apiVersion":"example.com/v2","kind":"Widget","metadata":{},"o":{"a":"x"}}`, "v1"); strings.Contains(got, "ns") {
		t.Errorf("a fragment got a default: %s", got)
	}
}

// TestLabels moves values into labels, which restrict their values.
func TestLabels(t *testing.T) {
	c := converterOf(t, between(t, "a: {type: string}, b: {type: string}", "c: {type: string}",
		`{move: {from: .a, to: '.metadata.labels["a"]'}}, {move: {from: .b, to: '.metadata.annotations["b"]'}}, {move: {from: '.metadata.labels["c"]', to: .c}}`))
	roundTrips{
		"legal":        {"v1", `"a":"x-1","b":"any text, /"`, `{"apiVersion":"example.com/v2","kind":"Widget","metadata":{"name":"w","labels":{"a":"x-1"},"annotations":{"b":"any text, /"}}}`},
		"illegal":      {"v1", `"a":"no label"`, named("v2", `v1 {"/a":"no label"}`, ``)},
		"too long":     {"v1", `"a":"` + strings.Repeat("x", 64) + `"`, named("v2", `v1 {"/a":"`+strings.Repeat("x", 64)+`"}`, ``)},
		"from the hub": {"v2", `"c":"no label"`, named("v1", `v2 {"/c":"no label"}`, ``)},
	}.check(t, c)
	misfits{
		"null": {roundTripTest{"v1", `"a":null,"b":null`, named("v2", `v1 {"/a":null,"/b":null}`, ``)}, named("v1", `v1 {"/a":null,"/b":null}`, ``)},
	}.check(t, c)
	forged := annotated("v1", `v2 {"/metadata/labels/a":"no label"}`, `"a":"x"`)
	wantAnyPreserved(t, "forged", `{"apiVersion":"example.com/v2","kind":"Widget","metadata":{"labels":{"a":"x"}}}`, convert(t, c, forged, "v2"))
}

// TestEmptySharedObject has an empty object that is preserved unless it comes back because of the
// image of a restored value in it.
func TestEmptySharedObject(t *testing.T) {
	const label = `{move: {from: .spec.c, to: '.metadata.annotations["l"]'}}`
	const object = `{"apiVersion":"example.com/v2","kind":"Widget","metadata":{"annotations":{"conversion-operator.io/v1.widgets.example.com":` +
		`"{\"format\":3,\"rules\":\"\",\"hidden\":{\"/f\":\"x\",\"/spec/c\":\"y\"}}"}},"spec":{}}`
	for name, test := range map[string]struct{ f, inSpec, rules, want string }{
		"without an image": {"{type: string}", "g: {type: string}", label,
			`{"apiVersion":"example.com/v1","kind":"Widget","metadata":{"annotations":{"conversion-operator.io/v2.widgets.example.com":"{\"format\":3,\"rules\":\"\",\"hidden\":{\"/spec\":{}}}"}},"spec":{"c":"y"},"f":"x"}`},
		"the image of a table": {"{type: string}", "f: {type: string}", label + ", {values: {from: .f, to: .spec.f, table: [{from: a, to: b}]}}",
			`{"apiVersion":"example.com/v1","kind":"Widget","metadata":{},"spec":{"c":"y"},"f":"x"}`},
		"the image of a move": {"{x-kubernetes-int-or-string: true}", "f: {type: string}", label + ", {move: {from: .f, to: .spec.f}}",
			`{"apiVersion":"example.com/v1","kind":"Widget","metadata":{},"spec":{"c":"y"},"f":"x"}`},
	} {
		t.Run(name, func(t *testing.T) {
			c := converterOf(t, between(t, "f: "+test.f+", spec: {type: object, properties: {c: {type: string}}}",
				"spec: {type: object, properties: {"+test.inSpec+"}}", test.rules))
			wantAnyPreserved(t, "at v1", test.want, convert(t, c, object, "v1"))
		})
	}
}
