// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package preserved

import (
	"encoding/json"
	"strconv"
	"testing"

	"github.com/conversion-operator/conversion-operator/internal/engine/conversion"
	"github.com/conversion-operator/conversion-operator/internal/engine/preserve"
	"github.com/conversion-operator/conversion-operator/internal/engine/tree"
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

func TestEntries(t *testing.T) {
	const own = "conversion-operator.io/v1.widgets.example.com"
	for name, test := range map[string]struct {
		annotations map[string]string
		want        []string
		unreadable  []string
		dropped     []string
	}{
		"none": {nil, nil, nil, nil},
		"all kinds": {
			map[string]string{own: `{"format":3,"hidden":{"/a":1,"/l/[1]":{"a":1}},"absent":{"/b":"12345678"},"orders":{"/c":["x"]},"dropped":["/d"]}`},
			[]string{"/a 0", "/b 1", "/c 3", "/l 2"}, nil, []string{"/d"},
		},
		"a later format":     {map[string]string{own: `{"format":4,"values":{"/a":1}}`}, nil, []string{"v1"}, nil},
		"no JSON":            {map[string]string{own: `{`}, nil, []string{"v1"}, nil},
		"carried on text":    {map[string]string{own: `{"format":3,"values":{"/a":1},"unreadable":"{"}`}, []string{"/a 0"}, []string{"v1"}, nil},
		"of a third version": {map[string]string{"conversion-operator.io/v3.widgets.example.com": `{"format":3,"values":{"/a":1}}`}, nil, nil, nil},
		"of another kind":    {map[string]string{"conversion-operator.io/v1.gadgets.example.com": `{"format":3,"values":{"/a":1}}`}, nil, nil, nil},
	} {
		t.Run(name, func(t *testing.T) {
			object := object(t, test.annotations, "{}")
			var got []string
			for _, e := range widgets.Entries(object, "v1") {
				got = append(got, e.At.Pointer()+" "+strconv.Itoa(int(e.Kind)))
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
	entry := func(of preserve.Kind, pointer, value string) preserve.Entry {
		e := preserve.Entry{Kind: of}
		var ok bool
		if e.At, ok = preserve.ParsePointer(pointer); !ok {
			t.Fatal(pointer)
		}
		var err error
		e.Value, err = tree.NewArena().Read([]byte(value))
		expect.NoError(t, err)
		return e
	}
	value := func(pointer, value string) preserve.Entry { return entry(preserve.Value, pointer, value) }
	insert := func(pointer, value string) preserve.Entry { return entry(preserve.Insert, pointer, value) }
	digest := conversion.Digest([]byte(`{"b":2}`))
	for name, test := range map[string]struct {
		entry preserve.Entry
		after any
		want  Fate
	}{
		"restored":                 {value("/spec/a", "1"), object(t, nil, `{"a":1}`), Data},
		"superseded":               {value("/spec/a", "1"), object(t, nil, `{"a":2}`), Superseded},
		"carried on":               {value("/spec/a", "1"), object(t, map[string]string{own: `{"format":3,"values":{"/spec/a":1}}`}, `{}`), CarriedOn},
		"a part is carried on":     {value("/spec/a", `{"b":1}`), object(t, map[string]string{own: `{"format":3,"values":{"/spec/a/b":1}}`}, `{"a":{}}`), CarriedOn},
		"another value":            {value("/spec/a", "1"), object(t, map[string]string{own: `{"format":3,"values":{"/spec/a":2}}`}, `{}`), Lost},
		"lost":                     {value("/spec/a", "1"), object(t, nil, `{}`), Lost},
		"its object is gone":       {value("/spec/o/a", "1"), object(t, nil, `{}`), Deleted},
		"in an element":            {value(`/spec/l/[name="x~1y",port=80]/a`, "1"), object(t, nil, `{"l":[{"name":"x/y","port":80,"a":1}]}`), Data},
		"lost in an element":       {value(`/spec/l/[name="x",port=80]/a`, "1"), object(t, nil, `{"l":[{"name":"x","port":80}]}`), Lost},
		"its element is gone":      {value(`/spec/l/[name="x"]/a`, "1"), object(t, nil, `{"l":[{"name":"y"}]}`), Deleted},
		"in a scalar":              {value(`/spec/l/[="x"]`, `"y"`), object(t, nil, `{"l":["y"]}`), Lost},
		"in an element with none":  {value("/spec/l/[#"+digest+"]/a", "1"), object(t, nil, `{"l":[{"b":2},{"a":1,"b":2}]}`), Data},
		"lost in one with none":    {value("/spec/l/[#"+digest+"]/a", "1"), object(t, nil, `{"l":[{"a":2}]}`), Lost},
		"another one with none":    {value("/spec/l/[#0123456789abcdef]/a", "1"), object(t, nil, `{"l":[{"a":2}]}`), Deleted},
		"an absence":               {entry(preserve.Absent, "/spec/a", "1"), object(t, nil, `{}`), Data},
		"an element":               {insert("/spec/l", `{"a":1}`), object(t, nil, `{"l":[{"b":2},{"a":1}]}`), Data},
		"one that is lost":         {insert("/spec/l", `{"a":1}`), object(t, nil, `{"l":[{"b":2}]}`), Lost},
		"one with its list":        {insert("/spec/l", `{"a":1}`), object(t, nil, `{}`), Lost},
		"one with its object":      {insert("/spec/o/l", `{"a":1}`), object(t, nil, `{}`), Deleted},
		"one is carried on":        {insert("/spec/l", `{"a":1}`), object(t, map[string]string{own: `{"format":3,"values":{"/spec/l/[0]":{"a":1}}}`}, `{}`), CarriedOn},
		"an escaped name is there": {value("/spec/a~1b", "1"), object(t, nil, `{"a/b":1}`), Data},
	} {
		t.Run(name, func(t *testing.T) {
			expect.Equal(t, "fate", test.want, widgets.FateAt(test.entry, "v1", before, test.after))
		})
	}
}
