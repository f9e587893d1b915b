// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package conversion

import (
	"cmp"
	"slices"

	"github.com/conversion-operator/conversion-operator/internal/engine/conversion/shape"
	"github.com/conversion-operator/conversion-operator/internal/engine/preserve"
	"github.com/conversion-operator/conversion-operator/internal/engine/tree"
)

// function is a scope in one direction: what an object, or an element, of the source version is in the target version,
// without regard to preserved data.
type function struct {
	toHub bool
	// moves are those of values and of collections, the deepest source first. puts are their indexes, the deepest target
	// last.
	moves     []move
	puts      []int
	exchanges []*exchange
	// targets have the fields that moves and exchanges set.
	targets []target
	// derived are those that compute fields from others that they only read, and derivedPaths are the fields of the
	// source version that such rules compute.
	derived      []*exchange
	derivedPaths [][]string
	// fields is the number of the target fields of all of them.
	fields int
	// ofElements is true if a rule is for an element as a whole, which may not be an object.
	ofElements  bool
	fills       []fill
	drops       [][]string
	holders     []*sidedObject
	shared      []shared
	collections []*each // as in the ruleset
	// around are the fields around the scope that are read in it, or in a scope in it.
	around []FieldAround

	unread, dropped, together, known *preserve.Paths
	// documents are the target fields with a document, in the paths of the target version.
	documents []documentField
	parts     []part
	// back is the other direction.
	back *function
	// reversible is true if values may be noted as what they were made of.
	reversible bool
}

// move moves a value, of which the inside may be converted by itself. The value may stay where it is.
type move struct {
	from, to Path
	each     *each
	stays    bool
}

// fill is a Default. A field of the source version is removed, and one of the target version filled in.
type fill struct {
	*Default
	atSource bool
}

// shared is an object that does not exist in the target version if rules take everything out of it.
type shared struct {
	from, to []string
	outgoing []Path
}

// documentField is a field with a document. Each stands for any element or member.
type documentField struct {
	path Path
	*exchange
}

// side is a scope in a version.
type side struct {
	// at leads to the scope.
	at Path
	// shape is the schema of the scope, nil if unknown.
	shape *shape.Schema
	// around is the scope around it, nil for a whole object.
	around *side
}

// in returns the side of the elements of a collection.
func (s side) in(c *Collection, ofHub bool) side {
	if c.Form(ofHub) == FormOne {
		return side{c.Inside(ofHub, s.at), shapeAt(s.shape, c.At(ofHub)), &s}
	}
	return side{c.Inside(ofHub, s.at), elementShape(s.shape, c.At(ofHub)), &s}
}

// shapeAt returns the schema of the field at path, nil if unknown.
func shapeAt(schema *shape.Schema, path Path) *shape.Schema {
	for _, name := range path {
		switch {
		case schema == nil:
			return nil
		case IsSelector(name):
			schema = schema.Items()
		default:
			schema = schema.Field(name)
		}
	}
	return schema
}

// elementShape returns the schema of the elements of the list or map at path, nil if unknown.
func elementShape(schema *shape.Schema, path Path) *shape.Schema {
	container := shapeAt(schema, path)
	if container == nil {
		return nil
	}
	if items := container.Items(); items != nil {
		return items
	}
	return container.Field("")
}

// commonOf returns the shape that the list or map at path must have, nil if it may have any.
func (s *Scope) commonOf(path Path) *Common {
	for i := range s.OnlySpoke {
		if leaf := &s.OnlySpoke[i]; leaf.Common != nil && slices.Equal(leaf.Path, path) {
			return leaf.Common
		}
	}
	return nil
}

// ends returns the source and the target of a direction.
func ends[T any](toHub bool, spoke, hub T) (from, to T) {
	if toHub {
		return spoke, hub
	}
	return hub, spoke
}

// functions prepares a scope in both directions.
func (s *Scope) functions(spoke, hub side) (toHub, fromHub *function, err error) {
	toHub, fromHub = s.function(true), s.function(false)
	for i := range s.Exchanges {
		to, from, err := s.Exchanges[i].exchanges(spoke, hub)
		if err != nil {
			return nil, nil, err
		}
		to.back, from.back = from, to
		toHub.addExchange(to)
		fromHub.addExchange(from)
		if x := &s.Exchanges[i]; x.Cast != nil && x.Cast.Document != "" && x.Cast.Hub {
			toHub.documents = append(toHub.documents, documentField{x.Hub[0].Path, to})
		} else if x.Cast != nil && x.Cast.Document != "" {
			fromHub.documents = append(fromHub.documents, documentField{x.Spoke[0].Path, from})
		}
	}
	for i := range s.Derived {
		to, from, err := s.Derived[i].exchanges(spoke, hub)
		if err != nil {
			return nil, nil, err
		}
		if s.Derived[i].CEL.computesHub() {
			toHub.addDerived(to, fromHub)
		} else {
			fromHub.addDerived(from, toHub)
		}
	}
	for i := range s.Collections {
		c := &s.Collections[i]
		to, from := c.each(true, spoke, hub, s.commonOf(c.Spoke)), c.each(false, spoke, hub, s.commonOf(c.Spoke))
		if to.inner, from.inner, err = c.Scope.functions(spoke.in(c, false), hub.in(c, true)); err != nil {
			return nil, nil, err
		}
		toHub.addEach(to, from.inner)
		fromHub.addEach(from, to.inner)
	}
	for _, f := range []*function{toHub, fromHub} {
		f.orderMoves()
		f.addTargets()
	}
	s.describe(toHub)
	s.describe(fromHub)
	prepareReverse(toHub, fromHub)
	return toHub, fromHub, nil
}

