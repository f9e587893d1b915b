// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package conversion

import (
	"cmp"
	"slices"
	"strings"

	"github.com/conversion-operator/conversion-operator/internal/engine/preserve"
	"github.com/conversion-operator/conversion-operator/internal/engine/tree"
)

// each is a Collection in one direction.
type each struct {
	*Collection
	from, to []string
	// form and otherForm are those of the source and of the target version.
	form, otherForm Form
	// notNull is true if only the source version may have null there.
	notNull bool
	common  *Common
	// exclusion selects elements that the target version cannot have, and targetExclusion the results that would not
	// come back.
	exclusion, targetExclusion *Exclusion
	inner                      *function
}

// Exclusion selects the elements of a list that the other version cannot have: those without a field.
type Exclusion struct {
	// Without is the path of the field in the element. Null counts as missing.
	Without Path `json:"without"`
	// Values are the texts of the field that the other version can have; none if it can have any value.
	Values []string `json:"values,omitempty"`
}

// selects reports whether an element has no value that the other version can have.
func (x *Exclusion) selects(element *tree.Node) bool {
	if x == nil {
		return false
	}
	value := element.At(x.Without)
	if value == nil || value.Is(tree.Null) {
		return true
	}
	return len(x.Values) > 0 && (!value.Is(tree.String) || !slices.Contains(x.Values, value.Text()))
}

// each prepares one direction, without what converts the elements.
func (c *Collection) each(toHub bool, spoke, hub side, common *Common) *each {
	e := &each{Collection: c, common: common}
	e.from, e.to = ends(toHub, c.Spoke, c.Hub)
	e.form, e.otherForm = ends(toHub, c.SpokeForm, c.HubForm)
	source, target := ends(toHub, spoke, hub)
	if from, to := shapeAt(source.shape, e.from), shapeAt(target.shape, e.to); from != nil && to != nil && !to.IsNullable() {
		isReshaped := (e.form == FormOne) != (e.otherForm == FormOne)
		e.notNull = isReshaped || from.IsNullable() && to.Fallback == nil
	}
	e.exclusion, e.targetExclusion = ends(toHub, c.ExcludeSpoke, c.ExcludeHub)
	return e
}

// part is a list or map of which preserved data is judged element by element.
type part struct {
	preserve.Part
	function, back *function
	// scopes are the paths of the scopes around the elements, from the outermost one, and otherScopes those in the other
	// version.
	scopes, otherScopes [][]string
}

// in returns a part of what is in a value, as a part of what the value is in.
func (p part) in(from, to []string) part {
	inside := func(at []string, paths [][]string) [][]string {
		all := [][]string{nil}
		for _, path := range paths {
			all = append(all, slices.Concat(at, path))
		}
		return all
	}
	p.Path, p.Other = slices.Concat(from, p.Path), slices.Concat(to, p.Other)
	p.scopes, p.otherScopes = inside(from, p.scopes), inside(to, p.otherScopes)
	return p
}

// reads returns the paths of what a function of elements reads in the scopes around them.
func (p part) reads() (paths [][]string) {
	for _, field := range p.function.around {
		if scope := len(p.scopes) - field.Up; scope >= 0 {
			paths = append(paths, slices.Concat(p.scopes[scope], field.Path))
		}
	}
	return paths
}

// addEach adds a collection. back converts its elements back.
func (f *function) addEach(c *each, back *function) {
	f.collections = append(f.collections, c)
	for _, field := range c.inner.around {
		if field.Up--; field.Up > 0 {
			f.around = append(f.around, field)
		}
	}
	for _, d := range c.inner.documents {
		f.documents = append(f.documents, documentField{slices.Concat(c.Inside(f.toHub, nil), d.path), d.exchange})
	}
	switch {
	case c.IsOne():
		for _, p := range c.inner.parts {
			f.parts = append(f.parts, p.in(c.from, c.to))
		}
	case c.common == nil && c.exclusion == nil && c.targetExclusion == nil && c.form != FormOne && c.otherForm != FormOne:
		p := part{preserve.Part{Path: c.from, Other: c.to, Map: c.form == FormMap, OtherMap: c.otherForm == FormMap}, c.inner, back, [][]string{nil}, [][]string{nil}}
		if p.Map != p.OtherMap {
			p.Key = c.Key
		}
		f.parts = append(f.parts, p)
	}
}

