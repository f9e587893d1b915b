// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package verify

import (
	"bytes"
	"encoding/json"
	"maps"
	"regexp"
	"slices"
	"strconv"
)

// difference is a field with two different values.
type difference struct {
	// Path has the format of a policy, with the index of a list's element.
	Path string
	// Before and After are the values as JSON, empty if there is none.
	Before, After string
}

// decode reads JSON and keeps the text of numbers.
func decode(text []byte) (any, error) {
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.UseNumber()
	var value any
	err := decoder.Decode(&value)
	return value, err
}

// encode writes a value as JSON.
func encode(value any) []byte {
	var out bytes.Buffer
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(false)
	_ = encoder.Encode(value) // every decoded value can be encoded
	return bytes.TrimSuffix(out.Bytes(), []byte("\n"))
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
	found(difference{orRoot(path), string(encode(before)), string(encode(after))})
}

func compareMembers(path string, before, after map[string]any, found func(difference)) {
	names := slices.AppendSeq(slices.Collect(maps.Keys(before)), maps.Keys(after))
	slices.Sort(names)
	for _, name := range slices.Compact(names) {
		left, wasThere := before[name]
		right, isThere := after[name]
		at := path + member(name)
		switch {
		case !isThere:
			found(difference{at, string(encode(left)), ""})
		case !wasThere:
			found(difference{at, "", string(encode(right))})
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
			found(difference{at, string(encode(before[i])), ""})
		case i >= len(before):
			found(difference{at, "", string(encode(after[i]))})
		default:
			compare(at, before[i], after[i], found)
		}
	}
}

func orRoot(path string) string {
	if path == "" {
		return "."
	}
	return path
}

var plainName = regexp.MustCompile(`^[A-Za-z_$][A-Za-z0-9_$-]*$`)

// member formats a name as a part of a path.
func member(name string) string {
	if plainName.MatchString(name) {
		return "." + name
	}
	return `["` + name + `"]`
}

var index = regexp.MustCompile(`\[[0-9]+\]`)

// general returns a path without the indexes of elements, so that equal findings are counted together.
func general(path string) string { return index.ReplaceAllString(path, "[*]") }
