// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package tree

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strconv"
	"strings"
	"testing"

	"github.com/conversion-operator/conversion-operator/internal/test/expect"
)

func read(t testing.TB, a *Arena, text string) *Node {
	t.Helper()
	n, err := a.Read([]byte(text))
	expect.NoError(t, err)
	return n
}

// FuzzRead compares with package json: both accept the same texts, except those with duplicate names, and read the same
// values, also of what is read only when it is needed, below the outermost object or everywhere.
func FuzzRead(f *testing.F) {
	for _, text := range []string{
		`{"a":[1,-0,1.5e+3,"x",true,false,null,{}],"b":{"c":[]}}`, ` [ ] `, `"\u00e9\ud83d\ude00\n"`, `{"a":1,"a":2}`, `{"a":1,"\u0061":2}`,
		`01`, `1.`, `-`, `"`, `{"a"}`, `[1,]`, `{"a":1,}`, "\"\x01\"", "\"\xff\"", `nul`, `[trux]`, `1 2`, ``, `"\x"`, `"\u12"`,
	} {
		f.Add(text)
		f.Add(`{"a":[` + text + `]}`)
		f.Add(`{"b":[` + text + `]}`)
	}
	f.Fuzz(func(t *testing.T, text string) {
		a := NewArena()
		defer a.Free()
		n, err := a.Read([]byte(text))
		partly, errPartly := a.ReadLevels([]byte(text), 1)
		lazy, errLazy := a.ReadLevels([]byte(text), 0)
		if isValid := json.Valid([]byte(text)) && strings.ToValidUTF8(text, "") == text; isValid != (errLazy == nil) || !isValid && errPartly == nil {
			t.Fatalf("%q is valid: %t, and read with %v and %v", text, isValid, errLazy, errPartly)
		}
		if err != nil {
			return // a name may be there twice
		}
		var want, is any
		expect.NoError(t, json.Unmarshal([]byte(text), &want))
		expect.NoError(t, json.Unmarshal(a.Canonical(nil, lazy), &is))
		if !reflect.DeepEqual(want, is) || !a.Equal(n, lazy) || errPartly != nil || !a.Equal(n, partly) || string(n.JSON()) != strings.Trim(text, " \t\r\n") {
			t.Fatalf("%q is read as %s and %s", text, a.Canonical(nil, lazy), n.JSON())
		}
		if built := rebuilt(a, n); !a.Equal(n, built) || a.Digest(n) != a.Digest(built) {
			t.Fatalf("%q is built as %s", text, built.JSON())
		}
	})
}

// rebuilt returns an equal value of which nothing was read.
func rebuilt(a *Arena, n *Node) *Node {
	switch n.Kind() {
	case Object:
		built := a.NewObject()
		for _, m := range n.Members() {
			built = a.With(built, m.Name, rebuilt(a, m.Value))
		}
		return built
	case List:
		elements := a.Room(n.Len())
		for _, element := range n.Elems() {
			elements = append(elements, rebuilt(a, element))
		}
		return a.NewList(elements)
	case String:
		return a.NewText(n.Text())
	}
	return a.NewScalar(n.JSON())
}

func TestReadErrors(t *testing.T) {
	for text, want := range map[string]string{
		`{"a":1,"b":2,"a":3}`: `invalid JSON at byte 19: the name "a" is there twice`,
		`{"a" 1}`:             `invalid JSON at byte 5: a colon was expected`,
		`[1 2]`:               `invalid JSON at byte 3: a comma or an end was expected`,
		`1 2`:                 `invalid JSON at byte 2: the end was expected`,
		`"\q"`:                `invalid JSON at byte 2: there is no such escape`,
		`"a`:                  `invalid JSON at byte 2: the text does not end`,
	} {
		_, err := NewArena().Read([]byte(text))
		expect.Equal(t, text, want, fmt.Sprint(err))
	}
}

// TestDepth reads values that are nested as deep as is allowed, and deeper.
func TestDepth(t *testing.T) {
	for _, levels := range []int{MaxDepth, 0} {
		a := NewArena()
		deepest := strings.Repeat("[", MaxDepth) + strings.Repeat("]", MaxDepth)
		n, err := a.ReadLevels([]byte(deepest), levels)
		expect.NoError(t, err)
		expect.Equal(t, "the deepest value", deepest, string(a.Canonical(nil, n)))
		if a.Digest(n) != a.Digest(rebuilt(a, n)) {
			t.Error("the digests of the deepest value differ")
		}
		if _, err := a.ReadLevels([]byte("["+deepest+"]"), levels); err == nil {
			t.Error("a deeper value is read")
		}
		a.Free()
	}
}

