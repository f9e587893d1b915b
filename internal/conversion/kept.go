// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package conversion

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// KeptPrefix begins the annotation in which a version's values are kept aside
// while the object is in another version; the version's name ends it.
const KeptPrefix = "conversion-operator.io/"

// kept holds values by their place, a JSON Pointer in which an element of a list
// with keys is named by them: /spec/ports/[name="http"]/weight. In the
// annotation it is a JSON object. A ! before a place tells that nothing was
// there, where coming back would otherwise fill it.
type kept map[string][]byte

// absent begins the place of a field that was not there.
const absent = "!"

func (k kept) add(pointer string, value *node) { k[pointer] = value.append(nil) }

// under reports whether something below a place is kept: it comes back only
// where the place is still there.
func (k kept) under(pointer string) bool {
	for at := range k {
		if strings.HasPrefix(at, pointer+"/") {
			return true
		}
	}
	return false
}

// one looks into the members of an object.
var one = &look{}

// takeKept removes a version's annotation and returns what it holds. Nothing is
// made of an annotation that is not readable: users can write it.
func takeKept(metadata *node, version string) kept {
	text := dropKept(metadata, version)
	if text == "" {
		return nil
	}
	values, err := parse([]byte(text), one)
	if err != nil || values.kind != object {
		return nil
	}
	restore := kept{}
	for _, member := range values.members {
		restore[member.name] = member.value.append(nil)
	}
	return restore
}

// dropKept removes a version's annotation and returns its text.
func dropKept(metadata *node, version string) string {
	annotations := metadata.get("annotations")
	if annotations == nil {
		return ""
	}
	value := annotations.get(KeptPrefix + version)
	if value == nil {
		return ""
	}
	annotations.remove(KeptPrefix + version)
	if len(annotations.members) == 0 {
		metadata.remove("annotations")
	}
	return textOf(value)
}

// write sets a version's annotation, where there is something to keep.
func (k kept) write(metadata *node, version string) error {
	if len(k) == 0 {
		return nil
	}
	text := []byte{'{'}
	for i, pointer := range slices.Sorted(maps.Keys(k)) {
		if i > 0 {
			text = append(text, ',')
		}
		text = append(appendString(text, pointer), ':')
		text = append(text, k[pointer]...)
	}
	text = append(text, '}')
	annotations := metadata.get("annotations")
	if annotations == nil || annotations.kind != object || !annotations.isExpanded() {
		annotations = newObject()
		metadata.set("annotations", annotations)
	}
	annotations.set(KeptPrefix+version, rawNode(appendString(nil, string(text))))
	return checkSize(annotations, len(text), version)
}

// checkSize refuses annotations that the API server would refuse, with words
// that say what to do.
func checkSize(annotations *node, own int, version string) error {
	total := 0
	for _, member := range annotations.members {
		total += len(member.name) + len(textOf(member.value))
	}
	if total <= maxAnnotations {
		return nil
	}
	return fmt.Errorf("the fields that only version %s has take %d bytes, and all annotations together %d, more than the %d that an object may have: shorten the object's annotations or those fields",
		version, own, total, maxAnnotations)
}
