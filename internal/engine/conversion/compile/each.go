// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package compile

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
	"github.com/conversion-operator/conversion-operator/internal/engine/conversion"
)

// What an each rule pairs is a frame (frame.go). If one version has a list and the other a map, the key is no field of the
// elements there. If one version has one value, the frame is the value, or the first element of the list.

// formsOf returns the forms of a list, map or value in both versions, and why an each rule cannot pair them.
func formsOf(rule *v1alpha1.EachRule, spoke, hub *schema.Structural) (spokeForm, hubForm conversion.Form, problem string) {
	spokeForm, hubForm = formOf(spoke), formOf(hub)
	if rule.Key == "" && spokeForm == conversion.FormMap && hubForm == conversion.FormList && difference(spoke, hub.Items, nil) == "" {
		spokeForm = conversion.FormOne // the list has such maps
	}
	if rule.Key == "" && hubForm == conversion.FormMap && spokeForm == conversion.FormList && difference(hub, spoke.Items, nil) == "" {
		hubForm = conversion.FormOne
	}
	if spokeForm == conversion.FormOne && hubForm != conversion.FormList || spokeForm == conversion.FormMap && hubForm == conversion.FormOne {
		return "", "", fmt.Sprintf("is of type %s, and %s of type %s: an each rule is for two lists, two maps (additionalProperties), a list and a map, or a list and one value", typeName(hub), rule.From, typeName(spoke))
	}
	return spokeForm, hubForm, ""
}

func formOf(s *schema.Structural) conversion.Form {
	switch {
	case s.Items != nil:
		return conversion.FormList
	case valuesOf(s) != nil:
		return conversion.FormMap
	}
	return conversion.FormOne
}

// findEach finds the frame of what an each rule pairs. It adds an error if there is none.
func (c *compiler) findEach(of candidate, rules []*policyRule) {
	rule, fldPath := of.rule.Each, of.rule.fldPath.Child("each")
	pair := conversion.Collection{Key: rule.Key}
	var problem string
	if pair.SpokeForm, pair.HubForm, problem = formsOf(rule, of.spoke, of.hub); problem != "" {
		c.invalid(fldPath.Child("to"), rule.To, "%s", problem)
		return
	}
	switch problem = keyProblem(&pair, of); {
	case problem != "" && rule.Key == "":
		c.refuse(fldPath, field.Required(fldPath.Child("key").path, "name the field of the list's objects that is their key in the map"))
		return
	case problem != "":
		c.invalid(fldPath.Child("key"), rule.Key, "%s", problem)
		return
	}
	isElement := func(list conversion.Path) func(conversion.Path) bool {
		return func(path conversion.Path) bool {
			return len(path) == len(list)+1 && path.HasPrefix(list) && path[len(list)] == conversion.Each
		}
	}
	whole := slices.ContainsFunc(rules, func(rule *policyRule) bool {
		return slices.ContainsFunc(rule.spokePaths, isElement(of.from)) || slices.ContainsFunc(rule.hubPaths, isElement(of.to))
	})
	if problem = cmp.Or(elementsProblem(pair, of, whole), c.pairProblem(of)); problem != "" {
		c.invalid(fldPath.Child("to"), rule.To, "cannot be paired with %s: %s", rule.From, problem)
		return
	}
	c.addFrame(of, pair)
}

// keyProblem returns why the elements of a list cannot be identified by the key of the rule, and notes its type.
func keyProblem(p *conversion.Collection, pair candidate) string {
	rule := pair.rule.Each
	isMap := p.SpokeForm == conversion.FormMap || p.HubForm == conversion.FormMap
	if rule.Key == "" && (p.SpokeForm == p.HubForm || !isMap) {
		return ""
	}
	for _, side := range []struct {
		form conversion.Form
		*schema.Structural
	}{{p.SpokeForm, pair.spoke}, {p.HubForm, pair.hub}} {
		of := elementsOf(side.Structural)
		if side.form == conversion.FormOne || of == nil {
			return "is of no use for one value: remove it"
		}
		key, found := of.Properties[rule.Key]
		switch {
		case side.form == conversion.FormMap && p.SpokeForm == p.HubForm:
			return "is of no use for two maps, whose elements have keys: remove it"
		case side.form == conversion.FormMap && found:
			return "is a field of the map's objects too: they are known by their keys in the map, remove it from that version's schema"
		case side.form == conversion.FormList && (!found || key.Type != "string" && key.Type != "integer" || key.XIntOrString):
			return fmt.Sprintf("is no field of the list's objects that is a string or an integer: they have %s", elementText(of))
		case side.form == conversion.FormList:
			p.IntegerKey = key.Type == "integer"
		}
	}
	return ""
}

