// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package verify

import (
	"maps"
	"regexp"
	"slices"
	"strconv"

	"github.com/conversion-operator/conversion-operator/internal/conversion"
	"github.com/conversion-operator/conversion-operator/internal/preserved"
)

// difference is a field with two different values.
type difference struct {
	// Path has the format of a policy, with the index of a list's element.
	Path string
	// Before and After are the values as JSON, empty if there is none.
	Before, After string
}

// differences returns the fields in which two values differ, by their paths. It
// ignores the order of names, and compares everything else, including the text of numbers.
func differences(before, after any) []difference {
	var found []difference
	compare("", before, after, func(d difference) { found = append(found, d) })
	return found
}

func compare(path string, before, after any, found func(difference)) {
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
	found(difference{path, string(preserved.Encode(before)), string(preserved.Encode(after))})
}

func compareMembers(path string, before, after map[string]any, found func(difference)) {
	names := slices.AppendSeq(slices.Collect(maps.Keys(before)), maps.Keys(after))
	slices.Sort(names)
	for _, name := range slices.Compact(names) {
		left, inBefore := before[name]
		right, inAfter := after[name]
		at := path + conversion.Path{name}.String()
		switch {
		case !inAfter:
			found(difference{at, string(preserved.Encode(left)), ""})
		case !inBefore:
			found(difference{at, "", string(preserved.Encode(right))})
		default:
			compare(at, left, right, found)
		}
	}
}

func compareElements(path string, before, after []any, found func(difference)) {
	for i := range max(len(before), len(after)) {
		at := path + "[" + strconv.Itoa(i) + "]"
		switch {
		case i >= len(after):
			found(difference{at, string(preserved.Encode(before[i])), ""})
		case i >= len(before):
			found(difference{at, "", string(preserved.Encode(after[i]))})
		default:
			compare(at, before[i], after[i], found)
		}
	}
}

var index = regexp.MustCompile(`\[[0-9]+\]`)

// withoutIndexes returns a path with [*] for each index, so that equal findings are counted together.
func withoutIndexes(path string) string { return index.ReplaceAllString(path, conversion.Each) }
