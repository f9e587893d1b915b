// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package realworld

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	kjson "sigs.k8s.io/json"

	"github.com/conversion-operator/conversion-operator/internal/engine/conversion"
	"github.com/conversion-operator/conversion-operator/internal/test/expect"
)

// difference is a known difference between the project's conversion and ours.
type difference struct {
	to string
	// at is the path of the field, as in a policy; elements of lists and maps are [*], and ** stands
	// for any part of a path.
	at string
	// is reports whether a pair of values has this difference.
	is func(theirs, ours any) bool
	// why is the explanation.
	why string
}

// covers reports whether the difference is at a path.
func (d difference) covers(at string) bool {
	before, after, anywhere := strings.Cut(d.at, "**")
	if !anywhere {
		return d.at == at
	}
	return len(at) >= len(before)+len(after) && strings.HasPrefix(at, before) && strings.HasSuffix(at, after)
}

// absent stands for a missing value.
var absent any = struct{}{}

// onlyTheirs and onlyOurs are differences in which one side has no value.
func onlyTheirs(_, ours any) bool { return ours == absent }

func onlyOurs(theirs, _ any) bool { return theirs == absent }

// emptied is the difference of an empty list that theirs loses.
func emptied(theirs, ours any) bool { return theirs == nil && show(ours) == "[]" }

// found is a place where two objects differ.
type found struct {
	at          string
	left, right any
}

func (f found) String() string {
	return fmt.Sprintf("%s: %s and %s", f.at, show(f.left), show(f.right))
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

// compare returns the outermost places where two values differ.
func compare(left, right any, at string) []found {
	lefts, rights := asMap(left), asMap(right)
	if lefts == nil || rights == nil {
		return compareLists(left, right, at)
	}
	var all []found
	for _, name := range slices.Sorted(maps.Keys(union(lefts, rights))) {
		l, there := lefts[name]
		r, here := rights[name]
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

func compareLists(left, right any, at string) []found {
	lefts, isList := left.([]any)
	rights, areLists := right.([]any)
	if !isList || !areLists || len(lefts) != len(rights) {
		if reflect.DeepEqual(left, right) {
			return nil
		}
		return []found{{at, left, right}}
	}
	var all []found
	for i := range lefts {
		all = append(all, compare(lefts[i], rights[i], at+"[*]")...)
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

// isZero reports whether a value is missing, or has only zeros, false, and empty texts and lists.
func isZero(value any) bool {
	if object := asMap(value); object != nil {
		for _, member := range object {
			if !isZero(member) {
				return false
			}
		}
		return true
	}
	return value == nil || value == absent || slices.Contains([]string{`0`, `""`, `false`, `[]`}, show(value))
}

// sortByName sorts all lists whose elements have a name.
func sortByName(value any) {
	for _, member := range asMap(value) {
		sortByName(member)
	}
	list, _ := value.([]any)
	named := true
	for _, element := range list {
		sortByName(element)
		named = named && asMap(element)["name"] != nil
	}
	if named {
		slices.SortFunc(list, func(a, b any) int {
			return cmp.Or(strings.Compare(show(asMap(a)["name"]), show(asMap(b)["name"])), strings.Compare(show(a), show(b)))
		})
	}
}

var plain = regexp.MustCompile(`^[A-Za-z_$][A-Za-z0-9_$-]*$`)

func segment(name string) string {
	if plain.MatchString(name) {
		return "." + name
	}
	return fmt.Sprintf("[%q]", name)
}

// decode decodes JSON with json.Number.
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
	expect.NoError(t, err)
	return text
}

// read decodes an object into the project's Go type, and fails for unknown fields.
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

// withoutPreserved removes preserved data.
func withoutPreserved(object any) any {
	metadata := asMap(asMap(object)["metadata"])
	annotations := asMap(metadata["annotations"])
	maps.DeleteFunc(annotations, func(name string, _ any) bool { return strings.HasPrefix(name, conversion.PreservedPrefix) })
	if annotations != nil && len(annotations) == 0 {
		delete(metadata, "annotations")
	}
	return object
}