// elementsProblem returns why elements cannot be paired, empty if they can. whole is true if a rule is for them as a whole.
func elementsProblem(p conversion.Collection, pair candidate, whole bool) string {
	spoke, hub := elementOf(p, pair.spoke, false), elementOf(p, pair.hub, true)
	isList := p.SpokeForm != conversion.FormOne && p.HubForm != conversion.FormOne
	switch {
	case whole && isList, isStruct(spoke) && isStruct(hub), isList && sameElements(spoke, hub), difference(spoke, hub, nil) == "":
		return ""
	case !isList:
		return "the list has " + elementText(listElement(p, spoke, hub)) + ", and the value is of another type"
	}
	return fmt.Sprintf("one version has %s and the other %s: write a rule for them, such as {move: {from: %q, to: %q}}",
		elementText(spoke), elementText(hub), pair.from.String()+"[*]", pair.to.String()+"[*].name")
}

// listElement returns the schema of the side that has a list.
func listElement(p conversion.Collection, spoke, hub *schema.Structural) *schema.Structural {
	if p.SpokeForm == conversion.FormList {
		return spoke
	}
	return hub
}

// elementText names the elements of a list or map.
func elementText(s *schema.Structural) string {
	if isStruct(s) && len(s.Properties) > 0 {
		return "objects with the fields " + few(slices.Sorted(maps.Keys(s.Properties)))
	}
	return "values of type " + typeName(s)
}

// elementOf returns the schema of the elements of one side, without the key that is their name in a map.
func elementOf(p conversion.Collection, s *schema.Structural, ofHub bool) *schema.Structural {
	switch form, other := p.Form(ofHub), p.Form(!ofHub); {
	case form == conversion.FormOne:
		return s
	case form == conversion.FormList && other == conversion.FormMap:
		return without(s.Items, p.Key)
	}
	return elementsOf(s)
}

// without returns a copy of an object's schema that lacks a field.
func without(s *schema.Structural, name string) *schema.Structural {
	rest := *s
	rest.Properties = maps.Clone(s.Properties)
	delete(rest.Properties, name)
	if s.ValueValidation != nil {
		validation := *s.ValueValidation
		validation.Required = slices.DeleteFunc(slices.Clone(validation.Required), func(required string) bool { return required == name })
		rest.ValueValidation = &validation
	}
	return &rest
}

func (c *compiler) addEach(of *policyRule, fldPath place) {
	rule := of.Each
	p, ok := c.claimBoth(rule.From, rule.To, fldPath)
	if !ok {
		return
	}
	f := c.frameOf(c.rule)
	switch {
	case f == nil && (isText(p.spoke) || isText(p.hub)):
		c.invalid(fldPath.Child("to"), rule.To, "a label or an annotation has no elements: use a cast or a cel rule")
		return
	case f == nil:
		return // another rule for the same list, map or value claims it, too
	}
	f.addCollection()
	for i := range rule.Where {
		f.addCondition(&rule.Where[i], p, fldPath.Child("where").Index(i))
	}
}

// addCollection adds the collection of what the rule of the frame pairs.
func (f *frame) addCollection() *conversion.Collection {
	return collectionIn(f.scopeAt(f.around), f.collection)
}

// selection is what a condition says of the elements of a frame.
type selection struct {
	ofHub bool
	// field is the field that the elements of both versions have, with one of the values if there are any.
	field  conversion.Path
	values []string
}

// addCondition adds the selection of elements to the collection.
func (f *frame) addCondition(where *v1alpha1.EachCondition, p pairing, fldPath place) {
	text, ofHub, child := oneOf(where.From, where.To, fldPath)
	own, _ := f.sides(ofHub)
	path, found, ok := f.fieldIn(own, text, child)
	switch isKey := ok && len(path) == 1 && slices.Contains(own.value.XListMapKeys, path[0]); {
	case !ok:
		return
	case f.collection.SpokeForm == conversion.FormMap || f.collection.HubForm == conversion.FormMap || own.value.Items == nil:
		f.invalid(child, text, "is for the elements of a list, which is not a map in any version")
		return
	case (isListMap(p.spokeSchema) || isListMap(p.hubSchema)) && !isKey:
		f.invalid(child, text, "the list has keys: server-side apply sends parts of its elements, which may lack any field but these: name a key; without where, elements are converted one by one, and another condition needs a converter of your own, spec.converter.image")
		return
	case len(where.Values) > 0 && found.Type != "string":
		f.invalid(fldPath.Child("values"), where.Values, "%s is of type %s: values are for a string", text, typeName(found))
		return
	}
	collection := f.addCollection()
	taken := &collection.ExcludeSpoke
	if ofHub {
		taken = &collection.ExcludeHub
	}
	if *taken != nil {
		f.invalid(child, text, "there is another condition for these elements: name all values in one")
		return
	}
	*taken = &conversion.Exclusion{Without: path, Values: where.Values}
	f.selections = append(f.selections, selection{ofHub, path, where.Values})
}

