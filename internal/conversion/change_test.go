// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package conversion_test

import (
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/pruning"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
	"github.com/conversion-operator/conversion-operator/internal/conversion"
	"github.com/conversion-operator/conversion-operator/internal/conversion/compile"
	"github.com/conversion-operator/conversion-operator/internal/conversion/internal/generate"
	"github.com/conversion-operator/conversion-operator/internal/conversion/reference"
	"github.com/conversion-operator/conversion-operator/internal/conversion/shape"
)

// FuzzChange: rules, schemas and hubs change while objects have preserved data.
// Nothing that was preserved by the rules of then is lost by the rules of now: it is
// data, or was superseded by data, or is still preserved.
func FuzzChange(f *testing.F) {
	c := newTally(f, 64, "edits", "fields", "entries restored", "entries carried on", "entries superseded", "compared with the reference")
	f.Fuzz(func(t *testing.T, seed uint64, choices []byte) {
		if c.isOver() {
			return
		}
		e := newEvolution(t, generate.Choose(seed%(1<<objectBits), choices))
		e.tally = c
		defer e.describe(t)
		c.world(t, seed, e.Choices, func() { e.change(t) })
	})
}

// evolution is a kind at two times.
type evolution struct {
	*generate.Objects
	*tally
	before, after *conversion.Converter
	reference     *reference.Converter // by the rules of now
	schemas       [2]map[string]*schema.Structural
	rules         [2]*v1alpha1.DeclarativeConverter
	crds          [2]*apiextensionsv1.CustomResourceDefinition
}

func newEvolution(t testing.TB, c *generate.Choices) *evolution {
	t.Helper()
	e := &evolution{Objects: &generate.Objects{Choices: c}}
	v1, v2 := c.Schemas()
	e.crds[0], e.rules[0] = ruled(t, c, v1, v2, "v2")
	v1, v2 = c.Evolved(v1, v2)
	e.crds[1], e.rules[1] = ruled(t, c, v1, v2, generate.One(c, "v2", "v2", "v1"))
	e.before, e.after = converterOf(t, compile.Compile(e.crds[0], e.rules[0])), converterOf(t, compile.Compile(e.crds[1], e.rules[1]))
	for i := range e.crds {
		e.schemas[i], _ = structuralSchemas(e.crds[i])
	}
	text, err := e.after.Ruleset().Marshal()
	if err != nil {
		t.Fatal(err)
	}
	if e.reference, err = reference.New(text); err != nil {
		t.Fatal(err)
	}
	return e
}

// ruled makes rules between two versions of a kind, one of them the hub.
func ruled(t testing.TB, c *generate.Choices, v1, v2 *apiextensionsv1.JSONSchemaProps, hub string) (*apiextensionsv1.CustomResourceDefinition, *v1alpha1.DeclarativeConverter) {
	crd := widgets(t, map[string]string{"v1": "", "v2": ""})
	for _, s := range []*apiextensionsv1.JSONSchemaProps{v1, v2} {
		withoutNulls(s) // a live null supersedes what was preserved
	}
	crd.Spec.Versions[0].Schema.OpenAPIV3Schema, crd.Spec.Versions[1].Schema.OpenAPIV3Schema = v1, v2
	spoke, ofSpoke, ofHub := "v1", v1, v2
	if hub == "v1" {
		spoke, ofSpoke, ofHub = "v2", v2, v1
	}
	rules := &v1alpha1.DeclarativeConverter{Hub: v1alpha1.VersionName(hub), Spokes: []v1alpha1.Spoke{{Version: v1alpha1.VersionName(spoke)}}}
	rules.Spokes[0].Rules = c.Rules(ofSpoke, ofHub, func(some []v1alpha1.Rule) bool {
		if slices.ContainsFunc(some, func(rule v1alpha1.Rule) bool { return rule.Drop != nil }) {
			return false
		}
		rules.Spokes[0].Rules = some
		return compile.Compile(crd, rules).Ruleset != nil
	})
	return crd, rules
}

func withoutNulls(s *apiextensionsv1.JSONSchemaProps) {
	s.Nullable = false
	for name, property := range s.Properties {
		withoutNulls(&property)
		s.Properties[name] = property
	}
	if s.Items != nil {
		withoutNulls(s.Items.Schema)
	}
	if s.AdditionalProperties != nil && s.AdditionalProperties.Schema != nil {
		withoutNulls(s.AdditionalProperties.Schema)
	}
}

