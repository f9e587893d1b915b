// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package conversion

import (
	"fmt"
	"slices"
)

// Canary returns an object at a version that has a value wherever the plan does
// something, so that its conversion exercises all of the plan. Schemas are
// nothing to it.
func (c *Converter) Canary(version string) []byte {
	root := newObject()
	root.put(Path{"apiVersion"}, rawNode(appendString(nil, c.plan.Group+"/"+version)))
	root.put(Path{"kind"}, rawNode(appendString(nil, c.plan.Kind)))
	metadata := newObject()
	metadata.set("name", rawNode([]byte(`"conversion-canary"`)))
	if c.plan.Namespaced {
		metadata.set("namespace", rawNode([]byte(`"conversion-canary"`)))
	}
	metadata.set("uid", rawNode([]byte(`"00000000-0000-0000-0000-000000000001"`)))
	root.set("metadata", metadata)
	for i := range c.plan.Spokes {
		if spoke := &c.plan.Spokes[i]; version == c.plan.Hub || version == spoke.Version {
			filler := filler{hub: version == c.plan.Hub}
			filler.scope(&spoke.Root, root)
		}
	}
	return root.append(nil)
}

// filler writes values that differ from each other.
type filler struct {
	hub   bool
	count int
}

func (f *filler) next() *node {
	f.count++
	return rawNode(appendString(nil, fmt.Sprintf("canary-%d", f.count)))
}

func (f *filler) scope(scope *Scope, n *node) {
	leaves := scope.OnlySpoke
	if f.hub {
		leaves = scope.OnlyHub
	}
	for _, leaf := range leaves {
		switch {
		case leaf.Known != nil:
			n.put(append(slices.Clip(leaf.Path), "canary"), f.next())
		case !leaf.Shell:
			n.put(leaf.Path, f.next())
		}
	}
	for _, move := range scope.Moves {
		if f.hub {
			n.put(move.Hub, f.next())
		} else {
			n.put(move.Spoke, f.next())
		}
	}
	for i := range scope.Exchanges {
		f.exchange(&scope.Exchanges[i], n)
	}
	dropped := scope.DropSpoke
	if f.hub {
		dropped = scope.DropHub
	}
	for _, path := range dropped {
		n.put(path, f.next())
	}
	for _, d := range scope.Defaults {
		if d.Hub == f.hub {
			n.put(d.Path, f.next())
		}
	}
	for i := range scope.Collections {
		f.collection(&scope.Collections[i], n)
	}
}

// exchange writes values that convert.
func (f *filler) exchange(e *Exchange, n *node) {
	fields, values := e.Spoke, f.spokeValues(e)
	if f.hub {
		fields, values = e.Hub, e.convert(values, true)
	}
	for i, value := range values {
		if value != nil {
			n.put(fields[i].Path, value)
		}
	}
}

func (f *filler) spokeValues(e *Exchange) []*node {
	value := f.next()
	switch {
	case e.Format != nil:
		parts := make([]*node, len(e.Hub))
		for i, integer := range e.Format.Integer {
			f.count++
			parts[i], _ = holeValue(fmt.Sprint(f.count), integer)
		}
		return e.convert(parts, false)
	case e.Wrap != nil && !e.Wrap.Hub:
		value = &node{kind: array, elements: []*node{value}}
	case e.Cast != nil && e.Cast.Hub:
		value = rawNode([]byte("80"))
	case e.Cast != nil:
		value = e.Cast.write(rawNode([]byte("80")))
	case e.Table != nil:
		value = rawNode(appendString(nil, e.Table[0][0]))
	}
	return []*node{value}
}

func (f *filler) collection(collection *Collection, n *node) {
	element := newObject()
	if collection.nested() {
		element = &node{}
	}
	for _, key := range collection.Keys {
		element.set(key, f.next())
	}
	f.scope(&collection.Scope, element)
	held := &node{kind: array, elements: []*node{element}}
	if collection.Map {
		held = newObject()
		held.set("canary", element)
	}
	if len(collection.Path) == 0 {
		*n = *held
		return
	}
	n.put(collection.Path, held)
}

// nested reports whether the elements are lists or maps themselves.
func (c *Collection) nested() bool {
	return slices.ContainsFunc(c.Scope.Collections, func(inner Collection) bool { return len(inner.Path) == 0 })
}
