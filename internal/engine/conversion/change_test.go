// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package conversion_test

import (
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/pruning"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
	"github.com/conversion-operator/conversion-operator/internal/engine/conversion"
	"github.com/conversion-operator/conversion-operator/internal/engine/conversion/compile"
	"github.com/conversion-operator/conversion-operator/internal/engine/conversion/internal/generate"
	"github.com/conversion-operator/conversion-operator/internal/engine/conversion/shape"
	"github.com/conversion-operator/conversion-operator/internal/engine/preserved"
)

// FuzzChange changes rules, schemas and hubs while objects have preserved data. Current rules lose
// nothing that previous rules preserved: it is restored, was superseded by live data, or is still
// preserved.
func FuzzChange(f *testing.F) {
	c := newTally(f, 64, "edits", "fields", "entries restored", "entries carried on", "entries superseded")
	f.Cleanup(func() {
		const rarely = 200
		if c.parts[madeByOthers]*rarely > c.parts["entries restored"]+rarely {
			f.Errorf("%d %s", c.parts[madeByOthers], madeByOthers)
		}
	})
	f.Fuzz(func(t *testing.T, seed uint64, choices []byte) {
		if c.isOver() {
			return
		}
		e := newEvolution(t, generate.Choose(seed%(1<<objectBits), choices))
		e.tally = c
		defer func() {
			describe(t, e.crds[0], e.rules[0])
			describe(t, e.crds[1], e.rules[1])
		}()
		c.world(t, seed, e.Choices, func() { e.change(t) })
	})
}

// evolution is a kind before and after a change of its rules and schemas.
type evolution struct {
	*generate.Objects
	*tally
	before, after *conversion.Converter
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
		e.schemas[i] = structuralSchemas(t, e.crds[i])
	}
	return e
}

// ruled generates rules between two versions of a kind, one of them the hub.
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

// change converts an object to another version by the previous rules and back by the current ones,
// each time with a possible edit; there and back again by the current rules; and finally there by
// the current rules and back by the previous ones.
func (e *evolution) change(t *testing.T) {
	from, to := "v1", "v2"
	if e.IntN(2) == 0 {
		from, to = to, from
	}
	object := e.object(0, from)
	metadata, _ := object["metadata"].(map[string]any)
	if metadata["name"] == nil && metadata["uid"] == nil {
		e.count("left out: fragments, of which expressions see something or nothing")
		return
	}
	x := string(e.Text(object))
	there := e.maybeEdited(t, e.read(t, convert(t, e.before, x, to), from), to, from)
	back := e.read(t, convert(t, e.after, there.text, from), from)
	e.wantPreserved(t, there, back, e.after, from)
	back.edited = there.edited
	back = e.maybeEdited(t, back, from, from)
	again := e.read(t, convert(t, e.after, back.text, to), from)
	home := e.read(t, convert(t, e.after, again.text, from), from)
	again.edited, home.edited = back.edited, back.edited
	e.wantPreserved(t, again, home, e.after, from)
	e.wantSame(t, back, again, home, from)
	middle := e.read(t, convert(t, e.after, home.text, to), from)
	middle.edited = home.edited
	e.wantPreserved(t, middle, e.read(t, convert(t, e.before, middle.text, from), from), e.before, from)
	for _, left := range [][2]reading{{back, again}, {home, middle}} {
		e.wantStillPreserved(t, left[0], left[1], from)
	}
}

// wantStillPreserved checks that the preserved data that an object has of its own version is still
// preserved at another version, unless live data superseded it: for an element, a list that is
// preserved as a whole.
func (e *evolution) wantStillPreserved(t *testing.T, here, there reading, version string) {
	t.Helper()
	for pointer := range here.entries {
		_, live := valueAt(here.object, withIndexes(here.object, pointer))
		list := pointer[:strings.LastIndex(pointer, "/")]
		if !carries(there.entries, pointer) && !live && there.entries[list] == nil && !e.isPartOfLive(nil, here.object, version, pointer) {
			t.Fatalf("%s is not carried on:\n%s\nbecame\n%s", pointer, here.text, there.text)
		}
		e.count("entries of their own version")
	}
}

// object generates an object of a version, before (0) or after (1) the change.
func (e *evolution) object(when int, version string) map[string]any {
	return e.Object(e.schemas[when][version], "example.com/"+version, "Widget")
}

// maybeEdited returns an object with or without an edit that fits the previous or the current
// schema. The API server prunes fields that the current schema lacks before it converts the object.
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

// reading is an object as text, decoded, and its preserved data of a version.
type reading struct {
	text    string
	object  map[string]any
	entries map[string]any
	// shown are the entries from which the other version got something.
	shown  map[string]any
	edited bool
}

func (e *evolution) read(t testing.TB, text, preservedOf string) reading {
	t.Helper()
	r := reading{text: text, object: decode(t, text)}
	annotations := annotationsOf(r.object)
	if text, found := annotations[conversion.AnnotationName("widgets.example.com", preservedOf)].(string); found {
		data, _ := inflated(t, text).(map[string]any)
		r.entries = valuesIn(data)
		r.shown = map[string]any{}
		for of := data; of != nil; of, _ = of["older"].(map[string]any) {
			values, _ := of["values"].(map[string]any)
			maps.Copy(r.shown, values)
		}
	}
	return r
}

