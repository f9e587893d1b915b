// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package conversion

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/conversion-operator/conversion-operator/internal/engine/conversion/expression"
	"github.com/conversion-operator/conversion-operator/internal/engine/conversion/shape"
	"github.com/conversion-operator/conversion-operator/internal/engine/tree"
)

// exchange is an Exchange in one direction.
type exchange struct {
	*Exchange
	toHub    bool
	from, to []Field
	// around are fields around the scope that it reads, too.
	around []FieldAround
	// shared is true for each source field that other rules may be for.
	shared []bool
	// single computes the value, nil if the exchange computes values from several, or several from one.
	single single
	// structure is the schema of the value in a document, nil if unknown.
	structure *shape.Schema
	// shapes are the schemas of the target fields, nil if unknown. atRoot is true if these are fields of a whole object.
	shapes []*shape.Schema
	atRoot bool
	// nullable is true if a source field may be null. Other nulls are older than the schema.
	nullable bool
	// program computes the target fields by expressions, and computed is the first of them, as in a policy.
	program  *expression.Program
	computed string
	// back is the other direction.
	back *exchange
}

// single is a kind of rule that computes one value from one.
type single interface {
	// image returns what a value is in the target version, nil if that has no value for it.
	image(r *conversionRun, x *exchange, value *tree.Node) *tree.Node
	// sample returns a value of the spoke that has an image, made of a text if any text has one.
	sample(f *filler, x *exchange, text *tree.Node) *tree.Node
}

// exchanges prepares an exchange in both directions.
func (e *Exchange) exchanges(spoke, hub side) (toHub, fromHub *exchange, err error) {
	of := e.single()
	toHub = &exchange{Exchange: e, toHub: true, from: e.Spoke, to: e.Hub, single: of}
	fromHub = &exchange{Exchange: e, from: e.Hub, to: e.Spoke, single: of}
	if e.Cast != nil && e.Cast.Document != "" {
		structure := shapeAt(hub.shape, e.Hub[0].Path)
		if e.Cast.Hub {
			structure = shapeAt(spoke.shape, e.Spoke[0].Path)
		}
		toHub.structure, fromHub.structure = structure, structure
	}
	if e.CEL != nil {
		ofSpoke, ofHub := spoke.types(e.Spoke, e.CEL.SpokeAround), hub.types(e.Hub, e.CEL.HubAround)
		if toHub.program, fromHub.program, err = e.CEL.compile(ofSpoke, ofHub); err != nil {
			return nil, nil, err
		}
		toHub.prepare(e.CEL.Spoke, e.CEL.SpokeAround, e.CEL.Hub)
		fromHub.prepare(e.CEL.Hub, e.CEL.HubAround, e.CEL.Spoke)
	}
	toHub.describe(spoke, hub)
	fromHub.describe(hub, spoke)
	return toHub, fromHub, nil
}

// prepare prepares one direction of expressions, which compute fields of the target version from those of the source.
func (e *exchange) prepare(source []CELField, around []FieldAround, target []CELField) {
	e.to, e.around = at(e.to, computed(target)), around
	for i := range source {
		e.shared = append(e.shared, source[i].Expression == "")
	}
}

// describe notes what the versions say of the fields.
func (e *exchange) describe(source, target side) {
	e.atRoot = len(target.at) == 0
	for _, f := range e.to {
		e.shapes = append(e.shapes, shapeAt(target.shape, f.Path))
	}
	e.nullable = slices.ContainsFunc(e.from, func(f Field) bool {
		at := shapeAt(source.shape, f.Path)
		return len(f.Path) == 0 || at != nil && at.IsNullable()
	})
	if len(e.to) > 0 {
		e.computed = slices.Concat(target.at, e.to[0].Path).String()
	}
}

// computesMissing reports whether a rule computes values also from nothing.
func (e *exchange) computesMissing() bool { return e.CEL != nil && e.CEL.WhenMissing }

// isShared reports whether other rules may be for a source field.
func (e *exchange) isShared(field int) bool { return field < len(e.shared) && e.shared[field] }

// reads reports whether a source field has any effect.
func (e *exchange) reads(field int) bool { return e.program == nil || e.program.Reads(field) }