// apply converts a collection, nil if the target version has nothing.
func (c *each) apply(r *conversionRun, held *tree.Node) *tree.Node {
	switch {
	case c.common != nil && !c.common.allows(held), held.Is(tree.Null):
		return held
	case c.form != c.otherForm:
		return c.reshape(r, held)
	case c.form == FormOne && held.Is(tree.Object):
		return c.inner.apply(r, held)
	case c.form == FormOne:
		return held
	case c.form == FormMap != held.Is(tree.Object), c.form == FormList && !held.Is(tree.List):
		if c.inner.ofElements {
			return nil
		}
		return held
	}
	converted := r.Filter(held, func(_ string, element *tree.Node) *tree.Node { return c.element(r, element) })
	if converted != held && converted.Len() == 0 && len(c.from) > 0 {
		return nil // no element is for the other version, so no list is either
	}
	return converted
}

// element converts an element, nil if the target version cannot have it.
func (c *each) element(r *conversionRun, element *tree.Node) *tree.Node {
	if c.exclusion.selects(element) {
		return nil
	}
	result := c.inner.apply(r, element)
	if c.targetExclusion.selects(result) {
		return nil // it would not come back
	}
	return r.From(result, element)
}

// reshape converts a collection that has another form in the target version.
func (c *each) reshape(r *conversionRun, held *tree.Node) *tree.Node {
	switch {
	case c.form == FormOne:
		if element := c.element(r, held); element != nil {
			r.isExact = r.isExact && !element.Is(tree.Null)
			return r.NewList(append(r.Room(1), element))
		}
	case c.form == FormMap:
		return c.listOf(r, held)
	case c.otherForm == FormMap:
		return c.mapOf(r, held)
	default:
		if held.Len() > 0 && held.Is(tree.List) && !held.Elems()[0].Is(tree.Null) {
			r.isExact = r.isExact && held.Len() == 1
			return c.element(r, held.Elems()[0])
		}
	}
	return nil
}

// mapOf turns a list of objects into a map: their keys become the names of its members. There is no map if an element has no
// key, or two have the same, also if only one of them is for the other version.
func (c *each) mapOf(r *conversionRun, list *tree.Node) *tree.Node {
	if !list.Is(tree.List) {
		return nil
	}
	made, left := r.NewObject(), map[string]bool{}
	for _, element := range list.Elems() {
		key := element.Get(c.Key)
		name := key.Text()
		switch {
		case c.IntegerKey && key.Is(tree.Number) && isInteger(key.JSON()):
			name = string(key.JSON())
		case c.IntegerKey || !key.Is(tree.String):
			return nil
		}
		if made.Get(name) != nil || left[name] {
			return nil
		}
		if member := r.From(c.inner.apply(r, r.With(element, c.Key, nil)), element); member != nil {
			made = r.With(made, name, member)
		} else {
			left[name] = true
		}
	}
	if made.Len() == 0 && list.Len() > 0 {
		return nil // no element is for the other version
	}
	return made
}

// listOf turns a map into a list sorted by key: integers by size, texts by bytes.
func (c *each) listOf(r *conversionRun, held *tree.Node) *tree.Node {
	if !held.Is(tree.Object) {
		return nil
	}
	type keyedElement struct {
		element *tree.Node
		number  int64
		text    string
	}
	all := make([]keyedElement, 0, held.Len())
	for _, m := range held.Members() {
		k := keyedElement{element: c.inner.apply(r, m.Value), text: m.Name}
		var key *tree.Node
		if c.IntegerKey {
			number, is := readInteger([]byte(m.Name))
			if !is {
				return nil
			}
			k.number, k.text = number, ""
			key = r.NewScalar([]byte(m.Name))
		} else {
			key = r.NewText(m.Name)
		}
		switch {
		case k.element == nil:
			continue
		case !k.element.Is(tree.Object) || k.element.Get(c.Key) != nil:
			return nil
		}
		k.element = r.From(r.Insert(k.element, c.Key, key), m.Value)
		all = append(all, k)
	}
	slices.SortStableFunc(all, func(a, b keyedElement) int {
		return cmp.Or(cmp.Compare(a.number, b.number), strings.Compare(a.text, b.text))
	})
	if len(all) == 0 && held.Len() > 0 {
		return nil // no element is for the other version
	}
	elements := r.Room(len(all))
	for _, k := range all {
		elements = append(elements, k.element)
	}
	return r.NewList(elements)
}