// TestReadAgain looks into a deep value level by level: the innermost one must not be read as often as it is deep.
func TestReadAgain(t *testing.T) {
	const depth, most = 9_000, 14
	a := NewArena()
	defer a.Free()
	n, err := a.ReadLevels([]byte(strings.Repeat(`{"a":`, depth)+"{}"+strings.Repeat("}", depth)), 0)
	for expect.NoError(t, err); n.Len() > 0; n = n.Get("a") {
		if n.opened > most {
			t.Fatalf("it is read %d times", n.opened)
		}
	}
}

// TestChange checks that a change of a value makes another one, also if several changes of a run share nodes.
func TestChange(t *testing.T) {
	const text = `{"a":{"b":1,"c":[1,2]},"d":"x"}`
	for name, c := range map[string]struct {
		change func(a *Arena, n *Node) *Node
		want   string
	}{
		"replaced":  {func(a *Arena, n *Node) *Node { return a.WithAt(n, []string{"a", "b"}, a.NewText("é\"")) }, `{"a":{"b":"é\"","c":[1,2]},"d":"x"}`},
		"added":     {func(a *Arena, n *Node) *Node { return a.WithAt(n, []string{"a", "e", "f"}, a.NewObject()) }, `{"a":{"b":1,"c":[1,2],"e":{"f":{}}},"d":"x"}`},
		"removed":   {func(a *Arena, n *Node) *Node { return a.WithAt(n, []string{"a", "b"}, nil) }, `{"a":{"c":[1,2]},"d":"x"}`},
		"missing":   {func(a *Arena, n *Node) *Node { return a.WithAt(n, []string{"d", "b"}, nil) }, text},
		"not there": {func(a *Arena, n *Node) *Node { return a.WithAt(n, []string{"d", "b"}, a.NewObject()) }, `{"a":{"b":1,"c":[1,2]},"d":{"b":{}}}`},
		"twice": {func(a *Arena, n *Node) *Node {
			return a.With(a.With(a.With(n, "x", n.Get("d")), "y", n.Get("a")), "x", nil)
		}, `{"a":{"b":1,"c":[1,2]},"d":"x","y":{"b":1,"c":[1,2]}}`},
		"filtered": {func(a *Arena, n *Node) *Node {
			return a.Filter(n, func(name string, value *Node) *Node {
				if name == "d" {
					return nil
				}
				return a.With(value, "c", a.Filter(value.Get("c"), func(_ string, element *Node) *Node {
					if string(element.JSON()) == "1" {
						return nil
					}
					return element
				}))
			})
		}, `{"a":{"b":1,"c":[2]}}`},
		"in elements that are made": {func(a *Arena, n *Node) *Node {
			with := a.WithAt(a.WithAt(n, []string{"l", "[k=x]", "v"}, n.Get("d")), []string{"l", "[k=y]", "v"}, n.Get("d"))
			return a.WithAt(with, []string{"l", "[k=y]", "w"}, n.Get("d"))
		}, `{"a":{"b":1,"c":[1,2]},"d":"x","l":[{"k":"x","v":"x"},{"k":"y","v":"x","w":"x"}]}`},
		"taken of an element": {func(a *Arena, n *Node) *Node {
			with := a.WithAt(n, []string{"l", "[k=x]", "v"}, n.Get("d"))
			found := with.At([]string{"l", "[k=x]", "v"})
			taken, rest := a.TakeAt(with, []string{"l", "[k=x]", "v"})
			if taken != n.Get("d") || taken != found {
				return nil
			}
			return rest
		}, `{"a":{"b":1,"c":[1,2]},"d":"x","l":[{"k":"x"}]}`},
		"in no element": {func(a *Arena, n *Node) *Node {
			taken, rest := a.TakeAt(n, []string{"a", "c", "[k=x]", "v"})
			if taken != nil || n.At([]string{"a", "c", "[k=x]"}) != nil || n.At([]string{"a", "c", "k"}) != nil {
				return nil
			}
			return a.WithAt(rest, []string{"a", "c", "[k=x]", "v"}, nil)
		}, text},
		"in front": {func(a *Arena, n *Node) *Node { return a.Insert(n, "k", a.NewScalar([]byte("0"))) }, `{"k":0,"a":{"b":1,"c":[1,2]},"d":"x"}`},
	} {
		a := NewArena()
		n := read(t, a, text)
		built := rebuilt(a, n)
		a.NewRun()
		for _, of := range []*Node{n, built} {
			expect.Equal(t, name, c.want, string(c.change(a, of).JSON()))
			expect.Equal(t, name+", the value itself", text, string(of.JSON()))
		}
	}
}

