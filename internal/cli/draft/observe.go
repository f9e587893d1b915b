// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package draft

import (
	"cmp"
	"encoding/json"
	"iter"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
	"github.com/conversion-operator/conversion-operator/internal/engine/conversion"
	"github.com/conversion-operator/conversion-operator/internal/engine/conversion/document"
	"github.com/conversion-operator/conversion-operator/internal/engine/preserved"
)

// observation is an object and what it is at the other version.
type observation struct {
	toHub  bool
	object []byte
	// answer is the object at the other version without annotations, if a converter made it.
	answer []byte
	// in are the values of the object, and out those at the other version.
	in, out entries
	// changed is the field by which the object differs from the base object, nil if there are several.
	// base is what the converter makes of the base object.
	changed *field
	base    entries
}

// isPair reports whether the objects were read, and not converted one from the other.
func (o *observation) isPair() bool { return o.answer == nil }

// names returns the name and the namespace of the object, as text of JSON, empty if it has none.
func (o *observation) names() (name, namespace string) {
	var object struct {
		Metadata struct{ Name, Namespace string } `json:"metadata"`
	}
	if err := json.Unmarshal(o.object, &object); err != nil {
		return "", "" // objects without metadata
	}
	encoded := func(text string) string {
		if text == "" {
			return ""
		}
		return string(preserved.Encode(text))
	}
	return encoded(object.Metadata.Name), encoded(object.Metadata.Namespace)
}

// spokeAndHub returns the values by version.
func (o *observation) spokeAndHub() (spoke, hub entries) {
	if o.toHub {
		return o.in, o.out
	}
	return o.out, o.in
}

// place of a value in an object: its field, and the indexes and keys of the elements around it.
type spot struct {
	field *field
	index string
}

// entries are the values of leaf fields of an object, as text of JSON. Lists and maps of scalars are one
// value.
type entries map[spot]string

// sortedSpots returns places in the order of their fields.
func sortedSpots(all iter.Seq[spot]) []spot {
	return slices.SortedFunc(all, func(a, b spot) int {
		return cmp.Or(cmp.Compare(a.field.order, b.field.order), strings.Compare(a.index, b.index))
	})
}

// entriesOf reads an object, without its metadata.
func entriesOf(root *field, object any) entries {
	found := entries{}
	if members, isObject := object.(map[string]any); isObject {
		found.add(root, withoutEnvelope(members), "")
	}
	return found
}

func withoutEnvelope(members map[string]any) map[string]any {
	members = maps.Clone(members)
	for name := range members {
		if conversion.IsEnvelope(name) {
			delete(members, name)
		}
	}
	return members
}

func (e entries) add(f *field, value any, index string) {
	switch value := value.(type) {
	case map[string]any:
		if len(value) == 0 || f.children == nil {
			break
		}
		for name, member := range value {
			if child := f.children[name]; child != nil && !child.isElement() {
				e.add(child, member, index)
			} else if child := f.children[conversion.Each]; child != nil && f.kind == kindMap {
				e.add(child, member, index+"/"+name)
			} else {
				e[spot{f, index + "/." + name}] = string(preserved.Encode(member))
			}
		}
		return
	case []any:
		if child := f.children[conversion.Each]; child != nil && len(value) > 0 && f.kind == "array" {
			for i, element := range value {
				e.add(child, element, index+"/"+strconv.Itoa(i))
			}
			return
		}
	}
	e[spot{f, index}] = string(preserved.Encode(value))
}

// byField returns the places of each field.
func (e entries) byField() map[*field][]spot {
	all := map[*field][]spot{}
	for at := range e {
		all[at.field] = append(all[at.field], at)
	}
	return all
}

// isZero reports whether a value is what Go takes for none: many converters do not write it.
func isZero(text string) bool {
	return slices.Contains([]string{"", `""`, "0", "false", "null", "{}", "[]", `"0s"`, `"0"`, "0.0"}, text)
}

// isNothing reports whether a value of a field is what many converters take for none. In an object that was read, it is a
// value if the schema has another default.
func (o *observation) isNothing(f *field, text string) bool {
	return isZero(text) && (!o.isPair() || f.schema.Default == nil || isZero(string(f.schema.Default.Raw)))
}

// areFilled reports whether an API server fills in a value: it is the default of the field, in an object that is there.
func (e entries) areFilled(at spot, text string) bool {
	if at.field.schema.Default == nil || !sameValue(text, string(at.field.schema.Default.Raw)) {
		return false
	}
	for other := range e {
		if other.field.within(at.field.parent) && strings.HasPrefix(other.index, at.index) {
			return true
		}
	}
	return false
}

