// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"github.com/conversion-operator/conversion-operator/internal/conversion"
)

// entry of an annotation in which values are kept aside.
type entry struct {
	// path has [*] for each element, and shown is as the annotation names it.
	path  path
	shown string
	value any
	// absent tells that nothing was there.
	absent bool
}

// droppedEntry lists, in an annotation, the places of values that had no room there.
const droppedEntry = "dropped"

// annotation is what is kept for a version; nothing where that is not readable.
func annotation(tree any, version string) map[string]json.RawMessage {
	text, _ := path{"metadata", "annotations", conversion.KeptPrefix + version}.in(tree)
	values := map[string]json.RawMessage{}
	if text, ok := text.(string); !ok || json.Unmarshal([]byte(text), &values) != nil {
		return nil
	}
	return values
}

// keptIn are the values that an object keeps aside for a version, by their places.
func keptIn(tree any, version string) []entry {
	values := annotation(tree, version)
	var entries []entry
	for _, pointer := range slices.Sorted(maps.Keys(values)) {
		if pointer == droppedEntry {
			continue
		}
		value, err := decode(values[pointer])
		if err != nil {
			continue
		}
		one := entryOf(pointer)
		one.value = value
		entries = append(entries, one)
	}
	return entries
}

// overflowIn are the places of values that an object has lost for want of room.
func overflowIn(tree any, version string) []path {
	var pointers []string
	if json.Unmarshal(annotation(tree, version)[droppedEntry], &pointers) != nil {
		return nil
	}
	var paths []path
	for _, pointer := range pointers {
		paths = append(paths, entryOf(pointer).path)
	}
	return paths
}

var pointerNames = strings.NewReplacer("~1", "/", "~0", "~")

// entryOf reads a place in an annotation: a JSON Pointer in which an element of a
// list with keys is named by them, and an exclamation mark before one where
// nothing was.
func entryOf(pointer string) entry {
	rest, absent := strings.CutPrefix(pointer, "!")
	one := entry{absent: absent}
	for segment := range strings.SplitSeq(strings.TrimPrefix(rest, "/"), "/") {
		name := pointerNames.Replace(segment)
		if isElement(segment) || strings.Trim(segment, "0123456789") == "" {
			one.path = append(one.path, each)
			one.shown += "[" + strings.Trim(name, "[]") + "]"
			continue
		}
		one.path = append(one.path, name)
		one.shown += path{name}.String()
	}
	return one
}

// kept says of all that is kept aside for the version that the object left why.
func (h *hop) kept() []Kept {
	kept := []Kept{}
	for _, entry := range keptIn(h.after, h.from) {
		one := Kept{Version: h.from, Path: entry.shown, Value: encode(entry.value)}
		one.Why, one.Rule = h.why(entry)
		if entry.absent {
			one.Value = nil
		}
		kept = append(kept, one)
	}
	return kept
}

// why says why a value is kept aside, and by which rule.
func (h *hop) why(entry entry) (text, rule string) {
	leaf := h.leavesBefore.about(entry.path)
	if entry.absent {
		return "there was none: " + h.from + " would be given one on the way back", ruleAt(leaf)
	}
	if leaf != nil && leaf.Rule != "" {
		return h.rules[leaf.Rule].odd, leaf.Rule
	}
	switch {
	case entry.value == nil && h.leavesAfter.has(entry.path):
		return h.to + " allows no null there", ""
	case leaf != nil && leaf.Owner == conversion.OwnerPreserved && h.leavesAfter.has(entry.path):
		return h.to + " has another field of that name", ""
	case leaf == nil || leaf.Owner == conversion.OwnerPreserved:
		return h.to + " has no such field", ""
	}
	return h.to + " cannot hold it as it is", ""
}

func ruleAt(leaf *leaf) string {
	if leaf == nil {
		return ""
	}
	return leaf.Rule
}