// describe says where the law was broken.
func (e *evolution) describe(t testing.TB) {
	if !t.Failed() {
		return
	}
	for i := range e.crds {
		for _, v := range e.crds[i].Spec.Versions {
			t.Logf("%d %s: %s", i, v.Name, generate.Plain(v.Schema.OpenAPIV3Schema))
		}
		t.Logf("%d rules: %s", i, generate.Plain(e.rules[i]))
	}
}

// change converts an object to another version by the rules of then, where it may be
// edited, and back by those of now, where it may be edited; there again and back again;
// and at last there by the rules of now, and back by those of then.
func (e *evolution) change(t *testing.T) {
	from, to := "v1", "v2"
	if e.IntN(2) == 0 {
		from, to = to, from
	}
	x := string(e.Text(e.object(0, from)))
	there := e.maybeEdited(t, e.read(t, convert(t, e.before, x, to), from), to, from)
	back := e.read(t, e.asReference(t, there, from), from)
	e.wantKept(t, there, back, e.after, from)
	back.edited = there.edited
	back = e.maybeEdited(t, back, from, from)
	again := e.read(t, e.asReference(t, back, to), from)
	home := e.read(t, e.asReference(t, again, from), from)
	again.edited, home.edited = back.edited, back.edited
	e.wantKept(t, again, home, e.after, from)
	e.wantSame(t, back, again, home, from)
	middle := e.read(t, convert(t, e.after, home.text, to), from)
	middle.edited = home.edited
	e.wantKept(t, middle, e.read(t, convert(t, e.before, middle.text, from), from), e.before, from)
	for _, left := range [][2]reading{{back, again}, {home, middle}} {
		e.wantCarried(t, left[0], left[1], from)
	}
}

// wantCarried holds what an object has preserved of its own version, which was carried on
// so far, against the object at another version: it is still preserved, unless there is
// live data that supersedes it.
func (e *evolution) wantCarried(t *testing.T, here, there reading, version string) {
	t.Helper()
	for pointer := range here.entries {
		_, live := valueAt(here.object, pointer)
		if !carries(there.entries, pointer) && !live && !e.isPartOfLive(nil, here.object, version, pointer) {
			t.Fatalf("%s is not carried on:\n%s\nbecame\n%s", pointer, here.text, there.text)
		}
		e.count("entries of their own version")
	}
}

// object makes an object of a version, then (0) or now (1).
func (e *evolution) object(when int, version string) map[string]any {
	return e.Object(e.schemas[when][version], "example.com/"+version, "Widget")
}

// maybeEdited is an object that was edited, then or now, or unchanged. What the schema of
// now does not have, the API server takes away before it converts the object.
func (e *evolution) maybeEdited(t testing.TB, object reading, version, preservedOf string) reading {
	t.Helper()
	if e.IntN(2) == 0 {
		return object
	}
	value, edit := decode(t, object.text), e.object(e.IntN(2), version)
	metadata := value["metadata"]
	editor{e.Choices}.edit(value, edit)
	pruning.Prune(value, e.schemas[1][version], true)
	value["metadata"] = metadata
	e.count("edits")
	edited := e.read(t, generate.Plain(value), preservedOf)
	edited.edited = true
	return edited
}

// reading is an object as text, decoded, and what it has preserved of a version.
type reading struct {
	text    string
	object  map[string]any
	entries map[string]any
	// images are those of the entries.
	images map[string]any
	edited bool
}

func (e *evolution) read(t testing.TB, text, preservedOf string) reading {
	t.Helper()
	r := reading{text: text, object: decode(t, text)}
	annotations, _ := lookUp(r.object, conversion.Path{"metadata", "annotations"}).(map[string]any)
	if text, found := annotations[conversion.AnnotationName("widgets.example.com", preservedOf)].(string); found {
		preserved, _ := inflated(t, text).(map[string]any)
		r.entries, _ = preserved["fields"].(map[string]any)
		r.images, _ = preserved["images"].(map[string]any)
	}
	return r
}

