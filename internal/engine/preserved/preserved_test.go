// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package preserved

import (
	"bytes"
	"compress/flate"
	"encoding/base64"
	"encoding/json"
	"testing"

	"github.com/conversion-operator/conversion-operator/internal/engine/conversion"
	"github.com/conversion-operator/conversion-operator/internal/test/expect"
)

var widgets = Resource{Name: "widgets.example.com", Versions: []string{"v1", "v2"}}

// object returns an object with annotations and a spec.
func object(t *testing.T, annotations map[string]string, spec string) any {
	t.Helper()
	text, err := json.Marshal(annotations)
	expect.NoError(t, err)
	decoded, err := Decode([]byte(`{"metadata":{"name":"a","annotations":` + string(text) + `},"spec":` + spec + `}`))
	expect.NoError(t, err)
	return decoded
}

func deflated(t *testing.T, text string) string {
	t.Helper()
	var packed bytes.Buffer
	writer, err := flate.NewWriter(&packed, flate.BestCompression)
	expect.NoError(t, err)
	_, _ = writer.Write([]byte(text))
	expect.NoError(t, writer.Close())
	return `{"format":2,"deflate":"` + base64.StdEncoding.EncodeToString(packed.Bytes()) + `"}`
}

func TestEntries(t *testing.T) {
	const own = "conversion-operator.io/v1.widgets.example.com"
	for name, test := range map[string]struct {
		annotations map[string]string
		want        []string
		unreadable  []string
		dropped     []string
	}{
		"none":      {nil, nil, nil, nil},
		"all kinds": {map[string]string{own: `{"format":2,"fields":{"/a":1},"absent":["/b"],"orders":{"/c":["x"]},"dropped":["/d"]}`}, []string{"/a Value 1", "/b Absence ", `/c Order ["x"]`}, nil, []string{"/d"}},
		"compressed": {
			map[string]string{own: deflated(t, `{"format":2,"fields":{"/a":1},"dropped":["/d"]}`)}, []string{"/a Value 1"}, nil, []string{"/d"},
		},
		"excluded":           {map[string]string{own: `{"format":2,"excluded":{"/l/1":{"a":1}}}`}, []string{`/l/1 Excluded {"a":1}`}, nil, nil},
		"a later format":     {map[string]string{own: `{"format":3,"fields":{"/a":1}}`}, nil, []string{"v1"}, nil},
		"no JSON":            {map[string]string{own: `{`}, nil, []string{"v1"}, nil},
		"carried on text":    {map[string]string{own: `{"format":2,"fields":{"/a":1},"unreadable":"{"}`}, []string{"/a Value 1"}, []string{"v1"}, nil},
		"of a third version": {map[string]string{"conversion-operator.io/v3.widgets.example.com": `{"format":2,"fields":{"/a":1}}`}, nil, nil, nil},
		"of another kind":    {map[string]string{"conversion-operator.io/v1.gadgets.example.com": `{"format":2,"fields":{"/a":1}}`}, nil, nil, nil},
	} {
		t.Run(name, func(t *testing.T) {
			object := object(t, test.annotations, "{}")
			var got []string
			for _, e := range widgets.Entries(object, "v1") {
				got = append(got, e.Pointer+" "+string(e.Kind)+" "+string(e.Value))
			}
			expect.Equal(t, "entries", test.want, got)
			expect.Equal(t, "unreadable", test.unreadable, widgets.Unreadable(object))
			expect.Equal(t, "dropped", test.dropped, conversion.Dropped(Annotations(object), widgets.Name, "v1"))
		})
	}
}