// saysLittle reports whether a value occurs at many places by chance.
func saysLittle(text string) bool { return isZero(text) || text == "true" || text == "1" }

// relation is how two fields have the same value, as a rule names it.
type relation struct {
	spoke, hub *field
	// as is empty for the same value, wrap, index, the type of a cast with its unit or separator, or field or entry, with the
	// names of the fields.
	as string
}

const (
	// asWrap relates a list with its only element, and asIndex a list with a map whose values are its elements.
	asWrap, asIndex = "wrap", "index"
	// asMember is the only value of a map, with its key.
	asMember = "member"
	// asField relates a list or map of values with objects that have them in a field, and asEntry a map of values
	// with a list of objects that have a key and a value.
	asField, asEntry = "field", "entry"
)

// form is a value in one of the forms that rules make of it.
type form struct{ as, text string }

// formsOf returns a value, and what casts and wraps may make of it.
func formsOf(text string) []form {
	forms := []form{{"", text}}
	switch text[0] {
	case '[':
		var elements []json.RawMessage
		if json.Unmarshal([]byte(text), &elements) == nil && len(elements) == 1 {
			forms = append(forms, form{asWrap, string(elements[0])})
		}
	case '{':
		var members map[string]json.RawMessage
		if json.Unmarshal([]byte(text), &members) == nil && len(members) == 1 {
			for name, value := range members {
				forms = append(forms, form{asMember + "/" + name, string(value)})
			}
		}
	case '"':
		var value string
		if json.Unmarshal([]byte(text), &value) != nil {
			break
		}
		forms = append(append(forms, listsIn(value)...), documentsIn(value)...)
		if len(value) == 0 || len(value) > maxCast || !strings.ContainsAny(value[:1], "0123456789-.tf") {
			break
		}
		for _, c := range casts {
			if number, ok := c.Read([]byte(value)); ok {
				forms = append(forms, form{c.as, string(number)})
			}
		}
	}
	return forms
}

// maxCast bounds the texts that are read as numbers.
const maxCast = 40

type namedCast struct {
	as string
	conversion.Cast
}

// casts read what a text may stand for, the simplest first.
var casts = func() []namedCast {
	all := []namedCast{
		{"Boolean", conversion.Cast{Boolean: true}}, {"Integer", conversion.Cast{}}, {"Number", conversion.Cast{Number: true}},
		{"Timestamp", conversion.Cast{Timestamp: true}}, {"Seconds", conversion.Cast{Seconds: true}}, {"Milliseconds", conversion.Cast{Milliseconds: true}},
	}
	for _, unit := range conversion.Units {
		all = append(all, namedCast{"Quantity/" + unit, conversion.Cast{Quantity: unit}})
	}
	return all
}()

// evidence is what observations say about relations between fields.
type evidence struct {
	// relations count the observations in which two fields have the same value.
	relations map[relation]int
	// causes are the fields of the other version that change with a field.
	causes map[*field]map[*field]bool
	// templates count the templates by which fields of the hub make a string of the spoke.
	templates map[template]int
}

type template struct {
	spoke *field
	text  string
	// parts are the paths of the fields of the hub, in order, joined by spaces.
	parts string
}

// maxSame bounds the places with the same value that are compared.
const maxSame = 6

// gather compares the values of the fields that are of interest.
func gather(observations []*observation, interesting func(*field) bool) *evidence {
	e := &evidence{relations: map[relation]int{}, causes: map[*field]map[*field]bool{}, templates: map[template]int{}}
	for _, o := range observations {
		in, out := entries{}, entries{}
		for at, text := range o.in {
			if interesting(at.field) && (o.changed == nil || at.field.within(o.changed)) {
				in[at] = text
			}
		}
		for at, text := range o.out {
			if before, there := o.base[at]; interesting(at.field) && (o.changed == nil || !there || before != text) {
				out[at] = text
			}
		}
		spoke, hub := in, out
		if !o.toHub {
			spoke, hub = out, in
		}
		if o.changed != nil {
			e.noteCauses(o, out)
		} else {
			e.relateDocuments(spoke, hub, func(text, other *field) (_, _ *field) { return text, other })
			e.relateDocuments(hub, spoke, func(text, other *field) (_, _ *field) { return other, text })
		}
		e.compare(spoke, hub, o.changed != nil)
		e.join(spoke, hub)
	}
	return e
}

func (e *evidence) noteCauses(o *observation, out entries) {
	if e.causes[o.changed] == nil {
		e.causes[o.changed] = map[*field]bool{}
	}
	for at := range out {
		e.causes[o.changed][at.field] = true
	}
}

type formAt struct {
	spot
	as string
}

