// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package conversion

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"

	"github.com/conversion-operator/conversion-operator/internal/engine/conversion/shape"
	"github.com/conversion-operator/conversion-operator/internal/engine/tree"
)

// Canary returns an object at a version whose conversion to the other version exercises every rule
// between the version and the other one, or the hub between them. There is one for each pair,
// because one spoke may only preserve what another one converts. It leaves out preserved fields
// for which it has no valid value: these would not be restored.
func (c *Converter) Canary(version, to string) []byte {
	v, hub := c.version(version), version == c.ruleset.Hub
	f := &filler{conversionRun: newRun(c, nil), hub: hub}
	defer f.Free()
	f.complete = true
	const name = "conversion-canary"
	metadata := f.With(f.NewObject(), "name", f.NewText(name))
	if c.ruleset.Namespaced {
		metadata = f.With(metadata, "namespace", f.NewText(name))
	}
	metadata = f.With(metadata, "uid", f.NewText("00000000-0000-0000-0000-000000000001"))
	root := f.With(f.NewObject(), "apiVersion", f.NewText(c.ruleset.Group+"/"+version))
	root = f.With(f.With(root, "kind", f.NewText(c.ruleset.Kind)), "metadata", metadata)
	spoke := v
	if hub {
		spoke = c.version(to)
	}
	if rules := c.ruleset.spoke(spoke.name); rules != nil {
		converts := spoke.back
		if hub {
			converts = spoke.there
		}
		root = f.fillScope(&rules.Root, converts, root, v.shape)
	}
	f.NewRun()
	return c.roundTrip(root.JSON(), version, to)
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
	r := newRun(c, nil)
	defer r.Free()
	root, _, err := r.readWhole(back)
	if err != nil {
		return object
	}
	for _, v := range c.versions {
		root = r.WithAt(root, append(slices.Clip(annotationsPath), v.annotation), nil)
	}
	if root.At(annotationsPath).Len() == 0 {
		root = r.WithAt(root, annotationsPath, nil)
	}
	return root.Append(nil)
}

// filler fills objects with distinct values.
type filler struct {
	*conversionRun
	hub   bool
	count int
}

func (f *filler) next() *tree.Node {
	f.count++
	return f.NewText(fmt.Sprintf("canary-%d", f.count))
}

// valueFor returns a valid value for a field, nil if none is known.
func (f *filler) valueFor(schema *shape.Schema) *tree.Node {
	value := f.next()
	if schema == nil {
		return value
	}
	return schema.Sample(f.Arena, value)
}

// fillScope returns an object with values for a scope. converts is the function to the version of the object.
func (f *filler) fillScope(scope *Scope, converts *function, n *tree.Node, schema *shape.Schema) *tree.Node {
	put := func(path Path, value *tree.Node) {
		if value != nil {
			n = f.WithAt(n, path, value)
		}
	}
	_, leaves := ends(f.hub, scope.OnlySpoke, scope.OnlyHub)
	for _, leaf := range leaves {
		switch {
		case leaf.Known != nil:
			put(append(slices.Clip(leaf.Path), "canary"), f.next())
		case !leaf.Shell:
			put(leaf.Path, f.valueFor(shapeAt(schema, leaf.Path)))
		}
	}
	for _, c := range converts.collections {
		n = f.fillCollection(c, n, schema)
	}
	for _, move := range scope.Moves {
		// A third version may preserve the value, and only a valid one comes back.
		if _, path := ends(f.hub, move.Spoke, move.Hub); n.At(path) == nil {
			put(path, cmp.Or(f.valueFor(shapeAt(schema, path)), f.next()))
		}
	}
	for _, x := range converts.exchanges {
		values := f.values(x)
		for i := range x.to {
			put(x.to[i].Path, values[i])
		}
	}
	_, dropped := ends(f.hub, scope.DropSpoke, scope.DropHub)
	for _, path := range dropped {
		put(path, f.next())
	}
	for _, d := range scope.Defaults {
		if d.Hub == f.hub {
			put(d.Path, f.valueFor(shapeAt(schema, d.Path)))
		}
	}
	return n
}

// values returns values of the target fields of an exchange that convert.
func (f *filler) values(x *exchange) []*tree.Node {
	var values []*tree.Node
	switch {
	case x.CEL != nil:
		for _, of := range x.shapes { // many expressions parse a number
			values = append(values, cmp.Or(of, shape.Text).Sample(f.Arena, f.NewText("80")))
		}
		return values
	case f.hub:
		values = f.images(x, f.spokeValues(x))
	default:
		values = f.spokeValues(x)
	}
	return append(values, make([]*tree.Node, max(0, len(x.to)-len(values)))...)
}

// spokeValues returns values of the fields of the spoke.
func (f *filler) spokeValues(x *exchange) []*tree.Node {
	text := f.next()
	if x.single != nil {
		return []*tree.Node{x.single.sample(f, x, text)}
	}
	holes := make([]*tree.Node, len(x.Hub))
	for i, integer := range x.Format.Integer {
		if holes[i] = f.NewText(strconv.Itoa(f.count + i)); integer {
			holes[i] = f.NewScalar(strconv.AppendInt(nil, int64(f.count+i), 10))
		}
	}
	f.count += len(holes)
	return []*tree.Node{f.filled(x.Format, holes)}
}

// fillCollection fills a list or map with one element, or a value in another place.
func (f *filler) fillCollection(c *each, n *tree.Node, schema *shape.Schema) *tree.Node {
	at := c.At(f.hub)
	form := c.Form(f.hub)
	if form == FormOne {
		return f.WithAt(n, at, f.fillElement(c, f.NewObject(), shapeAt(schema, at)))
	}
	element := f.NewObject()
	keys := keysOf(shapeAt(schema, at))
	if c.Key != "" && form == FormList {
		keys = []string{c.Key}
	}
	of := elementShape(schema, at)
	for _, key := range keys {
		element = f.With(element, key, cmp.Or(f.valueFor(shapeAt(of, Path{key})), f.next()))
	}
	element = f.fillElement(c, element, of)
	if form == FormMap {
		name := "canary"
		if c.IntegerKey {
			name = "80"
		}
		return f.WithAt(n, at, f.With(f.NewObject(), name, element))
	}
	return f.WithAt(n, at, f.NewList([]*tree.Node{element}))
}

// fillElement fills an element of any type.
func (f *filler) fillElement(c *each, element *tree.Node, of *shape.Schema) *tree.Node {
	if of != nil && of.Kind != shape.ObjectKind && !c.inner.ofElements {
		return cmp.Or(f.valueFor(of), f.next())
	}
	return f.fillScope(&c.Scope, c.inner, element, of)
}

// keysOf returns the keys of a list by its schema.
func keysOf(list *shape.Schema) []string {
	if list == nil {
		return nil
	}
	return list.Keys()
}
