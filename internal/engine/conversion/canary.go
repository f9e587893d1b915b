// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package conversion

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/conversion-operator/conversion-operator/internal/engine/conversion/expression"
	"github.com/conversion-operator/conversion-operator/internal/engine/conversion/shape"
)

// Canary returns an object at a version whose conversion to the other version exercises every rule
// between the version and the other one, or the hub between them. There is one for each pair,
// because one spoke may only preserve what another one converts. It leaves out preserved fields
// for which it has no valid value: these would not be restored.
func (c *Converter) Canary(version, to string) []byte {
	filler := filler{hub: version == c.ruleset.Hub}
	filler.start(nil)
	spoke := version
	if filler.hub {
		spoke = to
	}
	root, metadata := filler.newObject(), filler.newObject()
	root.set(&nameAPIVersion, filler.raw(c.version(version).apiVersion))
	root.set(&nameKind, filler.quote([]byte(c.ruleset.Kind)))
	metadata.set(&nameName, filler.quote([]byte("conversion-canary")))
	if c.ruleset.Namespaced {
		metadata.set(&nameNamespace, filler.quote([]byte("conversion-canary")))
	}
	metadata.set(&nameUID, filler.quote([]byte("00000000-0000-0000-0000-000000000001")))
	root.set(&nameMetadata, metadata)
	if rules := c.ruleset.spoke(spoke); rules != nil {
		filler.fillScope(&rules.Root, root, c.version(version).namedShape())
	}
	text := root.append(nil)
	if names := c.version(version).ownNames; names != nil {
		if renamed, err := filler.renamedText(text, names); err == nil {
			text = renamed
		}
	}
	return c.roundTrip(text, version, to)
}

// roundTrip returns the object after a conversion to the other version and back, without preserved
// data. If that fails, it returns the object.
func (c *Converter) roundTrip(object []byte, version, to string) []byte {
	converted, err := c.Convert(nil, object, to)
	if err != nil {
		return object
	}
	back, err := c.Convert(nil, converted, version)
	if err != nil {
		return object
	}
	root, err := parse(back, c.projection)
	if err != nil {
		return object
	}
	metadata := root.get(&nameMetadata)
	if annotations := metadata.get(&nameAnnotations); annotations != nil {
		for _, v := range c.versions {
			annotations.remove(&v.annotation)
		}
		if annotations.first == nil {
			metadata.remove(&nameAnnotations)
		}
	}
	return root.append(nil)
}

// filler fills objects with distinct values.
type filler struct {
	step
	hub   bool
	count int
}

func (f *filler) next() *node {
	f.count++
	return f.quote(fmt.Appendf(nil, "canary-%d", f.count))
}

// valueFor returns a valid value for a field, nil if none is known.
func (f *filler) valueFor(schema *shape.Schema) *node {
	value := f.next()
	if schema == nil {
		return value
	}
	sample := schema.Sample(value.text)
	if sample == nil {
		return nil
	}
	return f.raw(sample)
}

func (f *filler) fillScope(scope *Scope, n *node, schema *shape.Schema) {
	leaves := scope.OnlySpoke
	if f.hub {
		leaves = scope.OnlyHub
	}
	for _, leaf := range leaves {
		switch {
		case leaf.Known != nil:
			f.put(n, append(slices.Clip(leaf.Path), "canary").segments(), f.next())
		case leaf.Text:
			f.put(n, leaf.Path.segments(), f.next())
		case !leaf.Shell:
			if value := f.valueFor(shapeAt(schema, leaf.Path)); value != nil {
				f.put(n, leaf.Path.segments(), value)
			}
		}
	}
	for _, move := range scope.Moves {
		path := move.Spoke
		if f.hub {
			path = move.Hub
		}
		// A third version may preserve the value, and only a valid one comes back.
		f.put(n, path.segments(), cmp.Or(f.valueFor(shapeAt(schema, path)), f.next()))
	}
	for i := range scope.Exchanges {
		f.fillExchange(&scope.Exchanges[i], n)
	}
	dropped := scope.DropSpoke
	if f.hub {
		dropped = scope.DropHub
	}
	for _, path := range dropped {
		f.put(n, path.segments(), f.next())
	}
	for _, d := range scope.Defaults {
		if value := f.valueFor(shapeAt(schema, d.Path)); d.Hub == f.hub && value != nil {
			f.put(n, d.Path.segments(), value)
		}
	}
	for i := range scope.Collections {
		f.fillCollection(&scope.Collections[i], n, schema)
	}
}