// orderMoves adds the collections to the moves, and sorts these. What is in another value that moves is taken before it, and
// put after it.
func (f *function) orderMoves() {
	for _, c := range f.collections {
		f.moves = append(f.moves, move{from: c.from, to: c.to, each: c})
	}
	slices.SortStableFunc(f.moves, func(a, b move) int { return cmp.Compare(len(b.from), len(a.from)) })
	for i := range f.moves {
		m := &f.moves[i]
		m.stays = slices.Equal(m.from, m.to) && !slices.ContainsFunc(f.moves, func(around move) bool {
			return !slices.Equal(around.from, around.to) && (m.from.HasPrefix(around.from) || m.to.HasPrefix(around.to))
		})
		if !m.stays {
			f.puts = append(f.puts, i)
		}
	}
	slices.SortStableFunc(f.puts, func(i, j int) int { return cmp.Compare(len(f.moves[i].to), len(f.moves[j].to)) })
}

func (f *function) addExchange(x *exchange) {
	f.exchanges = append(f.exchanges, x)
	f.around = append(f.around, x.around...)
	f.fields += len(x.to)
	f.ofElements = f.ofElements || slices.ContainsFunc(slices.Concat(x.from, x.to), func(field Field) bool { return len(field.Path) == 0 })
}

// addDerived adds an exchange that only this function has, and the other one has no use for.
func (f *function) addDerived(x *exchange, other *function) {
	f.derived = append(f.derived, x)
	f.around = append(f.around, x.around...)
	f.fields += len(x.to)
	for _, field := range x.to {
		other.derivedPaths = append(other.derivedPaths, field.Path)
	}
}

// function prepares one direction, without exchanges and collections.
func (s *Scope) function(toHub bool) *function {
	f := &function{toHub: toHub, unread: &preserve.Paths{}, dropped: &preserve.Paths{}, together: &preserve.Paths{}, known: &preserve.Paths{}}
	for _, m := range s.Moves {
		from, to := ends(toHub, m.Spoke, m.Hub)
		f.moves = append(f.moves, move{from: from, to: to})
		f.ofElements = f.ofElements || len(from) == 0 || len(to) == 0
	}
	for i := range s.Defaults {
		f.fills = append(f.fills, fill{&s.Defaults[i], s.Defaults[i].Hub != toHub})
	}
	drops, _ := ends(toHub, s.DropSpoke, s.DropHub)
	for _, path := range drops {
		f.drops = append(f.drops, path)
	}
	only, _ := ends(toHub, s.OnlySpoke, s.OnlyHub)
	f.addOneSided(only)
	dropped := s.dropped(toHub)
	for _, object := range s.Shared {
		from, to := ends(toHub, object.Spoke, object.Hub)
		outgoing, _ := ends(toHub, object.OfSpoke, object.OfHub)
		f.shared = append(f.shared, shared{from, to, slices.Concat(outgoing, dropped)})
	}
	return f
}

// dropped returns the paths of the source version that rules drop in the scope, and in the objects in it that move.
func (s *Scope) dropped(toHub bool) (paths []Path) {
	own, _ := ends(toHub, s.DropSpoke, s.DropHub)
	paths = slices.Clone(own)
	for i := range s.Collections {
		if c := &s.Collections[i]; c.IsOne() {
			for _, path := range c.Scope.dropped(toHub) {
				paths = append(paths, slices.Concat(c.At(!toHub), path))
			}
		}
	}
	return paths
}

// valueOr returns the value of the object's metadata under the name from, nil if it has none; without a name, the value of a
// text.
func (r *conversionRun) valueOr(from string, text []byte) *tree.Node {
	switch from {
	case "name":
		return r.objectName
	case "namespace":
		return r.objectNamespace
	}
	return r.read(text)
}

// apply converts a value, nil if the target version has nothing.
func (f *function) apply(r *conversionRun, value *tree.Node) *tree.Node {
	if value.Is(tree.Object) && f.reversible {
		if again := value.Back(f.back); again != nil {
			r.isExact = false // only a value that was not looked into can be noted
			return again
		}
	}
	wasExact := r.isExact
	r.isExact = f.reversible && !r.MayChange(value)
	r.scopes = append(r.scopes, value)
	value = f.convert(r, value)
	r.scopes = r.scopes[:len(r.scopes)-1]
	r.isExact = r.isExact && wasExact
	return value
}