// asReference converts by the rules of now, as the reference does. As the reference takes
// most of the time, it is asked for the first objects of a world, and then for each eighth.
func (e *evolution) asReference(t testing.TB, object reading, to string) string {
	t.Helper()
	got := convert(t, e.after, object.text, to)
	if e.number >= usualObjects && e.number%8 != 0 {
		return got
	}
	e.count("compared with the reference")
	want, err := e.reference.Convert(object.object, to)
	if err != nil {
		t.Fatalf("%v: %s", err, object.text)
	}
	if wanted := legible(t, generate.Plain(want)); !reference.Equal(wanted, legible(t, got)) {
		wantEqual(t, wanted, legible(t, got), "%s\nat %s", object.text, to)
	}
	return got
}

// wantSame holds an object that came back against what it was: what is not there any
// more is preserved, because the schema of now refuses it. A null may be gone: it says
// no more than an absence. So may a default where something else was preserved of the field:
// it is no live data.
func (e *evolution) wantSame(t *testing.T, before, between, after reading, version string) {
	t.Helper()
	was, is := before.object, after.object
	for pointer, value := range leavesOf(was, "") {
		if strings.HasPrefix(pointer, "/metadata") || value == nil || isEmpty(value) {
			continue
		}
		e.count("fields")
		if got, found := valueAt(is, pointer); found && has(got, value) {
			continue
		}
		switch {
		case covered(after.entries, pointer):
			e.count("fields preserved at their own version")
		case !e.fits(version, pointer, value):
			e.count("left out: fields that do not fit")
		case covered(before.entries, pointer) && e.isDefault(version, pointer, value):
			e.count("defaults in the place of something preserved")
		default:
			t.Fatalf("%s is lost:\n%s\nby the rules of now is at the other version\n%s\nand comes back as\n%s", pointer, before.text, between.text, after.text)
		}
	}
}

// leavesOf are the scalars and lists of an object, by their pointers.
func leavesOf(value any, at string) map[string]any {
	object, isObject := value.(map[string]any)
	if !isObject {
		return map[string]any{at: value}
	}
	leaves := map[string]any{}
	for name := range object {
		maps.Copy(leaves, leavesOf(object[name], at+"/"+conversion.EscapePointer(name)))
	}
	return leaves
}

// wantKept holds what was preserved of a version against the object at that version. An
// entry is carried on; or is data now; or is superseded by live data, which the object has
// at that version without anything preserved, too; or the object around it is gone. By is
// what has converted the object. What a rule
// computes is superseded by live data of any field that the rule computes with it, or from
// it, and what does not fit by any value in its place. A null, or an object with nothing in
// it, may be absent instead. After an edit, the fields may be gone that a rule had computed, or the
// object around it, which rules may make again; and so without an edit, where the schema of
// now lacks those fields. Of entries around each other, the one has what the object had last,
// and the other what did not fit. If a list did not fit, and rules put a default in its
// place, rules without that default take it for live data, in which there are no elements.
// Left out are entries of elements without keys after an edit: which element is which cannot
// be told.
func (e *evolution) wantKept(t *testing.T, there, back reading, by *conversion.Converter, version string) {
	t.Helper()
	bare := map[string]any(nil)
	for pointer, value := range there.entries {
		got, found := valueAt(back.object, pointer)
		isSame := func(held any) bool { return has(held, value) }
		switch {
		case carries(back.entries, pointer):
			e.count("entries carried on")
		case slices.ContainsFunc(anywhere(back.object, conversion.SplitPointer([]byte(pointer))), isSame):
			e.count("entries restored")
		case !found && (!isThere(back.object, pointer) || there.edited && (!isThere(there.object, pointer) || isInList(there.object, pointer))):
			e.count("entries whose object is gone")
		case there.edited && there.isOfElement(pointer):
			e.count("left out: entries of elements after an edit")
		case !found && (value == nil || isEmpty(value)):
			e.count("left out: entries with nothing in them")
		case !found && e.lacksImages(there, version, pointer) && (there.edited || !e.knowsImages(there, version, pointer)):
			e.count("entries whose counterpart was removed")
		case !found && e.isInDefault(t, there, version, pointer):
			e.count("entries of lists in whose place there is a default")
		case !found && !e.isPartOfLive(there.object, back.object, version, pointer):
			t.Fatalf("%s is lost, edited: %v:\n%s\nat %s\n%s", pointer, there.edited, there.text, version, back.text)
		case !found || e.hasRule(version, pointer) || !e.fits(version, pointer, value):
			e.count("entries superseded")
		case isOfOuter(there.entries, pointer, got):
			e.count("entries superseded by those around them")
		default:
			if bare == nil {
				bare = decode(t, convert(t, by, generate.Plain(withoutKept(decode(t, there.text))), version))
			}
			if was, live := valueAt(bare, pointer); !live || !reference.Equal(was, got) && !isContainer(got) {
				t.Fatalf("%s is neither what was preserved nor what is live:\n%s\nat %s\n%s\nwithout\n%s", pointer, there.text, version, back.text, generate.Plain(bare))
			}
			e.count("entries superseded")
		}
	}
}

