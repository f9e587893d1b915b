// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package conversion

import (
	"slices"

	"github.com/conversion-operator/conversion-operator/internal/conversion/shape"
)

// Tests compile rules, and the compiler imports this package. So they are in a package
// of their own, and this is what they know of the inside.

// Limits of the engine.
const (
	MaxDepth     = maxDepth
	MaxPreserved = maxPreserved
	MaxDropped   = maxDropped
	MaxCounted   = maxCounted
	MaxPath      = maxPath
	Readable     = readable
	WorkLimit    = workLimit

	PreservedFormat = preservedFormat
)

// How the engine writes things.
var (
	Kibibytes       = kibibytes
	DigestOf        = digestOf
	EscapePointer   = escapePointer
	UnescapePointer = unescapePointer
	SplitPointer    = splitPointer
	LegacyName      = legacyName
	ShortPath       = shortPath
	IsIntegral      = isIntegral
	IsIndex         = isIndex
)

// Quoted writes a text as JSON.
func Quoted(text string) string { return string(appendQuoted(nil, text)) }

// SelectorOf names an element of a list by the keys that are in another selector.
func SelectorOf(element, like string) string {
	value, _ := parse([]byte(element), openAll)
	return string(appendSelector(nil, value, selectorKeys(like)))
}

// Scanner returns a function that reads an object and looks into nothing, in memory
// that it uses again.
func Scanner() func(object []byte) error {
	h := new(arena)
	return func(object []byte) error {
		h.reset()
		_, err := h.parse(object, nil)
		return err
	}
}

// Ruleset is that of the converter.
func (c *Converter) Ruleset() *Ruleset { return c.ruleset }

// ShapeOf is what the schema of a version says of values.
func (c *Converter) ShapeOf(version string) *shape.Schema { return c.version(version).shape }

// FitsWhole reports whether an object, or a fragment of one, is such as its schema allows.
func (c *Converter) FitsWhole(version, object string) bool {
	s := &step{}
	root, err := s.parse([]byte(object), openNestedMembers)
	if err == nil {
		s.complete = isComplete(s.metadata(root))
	}
	return err == nil && s.fitsSchema(root, c.version(version).shape)
}

// Rule is one that computes a field: the place of its scope, and the pointers of the
// fields that it computes, and of those from which it does, in the scope.
type Rule struct {
	Scope    string
	To, From []string
}

// RuleTo is the rule that computes a field of one of two versions, nil where none does.
func (c *Converter) RuleTo(version, pointer string) *Rule {
	scope, rule := c.directionTo(version).ruleTo([]byte(pointer))
	if rule == nil {
		return nil
	}
	found := &Rule{Scope: scope}
	for _, f := range rule.to {
		found.To = append(found.To, f.pointer)
	}
	for _, f := range rule.from {
		found.From = append(found.From, f.pointer)
	}
	return found
}

// Computes reports whether a rule computes a field of one of two versions.
func (c *Converter) Computes(version, pointer string) bool {
	return c.directionTo(version).computes([]byte(pointer))
}

// FilledAt is the value that rules put into a field of one of two versions, nil where
// they put none there.
func (c *Converter) FilledAt(version, pointer string) []byte {
	if filled := c.directionTo(version).defaultAt([]byte(pointer), false); filled != nil {
		return filled.value
	}
	return nil
}

// wayTo is the way to one of two versions.
func (c *Converter) directionTo(name string) *direction {
	v := c.version(name)
	if v.fromHub != nil {
		return v.fromHub
	}
	i := slices.IndexFunc(c.versions, func(other *version) bool { return other != v })
	return c.versions[i].toHub
}

func (d *direction) computes(pointer []byte) bool {
	if d.hasExchangeTo(pointer, false) {
		return true
	}
	return slices.ContainsFunc(d.collections, func(c collection) bool {
		element, rest := c.inElement(pointer)
		return element != nil && (rest == nil && len(c.direction.exchanges) > 0 || rest != nil && c.direction.computes(rest))
	})
}

// PreservedText writes the value of an annotation of preserved values, of which values
// has a text by their pointers; what is no object it leaves unchanged.
func PreservedText(values string) string {
	read, err := parse([]byte(values), openMembers)
	if err != nil || !read.isObject() {
		return values
	}
	s := &step{}
	var p preserved
	var dropped entries
	for m := read.first; m != nil; m = m.next {
		e := entry{pointer: []byte(m.decodedName()), value: m.text}
		switch e.pointer[0] {
		case '!':
			e.kind = absenceEntry
		case '#':
			e.kind = orderEntry
		case '@':
			for _, of := range []entryKind{valueEntry, orderEntry} {
				if found := p.find(e.pointer[1:], of); found != nil {
					found.images = m.text
				}
			}
			continue
		case '&':
			for _, of := range []entryKind{valueEntry, absenceEntry} {
				if found := p.find(e.pointer[1:], of); found != nil {
					found.anchor = m.text
				}
			}
			continue
		case '-':
			dropped = append(dropped, entry{pointer: e.pointer[1:]})
			continue
		}
		if e.kind != valueEntry {
			e.pointer = e.pointer[1:]
		}
		p.entries = append(p.entries, e)
	}
	return string(s.appendPreserved(p, dropped))
}
