// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package preserve

import (
	"hash/fnv"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"

	"github.com/conversion-operator/conversion-operator/internal/engine/conversion/shape"
	"github.com/conversion-operator/conversion-operator/internal/engine/tree"
	"github.com/conversion-operator/conversion-operator/internal/test/expect"
)

// anyFunction is a function without any sense: it keeps some values, drops others, and puts others in their place,
// depending on their content.
type anyFunction struct {
	*tree.Arena
	seed byte
}

func (f anyFunction) Apply(value *tree.Node, _ bool) *tree.Node         { return f.inside(value) }
func (anyFunction) IsCostly() bool                                      { return false }
func (anyFunction) Unread() *Paths                                      { return nil }
func (anyFunction) Dropped() *Paths                                     { return nil }
func (anyFunction) Together() *Paths                                    { return nil }
func (anyFunction) Parts() []Part                                       { return nil }
func (anyFunction) Known() *Paths                                       { return nil }
func (anyFunction) Complete(Address, *tree.Node, *tree.Node) *tree.Node { return nil }

func (f anyFunction) change(value *tree.Node) *tree.Node {
	hash := fnv.New32a()
	_, _ = hash.Write(f.Canonical([]byte{f.seed}, value))
	switch choice := hash.Sum32() % 12; {
	case choice == 0:
		return nil
	case choice == 1:
		return f.NewText("another")
	case choice == 2 && value.Is(tree.List) && value.Len() > 1:
		return f.NewList([]*tree.Node{value.Elems()[1], value.Elems()[0]})
	case value.Is(tree.List):
		return f.Filter(value, func(_ string, element *tree.Node) *tree.Node { return f.From(f.change(element), element) })
	}
	return f.inside(value)
}

func (f anyFunction) inside(value *tree.Node) *tree.Node {
	return f.Filter(value, func(name string, member *tree.Node) *tree.Node {
		if name == "metadata" || name == "apiVersion" || name == "kind" {
			return member
		}
		return f.change(member)
	})
}

// random returns a random value.
func random(r *rand.Rand, depth int) string {
	kind := r.IntN(6)
	if depth == 0 {
		kind = r.IntN(4)
	}
	switch kind {
	case 0:
		return strconv.Itoa(r.IntN(3))
	case 1:
		return `"` + string(rune('a'+r.IntN(3))) + `"`
	case 2:
		return []string{"true", "null", "{}", "[]", "1.0", `"[~/"`}[r.IntN(6)]
	case 3, 4:
		var members []string
		for _, name := range []string{"a", "b", "[c]", "d/~"} {
			if r.IntN(2) == 0 {
				members = append(members, strconv.Quote(name)+":"+random(r, max(depth-1, 0)))
			}
		}
		return "{" + strings.Join(members, ",") + "}"
	}
	elements := make([]string, r.IntN(4))
	for i := range elements {
		elements[i] = random(r, depth-1)
	}
	return "[" + strings.Join(elements, ",") + "]"
}

// TestNothingIsLost converts objects there and back by functions without any sense: they are not edited, so they come back.
// Their preserved data is written and read in between.
func TestNothingIsLost(t *testing.T) {
	changed := 0
	for seed := range uint64(3000) {
		a := tree.NewArena()
		r := rand.New(rand.NewPCG(seed, 1))
		x, err := a.Read([]byte(`{"apiVersion":"e/v1","kind":"K","metadata":{"name":"n"},"spec":` + random(r, 3) + `,"more":` + random(r, 2) + `}`))
		expect.NoError(t, err)
		there, back := anyFunction{a, byte(seed)}, anyFunction{a, byte(seed + 1)}
		schema := Of(shape.Anything(), false)
		v := &Versions{Arena: a, There: there, Back: back, Source: schema, Target: schema, Rules: "r"}
		y, _, lost := v.Convert(x, nil, nil)
		data, ok := Decode(a, Data{Entries: lost}.Encode(nil))
		if !ok {
			t.Fatalf("seed %d: not readable: %s", seed, Data{Entries: lost}.Encode(nil))
		}
		v.There, v.Back = back, there
		again, carried, _ := v.Convert(y, data.Entries, nil)
		if !a.Equal(x, again) || len(carried) > 0 {
			t.Fatalf("seed %d: %s\nis there %s\nwith %s\nand comes back as %s\nand %v", seed, x.JSON(), y.JSON(), Data{Entries: lost}.Encode(nil), again.JSON(), carried)
		}
		if len(lost) > 0 {
			changed++
		}
		a.Free()
	}
	if changed < 1000 {
		t.Errorf("only %d objects have preserved data", changed)
	}
}