// isOfElement reports whether an entry is of an element without keys.
func (r reading) isOfElement(pointer string) bool {
	_, isDigest := r.images[pointer].(string)
	return isDigest && conversion.IsIndex([]byte(pointer[strings.LastIndex(pointer, "/")+1:]))
}

// lacksImages reports whether an object has none of the fields that a rule computed from
// what was preserved.
func (e *evolution) lacksImages(there reading, version, pointer string) bool {
	images, _ := there.images[pointer].([]any)
	for _, c := range []*conversion.Converter{e.before, e.after} {
		rule := c.RuleTo(version, pointer)
		isLive := func(image any) bool {
			_, live := valueAt(there.object, rule.Scope+image.(string))
			return live
		}
		if rule != nil && len(images) > 0 && !slices.ContainsFunc(images, isLive) {
			return true
		}
	}
	return false
}

// knowsImages reports whether the schema of now has one of the fields that a rule computed
// from what was preserved of a version.
func (e *evolution) knowsImages(there reading, version, pointer string) bool {
	images, _ := there.images[pointer].([]any)
	for _, c := range []*conversion.Converter{e.before, e.after} {
		rule := c.RuleTo(version, pointer)
		if rule != nil && slices.ContainsFunc(images, func(image any) bool {
			return schemaAt(e.after, other(version), rule.Scope+image.(string)) != nil
		}) {
			return true
		}
	}
	return false
}

// other is the other one of the two versions.
func other(version string) string {
	if version == "v1" {
		return "v2"
	}
	return "v1"
}

// isInDefault reports whether an entry is of a list that is preserved of the other version,
// too, while an object has a default in its place.
func (e *evolution) isInDefault(t testing.TB, there reading, version, pointer string) bool {
	t.Helper()
	preserved := e.read(t, there.text, other(version)).entries
	for pos := strings.LastIndexByte(pointer, '/'); pos > 0; pos = strings.LastIndexByte(pointer[:pos], '/') {
		live, _ := valueAt(there.object, pointer[:pos])
		if _, found := preserved[pointer[:pos]]; found && e.isDefault(other(version), pointer[:pos], live) {
			return true
		}
	}
	return false
}

// isDefault reports whether rules, then or now, put a value into a field of a version.
func (e *evolution) isDefault(version, pointer string, value any) bool {
	return slices.ContainsFunc([]*conversion.Converter{e.before, e.after}, func(c *conversion.Converter) bool {
		filled := c.FilledAt(version, pointer)
		return filled != nil && string(filled) == generate.Plain(value)
	})
}

// isOfOuter reports whether an object has, at the place of an entry, what another entry
// around it has there.
func isOfOuter(entries map[string]any, pointer string, got any) bool {
	for at, value := range entries {
		rest, below := strings.CutPrefix(pointer, at+"/")
		if !below {
			continue
		}
		if was, found := valueAt(value, "/"+rest); found && has(got, was) {
			return true
		}
	}
	return false
}

// carries reports whether an entry is among others, or its parts are.
func carries(entries map[string]any, pointer string) bool {
	for at := range entries {
		if at == pointer || strings.HasPrefix(at, pointer+"/") {
			return true
		}
	}
	return false
}

// isThere reports whether the object, or list, directly around a place is there.
func isThere(object any, pointer string) bool {
	pos := strings.LastIndex(pointer, "/")
	parent, found := valueAt(object, pointer[:pos])
	if isInList(object, pointer) {
		return conversion.IsIndex([]byte(pointer[pos+1:])) || pointer[pos+1] == '['
	}
	return found && isContainer(parent)
}

