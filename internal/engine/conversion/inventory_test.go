// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package conversion_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/conversion-operator/conversion-operator/internal/engine/conversion"
	"github.com/conversion-operator/conversion-operator/internal/engine/conversion/compile"
	"github.com/conversion-operator/conversion-operator/internal/test/expect"
)

const preservedV1 = "conversion-operator.io/v1.widgets.example.com"

func inventoryResult(t *testing.T) compile.Result {
	return between(t,
		"spec: {type: object, properties: {a: {type: string}, note: {type: string}, mode: {type: string}, size: {type: string}, both: {type: string}}},"+
			" ports: {type: array, items: {type: object, properties: {name: {type: string}, w: {type: integer}}}},"+
			" pools: {type: object, additionalProperties: {type: object, properties: {cpu: {type: integer}, own: {type: string}}}}",
		"spec: {type: object, properties: {b: {type: string}, kind: {type: string}, both: {type: string}}},"+
			" ports: {type: array, items: {type: object, properties: {name: {type: string}}}},"+
			" pools: {type: object, additionalProperties: {type: object, properties: {cpu: {type: integer}}}}",
		"{move: {from: .spec.a, to: .spec.b}}, {values: {from: .spec.mode, to: .spec.kind, table: [{from: A, to: B}]}}, {drop: {from: .spec.size}}")
}

func TestPlaces(t *testing.T) {
	places, err := conversion.NewPlaces(inventoryResult(t).Ruleset, "v2")
	expect.NoError(t, err)
	for field, want := range map[string]conversion.Place{
		".spec.a": conversion.WholePlace, ".spec.both": conversion.WholePlace, ".spec.note": conversion.NoPlace, ".spec.note.deep": conversion.NoPlace,
		".spec.mode": conversion.SomePlace, ".spec.size": conversion.NoPlace, ".spec.gone": conversion.NoPlace, ".spec": conversion.SomePlace,
		".ports[*]": conversion.SomePlace, ".ports[*].name": conversion.WholePlace, ".ports[*].w": conversion.NoPlace,
		".pools[*].own": conversion.NoPlace, ".pools[*].cpu": conversion.WholePlace, `.metadata.labels["a"]`: conversion.WholePlace, "no path": conversion.NoPlace,
	} {
		expect.Equal(t, "place of "+field, want, places.Of("v1", field))
	}
	expect.Equal(t, "a field of the stored version itself has place", conversion.WholePlace, places.Of("v2", ".spec.kind"))
	for field, want := range map[string]bool{".spec.note": true, ".pools[*].own": true, ".spec.gone": false, "no path": false} {
		expect.Equal(t, "that v1 has "+field, want, places.Has("v1", field))
	}
	expect.Equal(t, "that a schema which is not known has a field", true, places.Has("v3", ".spec.gone"))
	expect.Equal(t, "a field of an unknown version has place", conversion.NoPlace, places.Of("v3", ".spec.a"))
}

func TestPreservedIn(t *testing.T) {
	c := converterOf(t, inventoryResult(t))
	text := `{"format":3,"values":{"/spec/note":"precious","/ports/[#0011223344556677]/w":7,"/pools/x~1y/own":"1","/pools/z/own":"2"},"absent":{"/spec/mode":""}}`
	want := []conversion.Preserved{{
		Version: "v1", Bytes: len(text),
		Fields: []string{".pools[*].own", ".ports[*].w", ".spec.mode", ".spec.note"}, Values: []string{".pools[*].own", ".ports[*].w", ".spec.note"},
	}}
	expect.Equal(t, "held", want, c.PreservedIn(map[string]string{preservedV1: text, "conversion-operator.io/v1.others.example.com": text}))
	want = []conversion.Preserved{{Version: "v1", Bytes: len("garbage"), Unreadable: true}}
	expect.Equal(t, "garbage", want, c.PreservedIn(map[string]string{preservedV1: "garbage"}))
}

func TestUnplaced(t *testing.T) {
	c := converterOf(t, between(t, "spec: {type: object, properties: {note: {type: string, maxLength: 5}}}, pools: {type: object, additionalProperties: {type: object, properties: {cpu: {type: integer}}}}",
		"spec: {type: object, properties: {note: {type: string}}}", ""))
	text := `{"format":3,"values":{"/spec/note":"too long","/spec/gone":1,"/pools/z/cpu":"text","/pools/y/cpu":7},"absent":{"/spec/mode":""}}`
	var got []string
	for _, one := range c.Unplaced(map[string]string{preservedV1: text}, "v1") {
		said := one.Field
		if one.Misfit != nil {
			said += ": " + one.Misfit.Error()
		}
		got = append(got, said)
	}
	slices.Sort(got)
	want := []string{".pools[*].cpu", ".pools[*].cpu: the value must be an integer, not a string", ".spec.gone", ".spec.note: the value is too long"}
	expect.Equal(t, "unplaced", want, got)
	expect.Equal(t, "unplaced of an unknown version", nil, c.Unplaced(map[string]string{preservedV1: text}, "v3"))
}