func (e *evidence) compare(spoke, hub entries, all bool) {
	byText := map[string][]formAt{}
	for at, text := range hub {
		if all || !saysLittle(text) {
			for _, form := range formsOf(text) {
				byText[form.text] = append(byText[form.text], formAt{at, form.as})
			}
		}
	}
	for at, text := range spoke {
		if !all && saysLittle(text) {
			continue
		}
		for _, form := range formsOf(text) {
			if same := byText[form.text]; len(same) <= maxSame {
				for _, other := range same {
					e.relate(formAt{at, form.as}, other, spoke, hub)
				}
			}
		}
	}
}

func (e *evidence) relate(spoke, hub formAt, ofSpoke, ofHub entries) {
	as := spoke.as + hub.as
	kind, _, _ := strings.Cut(as, "/")
	if spoke.as != "" && hub.as != "" {
		return
	}
	if as != "" && kind != asWrap && kind != asMember {
		text, other := spoke.field, hub.field
		if hub.as != "" {
			text, other = hub.field, spoke.field
		}
		fits := castKind(other) == cmp.Or(castKinds[v1alpha1.CastType(kind)], "integer")
		if document.Known(kind) {
			fits = slices.Contains([]string{"object", "array", kindMap, kindAnything}, other.kind)
		}
		if text.kind != "string" || !fits {
			return
		}
	}
	switch {
	case kind == asMember, kind == asWrap && spoke.index != hub.index:
		if objects, found := elementWith(spoke, hub, ofHub); spoke.as != "" && objects != nil {
			e.relations[relation{spoke.field, objects, found}]++
		}
		if objects, found := elementWith(hub, spoke, ofSpoke); hub.as != "" && objects != nil {
			e.relations[relation{objects, hub.field, found}]++
		}
	case spoke.index == hub.index:
		e.relations[relation{spoke.field, hub.field, as}]++
	case as != "":
	case spoke.index == hub.index+"/0" || spoke.index+"/0" == hub.index:
		if list, one := listAndOne(spoke.field, hub.field); list != nil {
			e.relations[relation{list, one, asWrap}]++
		}
	case spoke.field.scope.parent != nil && hub.field.scope.parent != nil && spoke.field.scope.parent.kind != hub.field.scope.parent.kind:
		e.relations[relation{spoke.field.scope.parent, hub.field.scope.parent, asIndex}]++
	}
}

// listAndOne returns the fields of spoke and hub of which one is a list with the other as its element.
func listAndOne(spoke, hub *field) (a, b *field) {
	for at := spoke; at.parent != nil; at = at.parent {
		for other := hub; other.parent != nil; other = other.parent {
			if wraps(at, other) || wraps(other, at) {
				return at, other
			}
		}
	}
	return nil, nil
}

// maxJoined bounds the values of the hub that are sought in strings of the spoke.
const maxJoined = 400

// join finds templates: strings of the spoke in which values of the hub occur.
func (e *evidence) join(spoke, hub entries) {
	byIndex := map[string][]spot{}
	for at, text := range hub {
		if (at.field.kind == "string" || at.field.kind == "integer") && !isZero(text) {
			byIndex[at.index] = append(byIndex[at.index], at)
		}
	}
	for at, text := range spoke {
		var whole string
		if parts := byIndex[at.index]; at.field.kind == "string" && len(parts) <= maxJoined && json.Unmarshal([]byte(text), &whole) == nil {
			e.template(at.field, whole, parts, hub)
		}
	}
}

// occurrence of a value of the hub in a string of the spoke.
type occurrence struct {
	field      *field
	start, end int
}

func (e *evidence) template(of *field, whole string, parts []spot, hub entries) {
	var found []occurrence
	for _, part := range parts {
		text := plain(hub[part])
		if start := strings.Index(whole, text); start >= 0 && text != whole && strings.LastIndex(whole, text) == start {
			found = append(found, occurrence{part.field, start, start + len(text)})
		}
	}
	slices.SortFunc(found, func(a, b occurrence) int { return a.start - b.start })
	var text, names strings.Builder
	end := 0
	for i, o := range found {
		if o.start < end || i > 0 && o.start == end || strings.ContainsAny(whole[end:o.start], "{}") {
			return // values overlap, or touch
		}
		text.WriteString(whole[end:o.start] + "{" + o.field.name() + "}")
		names.WriteString(o.field.String() + " ")
		end = o.end
	}
	if len(found) == 0 || strings.ContainsAny(whole[end:], "{}") {
		return
	}
	text.WriteString(whole[end:])
	e.templates[template{of, text.String(), strings.TrimSuffix(names.String(), " ")}]++
}

// plain returns the text of a string or number.
func plain(text string) string {
	var value string
	if json.Unmarshal([]byte(text), &value) == nil {
		return value
	}
	return text
}
