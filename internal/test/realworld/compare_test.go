// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package realworld

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	kjson "sigs.k8s.io/json"
)

// difference is one way in which the project's own conversion and ours differ.
type difference struct {
	// to is the version of the result.
	to string
	// at is the field, as in a policy; elements of lists and maps are [*].
	at string
	// is tells, by what either side has there, whether it is this difference.
	is func(theirs, ours any) bool
	// why is for people.
	why string
}

// absent is what a side has where it has nothing.
var absent any = struct{}{}

// found is one place where the results differ.
type found struct {
	at           string
	theirs, ours any
}

// String shows the place for people who read why a test failed.
func (f found) String() string {
	return fmt.Sprintf("%s: theirs %s, ours %s", f.at, show(f.theirs), show(f.ours))
}

func show(value any) string {
	if value == absent {
		return "nothing"
	}
	text, err := json.Marshal(value)
	if err != nil {
		return err.Error()
	}
	return string(text)
}

// compare finds the outermost places where two values differ.
func compare(theirs, ours any, at string) []found {
	left, right := asMap(theirs), asMap(ours)
	if left == nil || right == nil {
		return compareLists(theirs, ours, at)
	}
	var all []found
	for _, name := range slices.Sorted(maps.Keys(union(left, right))) {
		l, there := left[name]
		r, here := right[name]
		switch next := at + segment(name); {
		case !there:
			all = append(all, found{next, absent, r})
		case !here:
			all = append(all, found{next, l, absent})
		default:
			all = append(all, compare(l, r, next)...)
		}
	}
	return all
}

func compareLists(theirs, ours any, at string) []found {
	left, isList := theirs.([]any)
	right, areLists := ours.([]any)
	if !isList || !areLists || len(left) != len(right) {
		if cmp.Equal(theirs, ours) {
			return nil
		}
		return []found{{at, theirs, ours}}
	}
	var all []found
	for i := range left {
		all = append(all, compare(left[i], right[i], at+"[*]")...)
	}
	return all
}

func asMap(value any) map[string]any {
	m, _ := value.(map[string]any)
	return m
}

func union(a, b map[string]any) map[string]any {
	both := maps.Clone(a)
	maps.Copy(both, b)
	return both
}

var plain = regexp.MustCompile(`^[A-Za-z_$][A-Za-z0-9_$-]*$`)

func segment(name string) string {
	if plain.MatchString(name) {
		return "." + name
	}
	return fmt.Sprintf("[%q]", name)
}

// decode reads JSON with numbers as they are written.
func decode(text []byte) any {
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.UseNumber()
	var value any
	if err := decoder.Decode(&value); err != nil {
		panic(fmt.Sprintf("%v in %s", err, text)) // it was written by json.Marshal
	}
	return value
}

func encode(t *testing.T, value any) []byte {
	t.Helper()
	text, err := json.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// read has the project's Go type read an object, which must know all its fields.
func read(t *testing.T, text []byte, into any) {
	t.Helper()
	strict, err := kjson.UnmarshalStrict(text, into)
	if err != nil {
		t.Fatalf("%T cannot read %s: %v", into, text, err)
	}
	if len(strict) > 0 {
		t.Fatalf("%T has other fields than %s: %v", into, text, strict)
	}
}
