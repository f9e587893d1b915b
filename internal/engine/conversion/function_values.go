// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package conversion

import (
	"bytes"
	"cmp"
	"slices"
	"strings"

	"github.com/conversion-operator/conversion-operator/internal/engine/conversion/document"
	"github.com/conversion-operator/conversion-operator/internal/engine/conversion/expression"
	"github.com/conversion-operator/conversion-operator/internal/engine/tree"
)

// exchange takes the source fields of an exchange out of an object, and appends the values of its target fields: nil for
// those that have none.
func (r *conversionRun) exchange(x *exchange, object *tree.Node, to []*tree.Node) (images []*tree.Node, rest *tree.Node) {
	values, there := r.Room(len(x.from))[:len(x.from)], false
	for i, f := range x.fields(!x.toHub) {
		if values[i] = object.At(f.Path); values[i] != nil {
			there, object = true, r.WithAt(object, f.Path, nil)
		}
	}
	start := len(to)
	images = to[:start+len(x.to)]
	hasAnchor := func(f Field) bool { return object.At(f.Path[:f.Anchor]).Is(tree.Object) }
	if !there && (!x.computesMissing() || slices.ContainsFunc(x.fields(x.toHub), func(f Field) bool { return !hasAnchor(f) })) {
		return images, object
	}
	for i, image := range r.images(x, values) {
		if image != nil && x.to[i].takes(image) {
			images[start+i] = image
		}
	}
	return images, object
}

// takes reports whether an API server would accept an image in the field.
func (s *slot) takes(image *tree.Node) bool {
	if image.Is(tree.Null) {
		return !s.notNull && !s.text
	}
	return !s.text && !s.label || image.Is(tree.String) && s.legal(image.JSON())
}

// images computes the values of the target fields.
func (r *conversionRun) images(x *exchange, values []*tree.Node) []*tree.Node {
	switch {
	case x.format != nil && x.toHub:
		return r.holes(x.format, values[0])
	case x.CEL != nil:
		return r.expressions(x, values)
	case x.format != nil:
		return append(r.Room(1), r.filled(x.format, values))
	case values[0] == nil || values[0].Is(tree.Null):
		return values[:1]
	}
	return append(r.Room(1), r.image(x, values[0]))
}

// image computes a single value, nil if the target version has none.
func (r *conversionRun) image(x *exchange, value *tree.Node) *tree.Node {
	switch {
	case x.wrap != nil:
		return r.wrapped(x.Wrap, value, x.toHub == x.Wrap.Hub)
	case x.document != nil:
		return r.document(x.document, value, x.toHub == x.Cast.Hub)
	case x.Cast != nil:
		return r.cast(x.Cast, value, x.toHub == x.Cast.Hub)
	case x.index != nil && x.toHub == x.Index.Hub:
		return r.listOf(x.Index, value)
	case x.index != nil:
		return r.mapOf(x.Index, value)
	case x.Common != nil && !x.Common.allows(value):
		return nil
	}
	return r.translated(x, value)
}

// translated translates a value by the first pair of the table that matches. A value that is not in the table stays
// unchanged, or has no image if the table is closed.
func (r *conversionRun) translated(x *exchange, value *tree.Node) *tree.Node {
	if len(x.table) == 0 {
		return value
	}
	from, to := 1, 0
	if x.toHub {
		from, to = 0, 1
	}
	text := value.JSON()
	if value.Is(tree.String) && !isPlain(text) {
		text = tree.Quote(nil, value.Text())
	}
	for i := range x.table {
		if bytes.Equal(x.table[i][from], text) {
			return r.read(x.table[i][to])
		}
	}
	if x.Closed {
		return nil
	}
	return value
}

// read reads a text that this program has written.
func (r *conversionRun) read(text []byte) *tree.Node {
	value, err := r.Read(text)
	if err != nil {
		return nil // cannot happen
	}
	return value
}