// fieldIn resolves the path of a field in an element.
func (c *compiler) fieldIn(own *side, text v1alpha1.Path, fldPath place) (conversion.Path, *schema.Structural, bool) {
	path, err := conversion.ParsePath(string(text))
	if err != nil {
		c.invalid(fldPath, text, "%s", err)
		return nil, nil, false
	}
	if slices.Contains(path, conversion.Each) {
		c.invalid(fldPath, text, "goes through a list or map: name a field of the element")
		return nil, nil, false
	}
	found, err := resolveIn(own.schema, path)
	if err != nil {
		c.invalid(fldPath, text, "version %s: %s", own.version, err)
		return nil, nil, false
	}
	return path, found, true
}

// hasField reports whether all elements that both versions have, have a field.
func (f *frame) hasField(path conversion.Path, ofHub bool) bool {
	return slices.ContainsFunc(f.selections, func(s selection) bool { return s.ofHub == ofHub && len(path) > 0 && s.field.HasPrefix(path) })
}

// selected returns the schema of a field in the elements that both versions have.
func (f *frame) selected(s *schema.Structural, path conversion.Path, ofHub bool) *schema.Structural {
	i := slices.IndexFunc(f.selections, func(s selection) bool { return s.ofHub == ofHub && len(s.values) > 0 && slices.Equal(s.field, path) })
	if i < 0 {
		return s
	}
	limited, validation := *s, validationOf(s)
	validation.Enum = nil
	for _, value := range f.selections[i].values {
		validation.Enum = append(validation.Enum, schema.JSON{Object: value})
	}
	limited.ValueValidation = &validation
	return &limited
}

// staysIn reports whether the frame is in an element that the other version may lack.
func (f *frame) staysIn(ofHub bool) bool {
	for ; f != nil && f.rule != nil; f = f.around.in {
		if len(f.selections) > 0 || f.rule.Each != nil && f.mayStay(ofHub) {
			return true
		}
	}
	return false
}

// mayStay reports whether a part of a list or map of one side may have no place in the other version.
func (f *frame) mayStay(ofHub bool) bool {
	ownSide, otherSide := f.sides(ofHub)
	own, other := ownSide.value, otherSide.value
	switch {
	case f.elementsMayStay(ofHub):
		return true
	case f.collection.SpokeForm == f.collection.HubForm:
		return false
	case own.Items != nil && other.Items == nil && valuesOf(other) == nil:
		return !isOneItem(own)
	case own.Items != nil:
		return true // it may be in another order
	case other.Items != nil && valuesOf(own) != nil:
		return f.collection.IntegerKey || valuesOf(own).Nullable || holdsAnything(valuesOf(own))
	}
	return false
}

// elementsMayStay reports whether the rule that makes elements of the other version cannot express some.
func (f *frame) elementsMayStay(ofHub bool) bool {
	_, other := f.sides(ofHub)
	i := slices.IndexFunc(other.claims, func(to claim) bool { return len(to.path) == 0 })
	return i >= 0 && other.claims[i].rule.stays(f.compiler, other.claims[i].rule, ofHub)
}

// isOneItem reports whether a list always has exactly one element, which is not null.
func isOneItem(list *schema.Structural) bool {
	v := list.ValueValidation
	return v != nil && v.MinItems != nil && *v.MinItems == 1 && v.MaxItems != nil && *v.MaxItems == 1 && !list.Items.Nullable
}

// eachNotRoundTrippable: a part of a list may have no place in the other version.
func (c *compiler) eachNotRoundTrippable(rule *policyRule, ofHub bool) bool {
	f := c.frameOf(rule)
	return f == nil || f.mayStay(ofHub)
}