func TestFormat(t *testing.T) {
	a := tree.NewArena()
	value, err := a.Read([]byte(`{"b":[1]}`))
	expect.NoError(t, err)
	at := func(pointer string) Address {
		parsed, ok := ParsePointer(pointer)
		if !ok {
			t.Fatalf("%s is no pointer", pointer)
		}
		return parsed
	}
	data := Data{
		Entries: []Entry{
			{At: at("/a"), Value: value, Replaced: "87654321", Rules: "new"},
			{At: at("/b/[name=\"x~1y\"]/c"), Value: value, Hidden: true, Rules: "new"},
			{Kind: Absent, At: at("/d"), Replaced: "12345678", Rules: "new"},
			{Kind: Insert, At: at("/l"), Value: value, Index: 2, Hidden: true, Rules: "new"},
			{Kind: Insert, At: at("/l"), Value: value, Index: 2, Hidden: true, Rules: "new"},
			{Kind: Order, At: at("/l"), Order: []string{"#1", "=2"}, Rules: "new"},
			{At: at("/older"), Value: value, Rules: "old"},
		},
		Unreadable: "other", Dropped: []string{"/gone"},
	}
	text := string(data.Encode(nil))
	expect.Equal(t, "the text", `{"format":3,"rules":"new","hidden":{"/b/[name=\"x~1y\"]/c":{"b":[1]},"/l/[2]":{"b":[1]},"/l/[3]":{"b":[1]}},"values":{"/a":{"b":[1]}},"absent":{"/d":"12345678"},`+
		`"replaced":{"/a":"87654321"},"orders":{"/l":["#1","=2"]},"older":{"rules":"old","values":{"/older":{"b":[1]}}},"dropped":["/gone"],"unreadable":"other"}`, text)
	read, ok := Decode(a, []byte(text))
	read.Dropped = data.Dropped
	if !ok || string(read.Encode(nil)) != text {
		t.Errorf("it is read as %s", read.Encode(nil))
	}
	data.Unreadable = strings.Repeat("long", readable)
	packed := data.Encode(nil)
	expect.Contains(t, "the text", string(packed), `{"format":3,"deflate":"`)
	read, ok = Decode(a, packed)
	read.Dropped = data.Dropped
	if !ok || read.Unreadable != data.Unreadable || string(read.Encode(nil)) != string(packed) {
		t.Errorf("it is read as %.100s", read.Encode(nil))
	}
}

// TestDecode refuses what is not in the format: it stays in its place.
func TestDecode(t *testing.T) {
	for _, text := range []string{
		``, `x`, `[]`, `{}`, `{"format":2}`, `{"format":"3"}`, `{"format":3,"new":1}`, `{"format":3,"values":[]}`, `{"format":3,"values":{"a":1}}`, `{"format":3,"values":{"":1}}`,
		`{"format":3,"values":{"/[a":1}}`, `{"format":3,"absent":[1]}`, `{"format":3,"absent":{"/a":1}}`, `{"format":3,"absent":{"":"x"}}`, `{"format":3,"orders":{"":[]}}`,
		`{"format":3,"orders":{"/a":1}}`, `{"format":3,"rules":1}`, `{"format":3,"older":[]}`, `{"format":3,"deflate":"x"}`, `{"format":3,"deflate":1}`, `{"format":3,"unreadable":1}`,
		strings.Repeat(`{"format":3,"older":`, 20) + "{}" + strings.Repeat("}", 20),
	} {
		if data, ok := Decode(tree.NewArena(), []byte(text)); ok {
			t.Errorf("%s is read as %v", text, data)
		}
	}
	if _, ok := Decode(tree.NewArena(), []byte(`{"format":3}`)); !ok {
		t.Error("data without entries is not read")
	}
}

func TestPointer(t *testing.T) {
	for pointer, want := range map[string]Address{
		"":              nil,
		"/a/b":          {{Name: "a"}, {Name: "b"}},
		"/~2a]/~0~1":    {{Name: "[a]"}, {Name: "~/"}},
		"/l/[k=\"~1\"]": {{Name: "l"}, {Name: `k="/"`, Element: true}},
	} {
		at, ok := ParsePointer(pointer)
		if !ok || at.compare(want) != 0 || at.Pointer() != pointer {
			t.Errorf("%s is %v, and written as %s", pointer, at, at.Pointer())
		}
	}
	at, _ := ParsePointer("/a/[k=1]/c/d")
	if !at.IsBelow([]string{"a", "*", "c"}, "*") || at.IsBelow([]string{"a", "b"}, "*") {
		t.Error("it is not below what it is")
	}
	if renamed := at[1].Rename(func(key string) string { return key + "ey" }); renamed != (Segment{Name: "key=1", Element: true}) {
		t.Errorf("renamed, it is %v", renamed)
	}
}