func TestFateAt(t *testing.T) {
	const own = "conversion-operator.io/v1.widgets.example.com"
	before := object(t, nil, `{"l":[{"b":2}]}`)
	value := func(pointer, value string, anchor int) conversion.Entry {
		return conversion.Entry{Pointer: pointer, Kind: conversion.EntryValue, Value: []byte(value), Anchor: anchor}
	}
	element := func(pointer, value, became string) conversion.Entry {
		return conversion.Entry{Pointer: pointer, Kind: conversion.EntryValue, Value: []byte(value), Anchor: 2, Digest: conversion.Digest([]byte(became))}
	}
	excluded := func(pointer, value string) conversion.Entry {
		return conversion.Entry{Pointer: pointer, Kind: conversion.EntryExcluded, Value: []byte(value)}
	}
	for name, test := range map[string]struct {
		entry conversion.Entry
		after any
		want  Fate
	}{
		"restored":                 {value("/spec/a", "1", 1), object(t, nil, `{"a":1}`), Data},
		"superseded":               {value("/spec/a", "1", 1), object(t, nil, `{"a":2}`), Superseded},
		"carried on":               {value("/spec/a", "1", 1), object(t, map[string]string{own: `{"format":2,"fields":{"/spec/a":1}}`}, `{}`), CarriedOn},
		"a part is carried on":     {value("/spec/a", `{"b":1}`, 1), object(t, map[string]string{own: `{"format":2,"fields":{"/spec/a/b":1}}`}, `{"a":{}}`), CarriedOn},
		"another value":            {value("/spec/a", "1", 1), object(t, map[string]string{own: `{"format":2,"fields":{"/spec/a":2}}`}, `{}`), Lost},
		"lost":                     {value("/spec/a", "1", 1), object(t, nil, `{}`), Lost},
		"its object is gone":       {value("/spec/o/a", "1", 2), object(t, nil, `{}`), Deleted},
		"its anchor is there":      {value("/spec/o/a", "1", 1), object(t, nil, `{}`), Lost},
		"in an element":            {value(`/spec/l/[name="x~1y",port=80]/a`, "1", 3), object(t, nil, `{"l":[{"name":"x/y","port":80,"a":1}]}`), Data},
		"lost in an element":       {value(`/spec/l/[name="x",port=80]/a`, "1", 3), object(t, nil, `{"l":[{"name":"x","port":80}]}`), Lost},
		"its element is gone":      {value(`/spec/l/[name="x"]/a`, "1", 3), object(t, nil, `{"l":[{"name":"y"}]}`), Deleted},
		"an element as a whole":    {value("/spec/l/0", `{"a":1,"b":2}`, 2), object(t, nil, `{"l":[{"b":2},{"a":1,"b":2}]}`), Data},
		"a part of an element":     {element("/spec/l/0", `{"a":1,"b":2}`, `{"b":2}`), object(t, nil, `{"l":[{"b":2}]}`), Lost},
		"an element that differs":  {value("/spec/l/0", `{"a":1,"b":2}`, 2), object(t, nil, `{"l":[{"b":3}]}`), Superseded},
		"an absence":               {conversion.Entry{Pointer: "/spec/a", Kind: conversion.EntryAbsence}, object(t, nil, `{}`), Data},
		"an excluded element":      {excluded("/spec/l/7", `{"a":1}`), object(t, nil, `{"l":[{"b":2},{"a":1}]}`), Data},
		"one that is lost":         {excluded("/spec/l/0", `{"a":1}`), object(t, nil, `{"l":[{"a":1,"b":2}]}`), Lost},
		"one with its list":        {excluded("/spec/l/0", `{"a":1}`), object(t, nil, `{}`), Lost},
		"one with its object":      {excluded("/spec/o/l/0", `{"a":1}`), object(t, nil, `{}`), Deleted},
		"one is carried on":        {excluded("/spec/l/0", `{"a":1}`), object(t, map[string]string{own: `{"format":2,"excluded":{"/spec/l/0":{"a":1}}}`}, `{}`), CarriedOn},
		"an escaped name is there": {value("/spec/a~1b", "1", 1), object(t, nil, `{"a/b":1}`), Data},
	} {
		t.Run(name, func(t *testing.T) {
			expect.Equal(t, "fate", test.want, widgets.FateAt(test.entry, "v1", before, test.after))
		})
	}
}
