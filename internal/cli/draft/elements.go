// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package draft

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
	"github.com/conversion-operator/conversion-operator/internal/engine/conversion"
	"github.com/conversion-operator/conversion-operator/internal/engine/conversion/document"
	"github.com/conversion-operator/conversion-operator/internal/engine/preserved"
	"github.com/conversion-operator/conversion-operator/internal/engine/tree"
)

// mayWrap reports whether the objects of a list or map may have the values of another one in the field.
func mayWrap(objects, values *field, name string) bool {
	return objects.kind == values.kind && hasValues(objects, values, name)
}

// mayIndex reports whether the objects of a list may have the keys and values of a map in two fields.
func mayIndex(list, values *field, key, value string) bool {
	if list.kind != "array" || values.kind != kindMap || key == value || !hasValues(list, values, value) {
		return false
	}
	found := list.children[conversion.Each].children[key]
	return found != nil && (found.kind == "string" || found.kind == "integer")
}

// hasValues reports whether objects have a field of the kind of the values.
func hasValues(objects, values *field, name string) bool {
	elements, value := objects.children[conversion.Each], elementsOf(values.schema)
	if elements == nil || value == nil || values.children != nil {
		return false
	}
	found := elements.children[name]
	return found != nil && found.children == nil && found.kind == kindOf(value)
}

// wrappedIn returns the field by which the objects of a list or map clearly correspond to values, empty if the
// schemas do not tell: it is the only one, or the only required one.
func wrappedIn(objects, values *field) string {
	elements := objects.children[conversion.Each]
	if elements == nil {
		return ""
	}
	names := slices.Clone(elements.schema.Required)
	if len(elements.children) == 1 {
		names = nil
		for name := range elements.children {
			names = append(names, name)
		}
	}
	if len(names) != 1 || !mayWrap(objects, values, names[0]) {
		return ""
	}
	return names[0]
}

// entryKey returns the field by which the objects of a list clearly correspond to the keys of a map of values, empty if
// the schemas do not tell: their fields have the names that those of a key and of a value usually have.
func entryKey(list, values *field) string {
	for _, key := range []string{"name", "key"} {
		if mayIndex(list, values, key, entryValue) {
			return key
		}
	}
	return ""
}

const entryValue = "value"

// ruleForElements returns the rules for a list, or map, of objects and one of values, nil if the schemas do not tell.
func ruleForElements(spoke, hub *field) (rule v1alpha1.Rule, elements *v1alpha1.Rule) {
	for _, both := range [][2]*field{{spoke, hub}, {hub, spoke}} {
		if name := wrappedIn(both[0], both[1]); name != "" {
			return eachOf(spoke, hub, ""), valuesIn(spoke, hub, name)
		}
		if key := entryKey(both[0], both[1]); key != "" {
			return eachOf(spoke, hub, key), valuesIn(spoke, hub, entryValue)
		}
	}
	return rule, nil
}

// valuesIn returns the rule for elements of which one version has objects with the value in a field.
func valuesIn(spoke, hub *field, name string) *v1alpha1.Rule {
	move := &v1alpha1.MoveRule{From: pathOf(spoke) + "[*]", To: pathOf(hub) + "[*]"}
	if elements := spoke.children[conversion.Each]; elements != nil && elements.children[name] != nil {
		move.From += v1alpha1.Path(conversion.Path{name}.String())
	} else {
		move.To += v1alpha1.Path(conversion.Path{name}.String())
	}
	return &v1alpha1.Rule{Move: move}
}

// elementWith finds in one version the object whose field has the value of the only element of a list or map of the other
// version, as asWrap or asMember says. It returns the relation of the list or map with the objects, without a name
// if there is none.
func elementWith(values, value formAt, all entries) (objects *field, as string) {
	elements := value.field.parent
	if elements == nil || !elements.isElement() {
		return nil, ""
	}
	objects = elements.parent
	kind, member, _ := strings.Cut(values.as, "/")
	name := value.field.name()
	switch {
	case strings.Contains(name, "/"):
	case kind == asWrap && value.index == values.index+"/0" && mayWrap(objects, values.field, name),
		kind == asMember && value.index == values.index+"/"+member && mayWrap(objects, values.field, name):
		return objects, asField + "/" + name
	case kind == asMember && value.index == values.index+"/0":
		for key, child := range elements.children {
			if !strings.Contains(key, "/") && plain(all[spot{child, value.index}]) == member && mayIndex(objects, values.field, key, name) {
				return objects, asEntry + "/" + key + "/" + name
			}
		}
	}
	return nil, ""
}

// separators are what a string may have between the elements of a list, longer ones first.
var separators = []string{", ", "; ", ",", ";", "|", " ", "\n"}

// maxParts bounds the elements in a string.
const maxParts = 20

// listsIn returns the lists that a string may stand for.
func listsIn(value string) (forms []form) {
	for _, separator := range separators {
		if parts := strings.Split(value, separator); len(parts) > 1 && len(parts) <= maxParts {
			forms = append(forms, form{string(v1alpha1.CastList) + "/" + separator, string(preserved.Encode(parts))})
		}
	}
	return forms
}

// separatorIn returns the separator that the description of a string names, empty if none.
func separatorIn(f *field) string {
	text := strings.ToLower(f.schema.Description)
	for _, named := range []struct{ word, separator string }{{"comma", ","}, {"semicolon", ";"}, {"space", " "}} {
		if strings.Contains(text, named.word+"-separated") || strings.Contains(text, named.word+" separated") || strings.Contains(text, "separated by "+named.word) {
			return named.separator
		}
	}
	return ""
}

// documentsIn returns the object or list that a text may stand for.
func documentsIn(text string) (forms []form) {
	if !strings.ContainsAny(text, ":{[\n") {
		return nil
	}
	for _, format := range document.Formats {
		a := new(tree.Arena)
		value := document.Read(a, format, []byte(text))
		if !value.Is(tree.Object) && !value.Is(tree.List) {
			continue
		}
		if encoded := string(a.Canonical(nil, value)); !isZero(encoded) {
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