// fillExchange sets values that convert.
func (f *filler) fillExchange(e *Exchange, n *node) {
	fields, values := f.values(e)
	for i, value := range values {
		if value != nil {
			f.put(n, fields[i].Path.segments(), value)
		}
	}
}

func (f *filler) values(e *Exchange) ([]Field, []*node) {
	toHub := newExchange(e, true, nil)
	switch {
	case e.CEL != nil && f.hub:
		return e.Hub, f.samples(e.CEL.Hub)
	case e.CEL != nil:
		return e.Spoke, f.samples(e.CEL.Spoke)
	case f.hub:
		return e.Hub, toHub.forward(&f.step, f.spokeValues(&toHub))
	}
	return e.Spoke, f.spokeValues(&toHub)
}

// samples returns values that expressions can read.
func (f *filler) samples(fields []CELField) []*node {
	values := make([]*node, len(fields))
	for i := range fields {
		if read, err := expression.ReadSchema(fields[i].Schema); err == nil {
			values[i] = f.raw(read.Sample())
		}
	}
	return values
}

func (f *filler) spokeValues(e *exchange) []*node {
	value := f.next()
	switch {
	case e.Format != nil:
		parts := make([]*node, len(e.Hub))
		for i, integer := range e.Format.Integer {
			parts[i], _ = holeValue(&f.step, fmt.Append(nil, f.count+i), integer, true)
		}
		f.count += len(parts)
		return e.backward(&f.step, parts)
	case e.Wrap != nil && e.Wrap.Field != "":
		if value = f.listOf([]*node{value}); !e.Wrap.Hub {
			value = e.wrap.objects(&f.step, value)
		}
	case e.Wrap != nil && !e.Wrap.Hub:
		value = f.listOf([]*node{value})
	case e.Cast != nil:
		if value = f.castValue(e.Cast, value); !e.Cast.Hub {
			return e.convert(&f.step, []*node{value}, e.Cast.Hub, e.from)
		}
	case e.Common != nil && e.Common.Type == "integer":
		value = f.raw([]byte("80"))
	case e.Table != nil:
		value = f.quote([]byte(e.Table[0][0]))
	case e.Literals != nil:
		value = f.raw([]byte(e.Literals[0][0]))
	case e.index != nil:
		value = f.singleObject(e.index)
	}
	return []*node{value}
}

// castValue returns a value that a cast can write as a string.
func (f *filler) castValue(c *Cast, text *node) *node {
	switch {
	case c.Boolean:
		return f.raw([]byte("true"))
	case c.Separator != "":
		return f.listOf([]*node{text})
	case c.List:
		return f.newList()
	case c.Document != "":
		return f.newObject()
	}
	return f.raw([]byte("80"))
}

// singleObject returns a list or map of one object.
func (f *filler) singleObject(x *indexing) *node {
	element, container, name := f.newObject(), f.newObject(), newName("1")
	if x.Value != "" {
		element = f.next()
	}
	container.set(&name, element)
	if x.Hub {
		return container
	}
	return x.list(&f.step, container)
}

func (f *filler) fillCollection(collection *Collection, n *node, schema *shape.Schema) {
	element := f.newObject()
	if collection.nested() {
		element = f.node()
	}
	for _, key := range Path(collection.Keys).segments() {
		element.set(&key, f.next())
	}
	if collection.Object {
		f.fillScope(&collection.Scope, element, shapeAt(schema, collection.At(f.hub)))
		f.put(n, collection.At(f.hub).segments(), element)
		return
	}
	f.fillScope(&collection.Scope, element, elementShape(schema, collection.At(f.hub)))
	var container *node
	if collection.Map {
		container = f.newObject()
		f.put(container, Path{"canary"}.segments(), element)
	} else {
		container = f.listOf([]*node{element})
	}
	if len(collection.Path) == 0 {
		*n = *container
		return
	}
	f.put(n, collection.At(f.hub).segments(), container)
}

// nested reports whether the elements are lists or maps themselves.
func (c *Collection) nested() bool {
	return slices.ContainsFunc(c.Scope.Collections, func(inner Collection) bool { return len(inner.Path) == 0 })
}