func TestWithoutPreserved(t *testing.T) {
	c := converterOf(t, inventoryResult(t))
	two := `{"format":3,"values":{"/ports/[#0011223344556677]/w":7,"/spec/note":"precious"},"rules":"x"}`
	one := `{"format":3,"rules":"x","values":{"/ports/[#0011223344556677]/w":7}}`
	long := `{"format":3,"values":{"/spec/note":"` + strings.Repeat("long ", 8<<10) + `","/ports/[#0011223344556677]/w":7}}`
	for name, test := range map[string]struct {
		annotations map[string]string
		accepted    []string
		want        map[string]*string
	}{
		"nothing accepted":      {map[string]string{preservedV1: two}, nil, nil},
		"another field":         {map[string]string{preservedV1: two}, []string{".spec.notes", ".spec.note.deep"}, nil},
		"one of two":            {map[string]string{preservedV1: two}, []string{".spec.note"}, map[string]*string{preservedV1: &one}},
		"all that is below":     {map[string]string{preservedV1: two}, []string{".spec", ".ports"}, map[string]*string{preservedV1: nil}},
		"elements":              {map[string]string{preservedV1: two}, []string{".spec.note", ".ports[*]"}, map[string]*string{preservedV1: nil}},
		"what cannot be read":   {map[string]string{preservedV1: "garbage"}, []string{".spec"}, nil},
		"of another kind":       {map[string]string{"conversion-operator.io/v1.others.example.com": two}, []string{".spec"}, nil},
		"of the other version":  {map[string]string{"conversion-operator.io/v2.widgets.example.com": two}, []string{".spec"}, nil},
		"what is carried on":    {map[string]string{preservedV1: `{"format":3,"values":{"/spec/note":1},"unreadable":"x"}`}, []string{".spec"}, map[string]*string{preservedV1: new(`{"format":3,"unreadable":"x"}`)}},
		"what becomes readable": {map[string]string{preservedV1: long}, []string{".spec.note"}, map[string]*string{preservedV1: new(`{"format":3,"rules":"","values":{"/ports/[#0011223344556677]/w":7}}`)}},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := c.WithoutPreserved(test.annotations, "v1", test.accepted)
			expect.NoError(t, err)
			expect.Equal(t, "changes", test.want, got)
		})
	}
	_, err := c.WithoutPreserved(nil, "v1", []string{"spec"})
	expect.Equal(t, "that a path which is none is accepted", false, err == nil)
}

func TestHoldings(t *testing.T) {
	var h conversion.Holdings
	h.Add("ns/a", nil)
	h.Add("ns/b", []conversion.Preserved{{Version: "v1", Bytes: 10, Fields: []string{".a", ".b"}}})
	h.Add("ns/c", []conversion.Preserved{{Version: "v1", Bytes: 7, Fields: []string{".b"}}, {Version: "v0", Bytes: 5, Unreadable: true}})
	before := h.Clone()
	for i := range conversion.MaxCounted + 1 {
		h.Add("ns/d", []conversion.Preserved{{Version: "v2", Bytes: 1, Fields: []string{"." + strings.Repeat("x", i+1)}}})
	}
	want := &conversion.Holdings{Seen: 3, Objects: 2, Bytes: 22, Largest: "ns/c", LargestBytes: 12, Versions: []conversion.VersionHoldings{
		{Version: "v0", Objects: 1, Bytes: 5, Unreadable: 1},
		{Version: "v1", Objects: 2, Bytes: 17, Fields: []conversion.FieldHoldings{{".a", 1}, {".b", 2}}},
	}}
	expect.Equal(t, "holdings", want, before)
	if last := h.Versions[2]; len(last.Fields) != conversion.MaxCounted || !last.More {
		t.Errorf("%d fields are counted, more: %t", len(last.Fields), last.More)
	}
	if got := conversion.ShortPath(".spec" + strings.Repeat(".deeper", 100)); len(got) > conversion.MaxPath || !strings.HasSuffix(got, ".deeper") {
		t.Errorf("a long path becomes %s", got)
	}
}