// holes matches a string with a template: a hole takes everything before the first occurrence of the next text, and
// the last hole takes the rest. There are no values if the string does not match, and none for an empty hole.
func (r *conversionRun) holes(f *formatting, value *tree.Node) []*tree.Node {
	if !value.Is(tree.String) {
		return nil
	}
	values := r.Room(len(f.Integer))[:len(f.Integer)]
	rest, fits := strings.CutPrefix(value.Text(), f.Texts[0])
	for i, integer := range f.Integer {
		var hole string
		switch next := f.Texts[i+1]; {
		case !fits:
			return nil
		case i == len(f.Integer)-1:
			hole, fits = strings.CutSuffix(rest, next)
		default:
			hole, rest, fits = strings.Cut(rest, next)
		}
		switch {
		case !fits, integer && hole != "" && !isInteger([]byte(hole)):
			return nil
		case hole == "":
		case integer:
			values[i] = r.NewScalar([]byte(hole))
		default:
			values[i] = r.NewText(hole)
		}
	}
	return values
}

// filled fills a template, if there are values and each has the type of its hole.
func (r *conversionRun) filled(f *formatting, values []*tree.Node) *tree.Node {
	text := []byte(f.Texts[0])
	if !slices.ContainsFunc(values, func(value *tree.Node) bool { return value != nil }) {
		return nil
	}
	for i, value := range values {
		switch {
		case value == nil:
		case f.Integer[i] && value.Is(tree.Number) && isInteger(value.JSON()):
			text = append(text, value.JSON()...)
		case !f.Integer[i] && value.Is(tree.String):
			text = append(text, value.Text()...)
		default:
			return nil
		}
		text = append(text, f.Texts[i+1]...)
	}
	return r.NewText(string(text))
}

func (r *conversionRun) cast(c *Cast, value *tree.Node, writes bool) *tree.Node {
	switch {
	case writes && c.Separator != "":
		return r.joined(c, value)
	case writes && value.Kind() != tree.List && value.Kind() != tree.Object:
		if text, ok := c.write(value.JSON()); ok {
			return r.NewText(string(text))
		}
	case writes || !value.Is(tree.String):
	case c.Separator != "":
		return r.parts(c, value.Text())
	default:
		if text, ok := c.read([]byte(value.Text())); ok {
			return r.NewScalar(bytes.Clone(text))
		}
	}
	return nil
}

// joined returns the strings of a list with separators between them.
func (r *conversionRun) joined(c *Cast, list *tree.Node) *tree.Node {
	if !list.Is(tree.List) {
		return nil
	}
	var text []byte
	for i, element := range list.Elems() {
		if !element.Is(tree.String) {
			return nil
		}
		if i > 0 {
			text = append(text, c.Separator...)
		}
		text = append(text, element.Text()...)
	}
	return r.NewText(string(text))
}

// parts returns the list of the strings between separators. The empty text is the empty list.
func (r *conversionRun) parts(c *Cast, text string) *tree.Node {
	if text == "" {
		return r.NewList(nil)
	}
	texts := strings.Split(text, c.Separator)
	elements := r.Room(len(texts))
	for _, text := range texts {
		elements = append(elements, r.NewText(text))
	}
	return r.NewList(elements)
}

// wrapped puts a value into a list, or the values of a list or map into objects; and the reverse.
func (r *conversionRun) wrapped(w *Wrap, value *tree.Node, wraps bool) *tree.Node {
	switch {
	case w.Field == "" && wraps:
		return r.NewList(append(r.Room(1), value))
	case w.Field == "":
		if value.Is(tree.List) && value.Len() > 0 {
			return value.Elems()[0]
		}
		return nil
	case value.Kind() != tree.List && value.Kind() != tree.Object:
		return nil
	}
	all := true
	converted := r.Filter(value, func(_ string, element *tree.Node) *tree.Node {
		var result *tree.Node
		if wraps {
			result = r.With(r.NewObject(), w.Field, element)
		} else {
			result = element.Get(w.Field)
		}
		if wraps && element.Is(tree.Null) || result == nil || result.Is(tree.Null) {
			all = false
		}
		return r.From(result, element)
	})
	if !all {
		return nil
	}
	return converted
}

// mapOf turns a list of objects into a map: their keys become the names of its members.
func (r *conversionRun) mapOf(x *Index, list *tree.Node) *tree.Node {
	if !list.Is(tree.List) {
		return nil
	}
	made := r.NewObject()
	for _, element := range list.Elems() {
		key := element.Get(x.Key)
		name := key.Text()
		switch {
		case x.Integer && key.Is(tree.Number) && isInteger(key.JSON()):
			name = string(key.JSON())
		case x.Integer || !key.Is(tree.String):
			return nil
		}
		member := element.Get(x.Value)
		if x.Value == "" {
			member = r.With(element, x.Key, nil)
		} else if member == nil || member.Is(tree.Null) {
			return nil
		}
		if made.Get(name) != nil {
			return nil // two elements have the same key
		}
		made = r.With(made, name, member)
	}
	return made
}

