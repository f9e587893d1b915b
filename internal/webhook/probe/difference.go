// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package probe

import (
	"encoding/json"
	"fmt"
	"maps"
	"math/big"
	"regexp"
	"slices"
	"strconv"
)

// difference names the first field, in alphabetical order, in which got differs from want, or
// returns an empty string. mayHaveMore ignores fields and elements that only got has. It omits values:
// they may be live data, and the result is shown in a status.
func difference(path string, want, got any, mayHaveMore bool) string {
	switch want := want.(type) {
	case map[string]any:
		if got, ok := got.(map[string]any); ok {
			return differenceOfMaps(path, want, got, mayHaveMore)
		}
	case []any:
		if got, ok := got.([]any); ok {
			return differenceOfLists(path, want, got, mayHaveMore)
		}
	case json.Number:
		if got, ok := got.(json.Number); ok && sameNumber(string(want), string(got)) {
			return ""
		}
	default:
		if want == got {
			return ""
		}
	}
	return describe(path, "has another value")
}

func differenceOfMaps(path string, want, got map[string]any, mayHaveMore bool) string {
	names := slices.Collect(maps.Keys(want))
	if !mayHaveMore {
		names = slices.AppendSeq(names, maps.Keys(got))
	}
	slices.Sort(names)
	for _, name := range slices.Compact(names) {
		field := path + member(name)
		expected, isExpected := want[name]
		value, isPresent := got[name]
		if !isPresent {
			return describe(field, "is missing")
		}
		if !isExpected {
			return describe(field, "should not be there")
		}
		if found := difference(field, expected, value, mayHaveMore); found != "" {
			return found
		}
	}
	return ""
}

func differenceOfLists(path string, want, got []any, mayHaveMore bool) string {
	for i := range min(len(want), len(got)) {
		if found := difference(path+"["+strconv.Itoa(i)+"]", want[i], got[i], mayHaveMore); found != "" {
			return found
		}
	}
	if len(got) < len(want) || len(got) > len(want) && !mayHaveMore {
		return describe(path, fmt.Sprintf("has %d elements, expected %d", len(got), len(want)))
	}
	return ""
}

func describe(path, finding string) string {
	if path == "" {
		path = "the object"
	}
	return path + " " + finding
}

var identifier = regexp.MustCompile(`^[A-Za-z_$][A-Za-z0-9_$-]*$`)

func member(name string) string {
	if identifier.MatchString(name) {
		return "." + name
	}
	return "[" + strconv.Quote(name) + "]"
}

// sameNumber compares two JSON numbers by value: 1, 1.0 and 10e-1 are equal, 9007199254740993 and
// 9007199254740992 are not. Numbers with too large an exponent for package big are equal if their texts are.
func sameNumber(a, b string) bool {
	if a == b {
		return true
	}
	x, isX := new(big.Rat).SetString(a)
	y, isY := new(big.Rat).SetString(b)
	return isX && isY && x.Cmp(y) == 0
}