// TestManyMembers changes an object with more members than are searched one by one.
func TestManyMembers(t *testing.T) {
	a := NewArena()
	defer a.Free()
	n := a.NewObject()
	for i := range 3 * manyMembers {
		n = a.With(n, strconv.Itoa(i), a.NewScalar([]byte(strconv.Itoa(i))))
	}
	n = a.With(a.With(n, "7", nil), "9", a.NewText("new"))
	for i := range 3 * manyMembers {
		want := strconv.Itoa(i)
		switch i {
		case 7:
			want = ""
		case 9:
			want = `"new"`
		}
		is := ""
		if found := n.Get(strconv.Itoa(i)); found != nil {
			is = string(found.JSON())
		}
		expect.Equal(t, strconv.Itoa(i), want, is)
	}
}

func TestSameNumber(t *testing.T) {
	a := NewArena()
	for _, c := range []struct {
		x, y string
		same bool
	}{
		{"1", "1.0", true}, {"1e3", "1000", true}, {"0", "-0", true}, {"1", "2", false}, {"9007199254740993", "9007199254740992", false},
		{"1e999999999", "1e999999999", true}, {"0." + strings.Repeat("0", 50), "0", false},
	} {
		expect.Equal(t, c.x+" and "+c.y, c.same, SameNumber(a.NewScalar([]byte(c.x)), a.NewScalar([]byte(c.y))))
	}
}

// TestFrom checks that elements remember what they were converted from, in their run and in general.
func TestFrom(t *testing.T) {
	a := NewArena()
	n := read(t, a, `[{"a":1},{"a":2}]`)
	first := a.NewRun()
	once := a.From(a.With(n.Elems()[0], "b", a.NewObject()), n.Elems()[0])
	again := a.From(a.With(once, "b", nil), once)
	wantSameNode(t, "the source in the run", n.Elems()[0], again.Source(first))
	second := a.NewRun()
	later := a.From(a.With(again, "c", a.NewObject()), again)
	wantSameNode(t, "the source in the second run", again, later.Source(second))
	wantSameNode(t, "the source in the first run", later, later.Source(first))
	wantSameNode(t, "the origin", again, later.Origin())
	wantSameNode(t, "the source of another element", n.Elems()[1], n.Elems()[1].Source(first))
}

func wantSameNode(t *testing.T, what string, want, got *Node) {
	t.Helper()
	if want != got {
		t.Errorf("%s is %s, want %s", what, got.JSON(), want.JSON())
	}
}

// TestLimit stops at a limit of work, of memory, and by itself.
func TestLimit(t *testing.T) {
	tooMuch := errors.New("too much")
	for name, check := range map[string]func(work, memory int64) error{
		"work":   func(work, _ int64) error { return errorIf(work > 1e6, tooMuch) },
		"memory": func(_, memory int64) error { return errorIf(memory > 1e8, tooMuch) },
	} {
		a := NewArena()
		err := a.Limit(check, func() error {
			for {
				a.NewObject()
			}
		})
		if !errors.Is(err, tooMuch) {
			t.Errorf("%s: the error is %v", name, err)
		}
		a.Free()
	}
	a := NewArena()
	expect.NoError(t, a.Limit(nil, func() error { return nil }))
	if err := a.Limit(nil, func() error { a.Stop(tooMuch); return nil }); !errors.Is(err, tooMuch) {
		t.Errorf("the error is %v", err)
	}
}

func errorIf(is bool, err error) error {
	if is {
		return err
	}
	return nil
}

// BenchmarkRead reads an object of 10 KB: all of it, and nothing in it.
func BenchmarkRead(b *testing.B) {
	const entry = `{"manager":"kubectl","operation":"Apply","fieldsV1":{"f:spec":{"f:cronSpec":{},"f:image":{},"f:replicas":{}}}}`
	text := []byte(`{"metadata":{"managedFields":[` + strings.Repeat(entry+",", 90) + entry + `]}}`)
	for name, levels := range map[string]int{"all": MaxDepth, "nothing": 0} {
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(text)))
			b.ReportAllocs()
			for b.Loop() {
				a := NewArena()
				if _, err := a.ReadLevels(text, levels); err != nil {
					b.Fatal(err)
				}
				a.Free()
			}
		})
	}
}