func (f *function) convert(r *conversionRun, value *tree.Node) *tree.Node {
	whole, images := value, r.Room(f.fields)
	for _, x := range f.derived {
		images, _ = r.exchange(x, value, whole, images)
	}
	if !value.Is(tree.Object) && !f.ofElements {
		for _, c := range f.collections {
			value, r.isExact = c.apply(r, value), false
		}
		return value
	}
	for _, path := range f.drops {
		value = r.WithAt(value, path, nil)
	}
	emptied := f.emptied(value)
	for _, path := range f.derivedPaths {
		value = r.WithAt(value, path, nil)
	}
	for _, x := range f.exchanges {
		images, value = r.exchange(x, value, whole, images)
	}
	fills := make([]bool, len(f.fills))
	for i, d := range f.fills {
		if d.atSource {
			value = r.WithAt(value, d.Path, nil)
		} else {
			fills[i] = r.complete && value.At(d.Anchor).Is(tree.Object)
		}
	}
	taken, value := f.taken(r, value)
	removes := false
	for _, h := range f.holders {
		if h.removesOf(value) {
			value, removes = h.remove(r, value), true
		}
	}
	value = f.cleared(r, value)
	for _, i := range f.puts {
		if taken[i] != nil && !f.isEmptied(r, taken[i], f.moves[i].to, emptied) {
			value = r.WithAt(value, f.moves[i].to, taken[i])
		}
	}
	value, images = r.put(f.derived, images, value)
	value, _ = r.put(f.exchanges, images, value)
	for i, d := range f.fills {
		if fills[i] && value.At(d.Path) == nil {
			if filled := r.valueOr(d.From, d.Value); filled != nil {
				value = r.WithAt(value, d.Path, filled)
			}
		}
	}
	if value = f.removeEmptied(r, value, emptied); r.isExact {
		r.isExact = f.noteBack(r, value, whole, removes)
	}
	return value
}

// taken takes the values that move out of an object, and returns what they become. It converts those that stay where they are.
func (f *function) taken(r *conversionRun, value *tree.Node) (taken []*tree.Node, rest *tree.Node) {
	taken = r.Room(len(f.moves))[:len(f.moves)]
	for i := range f.moves {
		m := &f.moves[i]
		var held *tree.Node
		if m.stays {
			held = value.At(m.from)
		} else {
			held, value = r.TakeAt(value, m.from)
		}
		if held == nil {
			continue
		}
		become := held
		switch {
		case m.each != nil && m.each.notNull && held.Is(tree.Null):
			become = nil
		case m.each != nil:
			become = m.each.apply(r, held)
		}
		r.isExact = r.isExact && become != nil && (m.each == nil || !held.Is(tree.Null))
		switch {
		case !m.stays:
			taken[i] = become
		case become != held:
			value = r.WithAt(value, m.from, become)
		}
	}
	return taken, value
}

// target is an object or a list with fields that rules set.
type target struct {
	path   []string
	fields [][]string
	// firm is the length of the path to the innermost object around them that both versions have.
	firm int
}

// addTargets groups the fields that rules set by what has them.
func (f *function) addTargets() {
	var paths [][]string
	for _, i := range f.puts {
		paths = append(paths, f.moves[i].to)
	}
	for _, x := range f.exchanges {
		for _, field := range x.to {
			paths = append(paths, field.Path)
		}
	}
	for _, path := range paths {
		around := path[:max(len(path)-1, 0)]
		i := slices.IndexFunc(f.targets, func(t target) bool { return slices.Equal(t.path, around) })
		if i < 0 {
			i, f.targets = len(f.targets), append(f.targets, target{path: around})
		}
		f.targets[i].fields = append(f.targets[i].fields, path)
	}
}

// cleared returns a value without what has the path of a field that rules set: it is another field, which the source version
// no longer has.
func (f *function) cleared(r *conversionRun, value *tree.Node) *tree.Node {
	for i := range f.targets {
		t := &f.targets[i]
		around := value.At(t.path)
		for _, field := range t.fields {
			if len(field) == 0 || around.At(field[len(field)-1:]) != nil {
				value, r.isExact = r.WithAt(value, field, nil), false
			}
		}
	}
	return value
}

// put sets the target fields of exchanges, of which images are the values, and returns the images that are left.
func (r *conversionRun) put(exchanges []*exchange, images []*tree.Node, value *tree.Node) (with *tree.Node, rest []*tree.Node) {
	for _, x := range exchanges {
		for j, f := range x.to {
			if images[j] != nil {
				value = r.WithAt(value, f.Path, images[j])
			}
		}
		images = images[len(x.to):]
	}
	return value, images
}