// wantSame compares an object that came back with its former state: missing fields are preserved,
// because the current schema refuses them. A null may be missing, since it means the same as an
// absence. A default may be missing where another value of the field was preserved, since a default
// is not live data.
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
		case e.otherRulesMake(version, pointer):
			e.count(madeByOthers)
		case covered(before.entries, pointer) && e.isDefault(version, pointer, value):
			e.count("defaults in the place of something preserved")
		default:
			t.Fatalf("%s is lost:\n%s\nby the current rules is at the other version\n%s\nand comes back as\n%s", pointer, before.text, between.text, after.text)
		}
	}
}

// leavesOf returns the scalars and lists of an object by their pointers.
func leavesOf(value any, at string) map[string]any {
	object, isObject := value.(map[string]any)
	if !isObject {
		return map[string]any{at: value}
	}
	leaves := map[string]any{}
	for name := range object {
		maps.Copy(leaves, leavesOf(object[name], at+"/"+escapePointer(name)))
	}
	return leaves
}

// wantPreserved checks the preserved data of a version against the object at that version, which
// was converted by the converter by. An entry is still preserved, or is restored, or is superseded
// by live data, which the object also has at that version without any preserved data, or its parent
// is gone.
//
// A value of a rule is superseded by live data of any field that the rule computes with it or from
// it, and a value that does not fit by any value of the field. A null or an empty object may be
// absent instead. After an edit, the fields that a rule had computed may be gone, or their parent,
// which rules may create again; also without an edit if the current schema lacks those fields. If
// one entry contains another, the outer one has the object's latest value, and the inner one a
// value that did not fit. If a list did not fit and rules filled in a default instead, rules
// without that default treat the default as live data without elements.
//
// Entries of elements without keys are left out after an edit, because the elements cannot be
// identified; and where rules exclude elements: what was preserved of them is gone if the rules are new, and
// those that are put back have other indexes.
func (e *evolution) wantPreserved(t *testing.T, there, back reading, by *conversion.Converter, version string) {
	t.Helper()
	bare := map[string]any(nil)
	for pointer, value := range there.entries {
		got, found := valueAt(back.object, pointer)
		isSame := func(held any) bool { return has(held, value) }
		switch {
		case carries(back.entries, pointer):
			e.count("entries carried on")
		case slices.ContainsFunc(anywhere(back.object, splitPointer(pointer)), isSame):
			e.count("entries restored")
		case !found && (!isThere(back.object, pointer) || there.edited && (!isThere(there.object, pointer) || isInList(there.object, pointer))):
			e.count("entries whose object is gone")
		case !found && there.edited && there.shown[pointer] != nil:
			e.count("entries that an edit may contradict")
		case !found && (value == nil || isEmpty(value)):
			e.count("left out: entries with nothing in them")
		case !found && e.isInDefault(t, there, version, pointer):
			e.count("entries of lists in whose place there is a default")
		case !found && e.otherRulesMake(version, pointer):
			e.count(madeByOthers)
		case !found && !e.isPartOfLive(there.object, back.object, version, pointer):
			t.Fatalf("%s is lost, edited: %v:\n%s\nat %s\n%s", pointer, there.edited, there.text, version, back.text)
		case !found || e.hasRule(version, pointer) || !e.fits(version, pointer, value):
			e.count("entries superseded")
		case isOfOuter(there.entries, pointer, got):
			e.count("entries superseded by those around them")
		default:
			if bare == nil {
				bare = decode(t, convert(t, by, generate.Plain(withoutPreserved(decode(t, there.text))), version))
			}
			if was, live := valueAt(bare, pointer); !live || !reflect.DeepEqual(was, got) && !isContainer(got) {
				t.Fatalf("%s is neither what was preserved nor what is live:\n%s\nat %s\n%s\nwithout\n%s", pointer, there.text, version, back.text, generate.Plain(bare))
			}
			e.count("entries superseded")
		}
	}
}

// madeByOthers counts entries that are lost although their object exists: rules for another object make it now.
// That of the former rules does not exist by the current ones, as if a client had removed it.
const madeByOthers = "left out: entries whose object other rules make now"

// otherRulesMake reports whether the object around a pointer is moved by current rules, or was by previous
// ones, but not by both in the same way.
func (e *evolution) otherRulesMake(version, pointer string) bool {
	makes, full := [2]map[string]bool{{}, {}}, pathOf(pointer)
	for when, rules := range e.rules {
		for _, rule := range rules.Spokes[0].Rules {
			if rule.Move == nil {
				continue
			}
			own, other := rule.Move.From, rule.Move.To
			if version == string(rules.Hub) {
				own, other = other, own
			}
			path, err := conversion.ParsePath(string(own))
			if err == nil && (full.HasPrefix(path) || path.HasPrefix(full[:len(full)-1])) {
				makes[when][string(own)+" "+string(other)] = true
			}
		}
	}
	return !maps.Equal(makes[0], makes[1])
}

