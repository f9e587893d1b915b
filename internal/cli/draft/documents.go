// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package draft

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"github.com/conversion-operator/conversion-operator/internal/engine/conversion/document"
	"github.com/conversion-operator/conversion-operator/internal/engine/preserved"
)

// documentsIn returns the object or list that a text may stand for.
func documentsIn(text string) (forms []form) {
	if !strings.ContainsAny(text, ":{[\n") {
		return nil
	}
	for _, format := range document.Formats {
		value, ok := document.Read(format, []byte(text))
		if encoded := string(preserved.Encode(value)); ok && !isZero(encoded) && strings.ContainsAny(encoded[:1], "{[") {
			forms = append(forms, form{format, encoded})
		}
	}
	return forms
}

// relateDocuments relates texts with objects and lists whose fields have the values in the text. Zero
// values do not count: converters fill them in.
func (e *evidence) relateDocuments(texts, others entries, relate func(text, other *field) (spoke, hub *field)) {
	for at, text := range texts {
		var content string
		if at.index != "" || json.Unmarshal([]byte(text), &content) != nil {
			continue
		}
		for _, form := range documentsIn(content) {
			value, err := preserved.Decode([]byte(form.text))
			if err != nil {
				continue // cannot happen: it was encoded
			}
			for _, container := range containersIn(others) {
				found := entries{}
				if found.add(container, value, ""); sameEntries(found, others.within(container)) {
					spoke, hub := relate(at.field, container)
					e.relations[relation{spoke, hub, form.as}]++
				}
			}
		}
	}
}

// containersIn returns the objects and lists with fields that have values, and are not in a list or map
// themselves.
func containersIn(all entries) (containers []*field) {
	seen := map[*field]bool{}
	for at := range all {
		for f := at.field.parent; f != nil && f.parent != nil; f = f.parent {
			if !seen[f] && f.scope.parent == nil && !f.isElement() {
				containers = append(containers, f)
			}
			seen[f] = true
		}
	}
	return containers
}

// within returns the values in a field.
func (e entries) within(f *field) entries {
	found := maps.Clone(e)
	maps.DeleteFunc(found, func(at spot, _ string) bool { return !at.field.within(f) })
	return found
}

func sameEntries(a, b entries) bool {
	isZeroAt := func(_ spot, text string) bool { return isZero(text) }
	maps.DeleteFunc(a, isZeroAt)
	maps.DeleteFunc(b, isZeroAt)
	return len(a) > 0 && maps.EqualFunc(a, b, sameValue)
}

// isStructure reports whether a cast may write the values of a field as a document.
func isStructure(f *field) bool {
	return slices.Contains([]string{"object", "array", kindMap, kindAnything}, f.kind)
}