// exchange takes the source fields of an exchange out of an object, and appends the values of its target fields: nil for
// those that have none. It reads other fields in whole, from which no rule has taken anything.
func (r *conversionRun) exchange(x *exchange, object, whole *tree.Node, to []*tree.Node) (images []*tree.Node, rest *tree.Node) {
	fields := len(x.from) + len(x.around)
	values, there := r.Room(fields)[:fields], false
	for i, f := range x.from {
		if x.isShared(i) {
			values[i] = whole.At(f.Path)
		} else {
			values[i], object = r.TakeAt(object, f.Path)
		}
		there = there || values[i] != nil && x.reads(i)
	}
	for i, f := range x.around {
		values[len(x.from)+i] = r.fieldAround(f)
		there = there || values[len(x.from)+i] != nil && x.reads(len(x.from)+i)
	}
	start := len(to)
	images = to[:start+len(x.to)]
	hasAnchor := func(f Field) bool { return object.At(f.Anchor).Is(tree.Object) }
	if !there && (!x.computesMissing() || slices.ContainsFunc(x.to, func(f Field) bool { return !hasAnchor(f) })) {
		return images, object
	}
	for i, image := range r.images(x, values) {
		if image != nil && x.takes(i, image) {
			images[start+i] = image
		}
	}
	r.isExact = r.isExact && r.restores(x, images[start:], values)
	return images, object
}

// fieldAround returns the value of a field around the scope that is converted, nil if there is none.
func (r *conversionRun) fieldAround(f FieldAround) *tree.Node {
	if f.Up >= len(r.scopes) {
		return nil
	}
	return r.scopes[len(r.scopes)-1-f.Up].At(f.Path)
}

// takes reports whether an API server would accept an image in a target field: labels and annotations are texts, and a null
// that the source version allows is only kept where the target version does, too.
func (e *exchange) takes(field int, image *tree.Node) bool {
	path, at := e.to[field].Path, e.shapes[field]
	switch {
	case e.atRoot && len(path) > 0 && path[0] == "metadata":
		return image.Is(tree.String) && (!path.IsLabel() || len(validation.IsValidLabelValue(image.Text())) == 0)
	case image.Is(tree.Null):
		return !e.nullable || at == nil || at.IsNullable() || at.Fallback != nil
	}
	return true
}

// images computes the values of the target fields.
func (r *conversionRun) images(x *exchange, values []*tree.Node) []*tree.Node {
	switch {
	case x.Format != nil && x.toHub:
		return r.holes(x.Format, values[0])
	case x.CEL != nil:
		return r.evaluated(x, values)
	case x.Format != nil:
		return append(r.Room(1), r.filled(x.Format, values))
	case values[0] == nil || values[0].Is(tree.Null):
		return values[:1]
	}
	return append(r.Room(1), x.single.image(r, x, values[0]))
}

// read reads a text that this program has written. It keeps the text.
func (r *conversionRun) read(text []byte) *tree.Node {
	if text[0] != '{' && text[0] != '[' {
		return r.NewScalar(text)
	}
	value, err := r.Read(text)
	if err != nil {
		return nil // cannot happen
	}
	return value
}

// holes matches a string with a template: a hole takes everything before the first occurrence of the next text, and
// the last hole takes the rest. There are no values if the string does not match, and none for an empty hole.
func (r *conversionRun) holes(f *Format, value *tree.Node) []*tree.Node {
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
			values[i] = r.NewScalar(append(r.Bytes(len(hole)), hole...))
		default:
			values[i] = r.NewText(hole)
		}
	}
	return values
}

// filled fills a template, if there are values and each has the type of its hole.
func (r *conversionRun) filled(f *Format, values []*tree.Node) *tree.Node {
	const usual = 64
	text := append(r.Bytes(usual), f.Texts[0]...)
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
	return r.NewTextOf(text)
}

// evaluated evaluates the expressions of the target fields.
func (r *conversionRun) evaluated(x *exchange, values []*tree.Node) []*tree.Node {
	length := 0
	for _, value := range values {
		if value != nil {
			length += len(value.JSON())
		}
	}
	r.Spend(0, celBytes*length)
	in := expression.Input{Values: values, Bytes: length, WhenMissing: x.CEL.WhenMissing && r.complete, Name: r.objectName, Namespace: r.objectNamespace}
	spent := r.expressions.Spent()
	images := x.program.Evaluate(r.Arena, in, &r.expressions)
	if r.expressions.Exhausted() {
		r.Stop(&BudgetError{Field: x.computed, Cost: r.expressions.Spent(), Limit: expression.BudgetLimit})
	}
	r.Spend(evaluationUnits+int(r.expressions.Spent()-spent)/costUnits, -celBytes*length)
	return images
}
