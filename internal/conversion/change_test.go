// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package conversion

import (
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
	"github.com/conversion-operator/conversion-operator/internal/conversion/internal/generate"
	"github.com/conversion-operator/conversion-operator/internal/conversion/reference"
)

// FuzzChange: rules, schemas and hubs change while objects have preserved data.
// Nothing that was preserved by the rules of then is lost by the rules of now: it is
// data, or was superseded by data, or is still preserved.
func FuzzChange(f *testing.F) {
	c := newTally(f, 64)
	f.Fuzz(func(t *testing.T, seed uint64, choices []byte) {
		if c.isOver() {
			return
		}
		e := newEvolution(t, generate.Choose(seed%(1<<objectBits), choices))
		e.tally = c
		c.world(t, seed, e.Choices, func() { e.change(t) })
	})
}

// evolution is a kind at two times.
type evolution struct {
	*generate.Objects
	*tally
	before, after *Converter
	reference     *reference.Converter // by the rules of now
	crd           *apiextensionsv1.CustomResourceDefinition
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
	e.before, e.after = converterOf(t, Compile(e.crds[0], e.rules[0])), converterOf(t, Compile(e.crds[1], e.rules[1]))
	e.crd = e.crds[0]
	text, err := e.after.plan.Marshal()
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
		return Compile(crd, rules).Plan != nil
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

func (e *evolution) describe(t testing.TB) {
	for i := range e.crds {
		for _, v := range e.crds[i].Spec.Versions {
			t.Logf("%d %s: %s", i, v.Name, generate.Plain(v.Schema.OpenAPIV3Schema))
		}
		t.Logf("%d rules: %s", i, generate.Plain(e.rules[i]))
	}
}

// change converts an object to another version by the rules of then, and back by
// those of now, there again and back again.
func (e *evolution) change(t *testing.T) {
	from, to := "v1", "v2"
	if e.IntN(2) == 0 {
		from, to = to, from
	}
	schemas, _ := structuralSchemas(e.crd)
	x := string(e.Text(e.Object(schemas[from], "example.com/"+from, "Widget")))
	there := convert(t, e.before, x, to)
	back := e.asReference(t, there, from)
	bare := convert(t, e.after, generate.Plain(withoutKept(decode(t, there))), from)
	e.wantKept(t, there, back, bare, from)
	again := e.asReference(t, back, to)
	home := e.asReference(t, again, from)
	e.wantKept(t, again, home, convert(t, e.after, generate.Plain(withoutKept(decode(t, again))), from), from)
	e.wantSame(t, back, again, home, from)
	e.wantKept(t, home, convert(t, e.before, convert(t, e.after, home, to), from), "", from)
}

// asReference converts by the rules of now, as the reference does.
func (e *evolution) asReference(t testing.TB, object, to string) string {
	t.Helper()
	got := convert(t, e.after, object, to)
	want, err := e.reference.Convert(decode(t, object), to)
	if err != nil {
		t.Fatalf("%v: %s", err, object)
	}
	if wanted := legible(t, generate.Plain(want)); !reference.Equal(wanted, legible(t, got)) {
		e.describe(t)
		wantEqual(t, wanted, legible(t, got), "%s\nat %s", object, to)
	}
	return got
}

// wantSame holds an object that came back against what it was: what is not there any
// more is preserved, because the schema of now refuses it.
func (e *evolution) wantSame(t *testing.T, before, between, after, version string) {
	t.Helper()
	was, is := emptyAsNull(withoutKept(essence(t, before))), emptyAsNull(withoutKept(essence(t, after)))
	left := entriesOf(t, after, version)
	for pointer, value := range leavesOf(was, "") {
		if got, found := valueAt(is, pointer); found && reference.Equal(value, got) {
			continue
		}
		preserved := false
		for at := range left {
			preserved = preserved || at == pointer || strings.HasPrefix(at, pointer+"/") || strings.HasPrefix(pointer, at+"/")
		}
		if !preserved && value != nil && e.fits(version, pointer, value) {
			e.describe(t)
			t.Fatalf("%s is lost:\n%s\nby the rules of now is at the other version\n%s\nand comes back as\n%s", pointer, before, between, after)
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
		maps.Copy(leaves, leavesOf(object[name], at+"/"+escapePointer(name)))
	}
	return leaves
}

// wantKept holds what was preserved of a version against the object at that version:
// the value is there; or another one, that comes from live data; or it is preserved
// still; or the object that both versions have around it is gone. Bare is the object at
// that version without anything preserved, where it is known.
func (e *evolution) wantKept(t *testing.T, there, back, bare, version string) {
	t.Helper()
	live, left := decode(t, back), entriesOf(t, back, version)
	for pointer, value := range entriesOf(t, there, version) {
		if _, carried := left[pointer]; carried || slices.ContainsFunc(slices.Collect(maps.Keys(left)), func(p string) bool { return strings.HasPrefix(p, pointer+"/") }) {
			continue
		}
		if !e.fits(version, pointer, value) || e.hasRule(version, pointer) || has(map[string]any{}, value) {
			continue // it is carried on until there is live data, be it a default, or what a rule cannot express
		}
		got, found := valueAt(live, pointer)
		if slices.ContainsFunc(anywhere(live, splitPointer([]byte(pointer))), func(held any) bool { return has(held, value) }) {
			continue
		}
		if !found {
			if parent, held := valueAt(live, pointer[:strings.LastIndex(pointer, "/")]); held && parent != nil {
				e.describe(t)
				t.Fatalf("%s is lost:\n%s\nat %s\n%s", pointer, there, version, back)
			}
			continue
		}
		if reference.Equal(got, value) || bare == "" {
			continue
		}
		if was, live := valueAt(decode(t, bare), pointer); !live || !reference.Equal(was, got) && !isContainer(got) {
			e.describe(t)
			t.Fatalf("%s is neither what was preserved nor what is live:\n%s\nat %s\n%s\nwithout\n%s", pointer, there, version, back, bare)
		}
	}
}

// fits reports whether a value is one that its field can have, then and now.
func (e *evolution) fits(version, pointer string, value any) bool {
	for _, c := range []*Converter{e.before, e.after} {
		at := c.version(version).shape
		for _, segment := range splitPointer([]byte(pointer)) {
			switch {
			case at == nil:
			case at.IsList():
				at = at.Items()
			default:
				at = at.Field(unescapePointer(segment))
			}
		}
		if at != nil && at.Fits([]byte(generate.Plain(value))) != nil {
			return false
		}
	}
	return true
}

// hasRule reports whether a rule computes a field, then or now.
func (e *evolution) hasRule(name, pointer string) bool {
	for _, c := range []*Converter{e.before, e.after} {
		v := c.version(name)
		way := v.fromHub
		if way == nil {
			i := slices.IndexFunc(c.versions, func(other *version) bool { return other != v })
			way = c.versions[i].toHub
		}
		if way.computes([]byte(pointer)) {
			return true
		}
	}
	return false
}

func (w *way) computes(pointer []byte) bool {
	if w.exchangesTo(pointer, false) {
		return true
	}
	return slices.ContainsFunc(w.collections, func(c collection) bool {
		element, rest := c.inElement(pointer)
		return element != nil && (rest == nil && len(c.way.exchanges) > 0 || rest != nil && c.way.computes(rest))
	})
}

// anywhere are the values at a pointer, whichever elements its indexes name.
func anywhere(value any, path []string) (found []any) {
	if len(path) == 0 {
		return []any{value}
	}
	list, isList := value.([]any)
	if isList && isIndex([]byte(path[0])) {
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
	object, isObject := value.(map[string]any)
	wanted, bothObjects := other.(map[string]any)
	if !isObject || !bothObjects {
		return reference.Equal(value, other)
	}
	for name := range wanted {
		if got, found := object[name]; !found || !has(got, wanted[name]) {
			return false
		}
	}
	return true
}

func isContainer(value any) bool {
	switch value.(type) {
	case map[string]any, []any:
		return true
	}
	return false
}

// entriesOf are the values that an object has preserved of a version.
func entriesOf(t testing.TB, object, version string) map[string]any {
	t.Helper()
	annotations, _ := lookUp(decode(t, object), Path{"metadata", "annotations"}).(map[string]any)
	text, found := annotations[AnnotationName("widgets.example.com", version)].(string)
	if !found {
		return nil
	}
	fields, _ := decode(t, text)["fields"].(map[string]any)
	return fields
}

// valueAt follows the pointer of an entry.
func valueAt(value any, pointer string) (found any, there bool) {
	if pointer == "" {
		return value, true
	}
	for segment := range strings.SplitSeq(pointer[1:], "/") {
		switch held := value.(type) {
		case map[string]any:
			next, found := held[unescapePointer(segment)]
			if !found {
				return nil, false
			}
			value = next
		case []any:
			i := slices.IndexFunc(held, func(element any) bool {
				text, _ := parse([]byte(generate.Plain(element)), everything)
				return strings.HasPrefix(segment, "[") && string(appendSelector(nil, text, selectorKeys(segment))) == segment
			})
			if isIndex([]byte(segment)) {
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
