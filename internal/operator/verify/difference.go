// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package verify

import (
	"maps"
	"regexp"
	"slices"
	"strconv"

	"github.com/conversion-operator/conversion-operator/internal/engine/conversion"
	"github.com/conversion-operator/conversion-operator/internal/engine/preserved"
)

// Difference is a field with two different values.
type Difference struct {
	// Path has the format of a policy, with the index of a list's element.
	Path string
	// Before and After are the values as JSON, empty if there is none.
	Before, After string
}

// Differences returns the fields in which two values differ, by their paths. It
// ignores the order of names, and compares everything else, including the text of numbers.
func Differences(before, after any) []Difference {
	var found []Difference
	compare("", before, after, func(d Difference) { found = append(found, d) })
	return found
}

func compare(path string, before, after any, found func(Difference)) {
	switch before := before.(type) {
	case map[string]any:
		if after, ok := after.(map[string]any); ok {
			compareMembers(path, before, after, found)
			return
		}
	case []any:
		if after, ok := after.([]any); ok {
			compareElements(path, before, after, found)
			return
		}
	default:
		if before == after {
			return
		}
	}
	if path == "" {
		path = "."
	}
	found(Difference{path, string(preserved.Encode(before)), string(preserved.Encode(after))})
}

func compareMembers(path string, before, after map[string]any, found func(Difference)) {
	names := slices.AppendSeq(slices.Collect(maps.Keys(before)), maps.Keys(after))
	slices.Sort(names)
	for _, name := range slices.Compact(names) {
		left, inBefore := before[name]
		right, inAfter := after[name]
		at := path + conversion.Path{name}.String()
		switch {
		case !inAfter:
			found(Difference{at, string(preserved.Encode(left)), ""})
		case !inBefore:
			found(Difference{at, "", string(preserved.Encode(right))})
		default:
			compare(at, left, right, found)
		}
	}
}

func compareElements(path string, before, after []any, found func(Difference)) {
	for i := range max(len(before), len(after)) {
		at := path + "[" + strconv.Itoa(i) + "]"
		switch {
		case i >= len(after):
			found(Difference{at, string(preserved.Encode(before[i])), ""})
		case i >= len(before):
			found(Difference{at, "", string(preserved.Encode(after[i]))})
		default:
			compare(at, before[i], after[i], found)
		}
	}
}

var index = regexp.MustCompile(`\[[0-9]+\]`)

// withoutIndexes returns a path with [*] for each index, so that equal findings are counted together.
func withoutIndexes(path string) string { return index.ReplaceAllString(path, conversion.Each) }