// pathOf returns the names in a pointer.
func pathOf(pointer string) (path conversion.Path) {
	for segment := range strings.SplitSeq(pointer[1:], "/") {
		path = append(path, unescapePointer(segment))
	}
	return path
}

// isInDefault reports whether an entry is in a list that is also preserved of the other version,
// while the object has a default in the place of the list.
func (e *evolution) isInDefault(t testing.TB, there reading, version, pointer string) bool {
	t.Helper()
	entries := e.read(t, there.text, other(version)).entries
	for pos := strings.LastIndexByte(pointer, '/'); pos > 0; pos = strings.LastIndexByte(pointer[:pos], '/') {
		live, _ := valueAt(there.object, pointer[:pos])
		if _, found := entries[pointer[:pos]]; found && e.isDefault(other(version), pointer[:pos], live) {
			return true
		}
	}
	return false
}

// isDefault reports whether previous or current rules fill in a value at a field.
func (e *evolution) isDefault(version, pointer string, value any) bool {
	return slices.ContainsFunc([]*conversion.Converter{e.before, e.after}, func(c *conversion.Converter) bool {
		return slices.ContainsFunc(rulesTo(c, version, pointer), func(r rule) bool {
			return r.fill != nil && string(r.fill) == generate.Plain(value)
		})
	})
}

// isOfOuter reports whether the value at an entry's pointer comes from an entry that contains that
// pointer.
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

// carries reports whether an entry, or a part of it, is among others.
func carries(entries map[string]any, pointer string) bool {
	for at := range entries {
		if at == pointer || strings.HasPrefix(at, pointer+"/") {
			return true
		}
	}
	return false
}

// isThere reports whether the parent of a pointer exists and can have the field.
func isThere(object any, pointer string) bool {
	pos := strings.LastIndex(pointer, "/")
	parent, found := valueAt(object, pointer[:pos])
	if isInList(object, pointer) {
		return isIndex(pointer[pos+1:]) || pointer[pos+1] == '['
	}
	return found && isContainer(parent)
}

// isInList reports whether the parent of a pointer is a list.
func isInList(object any, pointer string) bool {
	parent, _ := valueAt(object, pointer[:strings.LastIndex(pointer, "/")])
	_, isList := parent.([]any)
	return isList
}

// isPartOfLive reports whether an object has a value, at this or the other version, in a field of a
// previous or current rule that computes the field.
func (e *evolution) isPartOfLive(there, here any, version, pointer string) bool {
	isLive := func(object any, scope string) func(string) bool {
		return func(field string) bool {
			_, live := valueAt(object, scope+field)
			return live
		}
	}
	for _, c := range []*conversion.Converter{e.before, e.after} {
		for _, r := range rulesTo(c, version, pointer) {
			if slices.ContainsFunc(r.to, isLive(here, r.scope)) || slices.ContainsFunc(r.from, isLive(there, r.otherScope)) {
				return true
			}
		}
	}
	return false
}

// fits reports whether a value fits the previous and the current schema of its field.
func (e *evolution) fits(version, pointer string, value any) bool {
	for _, c := range []*conversion.Converter{e.before, e.after} {
		at := schemaAt(c, version, pointer)
		if at != nil && !fits(at, value) {
			return false
		}
	}
	return true
}

// schemaAt returns the schema of a field, nil if there is none.
func schemaAt(c *conversion.Converter, version, pointer string) *shape.Schema {
	at := c.ShapeOf(version)
	for _, segment := range splitPointer(pointer) {
		switch {
		case at == nil:
		case at.Kind == shape.ArrayKind:
			at = at.Items()
		default:
			at = at.Field(unescapePointer(segment))
		}
	}
	return at
}

// hasRule reports whether a previous or current rule computes a field.
func (e *evolution) hasRule(version, pointer string) bool {
	return len(rulesTo(e.before, version, pointer))+len(rulesTo(e.after, version, pointer)) > 0
}

// anywhere returns the values at a pointer, with any index in the place of its indexes.
func anywhere(value any, path []string) (found []any) {
	if len(path) == 0 {
		return []any{value}
	}
	list, isList := value.([]any)
	if isList && isIndex(path[0]) {
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

// has reports whether a value contains another value.
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
	return reflect.DeepEqual(value, other)
}

func isContainer(value any) bool {
	switch value.(type) {
	case map[string]any, []any:
		return true
	}
	return false
}

// isEmpty reports whether a value is an empty object or list.
func isEmpty(value any) bool {
	object, _ := value.(map[string]any)
	list, _ := value.([]any)
	return isContainer(value) && len(object)+len(list) == 0
}

// valueAt returns the value at the pointer of an entry.
func valueAt(value any, pointer string) (found any, there bool) {
	if pointer == "" {
		return value, true
	}
	return preserved.Find(value, pathOf(pointer))
}