// listOf turns a map into a list sorted by key: integers by size, texts by bytes.
func (r *conversionRun) listOf(x *Index, held *tree.Node) *tree.Node {
	if !held.Is(tree.Object) {
		return nil
	}
	type keyedElement struct {
		element *tree.Node
		number  int64
		text    string
	}
	var all []keyedElement
	for _, m := range held.Members() {
		k := keyedElement{element: m.Value, text: m.Name}
		var key *tree.Node
		if x.Integer {
			number, is := readInteger([]byte(m.Name))
			if !is {
				return nil
			}
			k.number, k.text = number, ""
			key = r.NewScalar([]byte(m.Name))
		} else {
			key = r.NewText(m.Name)
		}
		if x.Value != "" && !m.Value.Is(tree.Null) {
			k.element = r.With(r.NewObject(), x.Value, m.Value)
		}
		if !k.element.Is(tree.Object) || k.element.Get(x.Key) != nil {
			return nil
		}
		k.element = r.Insert(k.element, x.Key, key)
		all = append(all, k)
	}
	slices.SortStableFunc(all, func(a, b keyedElement) int {
		return cmp.Or(cmp.Compare(a.number, b.number), strings.Compare(a.text, b.text))
	})
	elements := r.Room(len(all))
	for _, k := range all {
		elements = append(elements, k.element)
	}
	return r.NewList(elements)
}

// document writes a value as a text, or reads it. What is read is pruned, and has its defaults, so that the text can be
// compared with what the API server makes of the value.
func (r *conversionRun) document(c *documentCast, value *tree.Node, writes bool) *tree.Node {
	if text := value.JSON(); r.spendDocument(len(text)) {
		r.Stop(r.meter.err)
	}
	if writes {
		content, ok := document.Decode(value.JSON())
		if !ok {
			return nil
		}
		text, ok := document.Write(c.Document, content)
		if !ok {
			return nil
		}
		return r.NewText(string(text))
	}
	if !value.Is(tree.String) {
		return nil
	}
	content, ok := document.Read(c.Document, []byte(value.Text()))
	if !ok || c.structure != nil && !c.structure.Prune(content) {
		return nil
	}
	if c.structure != nil && r.complete {
		c.structure.FillDefaults(content)
	}
	encoded, ok := document.Encode(content)
	if !ok {
		return nil
	}
	return r.read(encoded)
}

// evaluationUnits is the work for an evaluation besides its cost.
const evaluationUnits = 64

// expressions evaluates those of the target fields.
func (r *conversionRun) expressions(x *exchange, values []*tree.Node) []*tree.Node {
	program, field := x.programs.backward, x.programs.spoke
	if x.toHub {
		program, field = x.programs.forward, x.programs.hub
	}
	texts := make([][]byte, len(values))
	for i, value := range values {
		if value != nil {
			texts[i] = value.JSON()
		}
	}
	in := expression.Input{Values: texts, WhenMissing: x.CEL.WhenMissing && r.complete, Name: r.objectName, Namespace: r.objectNamespace}
	before := r.meter.expressions.Spent()
	results := r.evaluate(program, in, field)
	r.Spend(evaluationUnits+int(r.meter.expressions.Spent()-before), 0)
	if r.meter.err != nil {
		r.Stop(r.meter.err)
	}
	images := make([]*tree.Node, len(results))
	for i, text := range results {
		if text != nil {
			images[i] = r.read(text)
		}
	}
	return images
}

// allows reports whether a value has the shape.
func (c *Common) allows(value *tree.Node) bool {
	switch {
	case value.Is(tree.Null):
		return !c.NotNull
	case value.Is(tree.List) && c.Type != "" && c.Type != "array", value.Is(tree.Object) && c.Type != "" && c.Type != "object":
		return false
	case value.Kind() != tree.List && value.Kind() != tree.Object:
		return c.Each == nil && c.isOfType(value.JSON())
	case c.Each == nil:
		return true
	}
	return !slices.ContainsFunc(value.Elems(), func(element *tree.Node) bool { return !c.Each.allows(element) }) &&
		!slices.ContainsFunc(value.Members(), func(m tree.Member) bool { return !c.Each.allows(m.Value) })
}