// isInList reports whether there is a list directly around a place.
func isInList(object any, pointer string) bool {
	parent, _ := valueAt(object, pointer[:strings.LastIndex(pointer, "/")])
	_, isList := parent.([]any)
	return isList
}

// isPartOfLive reports whether an object has a value, here or at the other version, in a
// field of a rule, then or now, that computes a field.
func (e *evolution) isPartOfLive(there, here any, version, pointer string) bool {
	for _, c := range []*conversion.Converter{e.before, e.after} {
		rule := c.RuleTo(version, pointer)
		if rule == nil {
			continue
		}
		isLive := func(object any) func(string) bool {
			return func(field string) bool {
				_, live := valueAt(object, rule.Scope+field)
				return live
			}
		}
		if slices.ContainsFunc(rule.To, isLive(here)) || slices.ContainsFunc(rule.From, isLive(there)) {
			return true
		}
	}
	return false
}

// fits reports whether a value is one that its field can have, then and now.
func (e *evolution) fits(version, pointer string, value any) bool {
	for _, c := range []*conversion.Converter{e.before, e.after} {
		at := schemaAt(c, version, pointer)
		if at != nil && at.Fits([]byte(generate.Plain(value))) != nil {
			return false
		}
	}
	return true
}

// schemaAt is that of a field, nil where the schema of a version has none.
func schemaAt(c *conversion.Converter, version, pointer string) *shape.Schema {
	at := c.ShapeOf(version)
	for _, segment := range conversion.SplitPointer([]byte(pointer)) {
		switch {
		case at == nil:
		case at.IsList():
			at = at.Items()
		default:
			at = at.Field(conversion.UnescapePointer(segment))
		}
	}
	return at
}

// hasRule reports whether a rule computes a field, then or now.
func (e *evolution) hasRule(version, pointer string) bool {
	return e.before.Computes(version, pointer) || e.after.Computes(version, pointer)
}

// anywhere are the values at a pointer, whichever elements its indexes name.
func anywhere(value any, path []string) (found []any) {
	if len(path) == 0 {
		return []any{value}
	}
	list, isList := value.([]any)
	if isList && conversion.IsIndex([]byte(path[0])) {
		for _, element := range list {
			found = append(found, anywhere(element, path[1:])...)
		}
		return found
	}
	if next, there := valueAt(value, "/"+path[0]); there {
		return anywhere(next, path[1:])
	}
	return nil
}

// has reports whether a value has all that another one has.
func has(value, other any) bool {
	switch other := other.(type) {
	case map[string]any:
		object, isObject := value.(map[string]any)
		for name := range other {
			if got, found := object[name]; !found || !has(got, other[name]) {
				return false
			}
		}
		return isObject
	case []any:
		list, isList := value.([]any)
		if len(list) != len(other) {
			return false
		}
		for i := range other {
			if !has(list[i], other[i]) {
				return false
			}
		}
		return isList
	}
	return reference.Equal(value, other)
}

func isContainer(value any) bool {
	switch value.(type) {
	case map[string]any, []any:
		return true
	}
	return false
}

// isEmpty reports whether a value is an object or a list with nothing in it.
func isEmpty(value any) bool {
	object, _ := value.(map[string]any)
	list, _ := value.([]any)
	return isContainer(value) && len(object)+len(list) == 0
}

// valueAt follows the pointer of an entry.
func valueAt(value any, pointer string) (found any, there bool) {
	if pointer == "" {
		return value, true
	}
	for segment := range strings.SplitSeq(pointer[1:], "/") {
		switch held := value.(type) {
		case map[string]any:
			next, found := held[conversion.UnescapePointer(segment)]
			if !found {
				return nil, false
			}
			value = next
		case []any:
			i := slices.IndexFunc(held, func(element any) bool {
				return strings.HasPrefix(segment, "[") && conversion.SelectorOf(generate.Plain(element), segment) == segment
			})
			if conversion.IsIndex([]byte(segment)) {
				i, _ = strconv.Atoi(segment)
				if i >= len(held) {
					i = -1
				}
			}
			if i < 0 {
				return nil, false
			}
			value = held[i]
		default:
			return nil, false
		}
	}
	return value, true
}
