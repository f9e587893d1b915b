// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package conversion

import (
	"slices"

	"github.com/conversion-operator/conversion-operator/internal/engine/conversion/shape"
)

// Tests compile rules, and the compiler imports this package. So they are in a package
// of their own, and this file exports the internals that they use.

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

// Functions of the engine.
var (
	Kibibytes       = kibibytes
	EscapePointer   = escapePointer
	UnescapePointer = unescapePointer
	SplitPointer    = splitPointer
	ShortPath       = shortPath
	IsIntegral      = isIntegral
	IsIndex         = isIndex
)

// Quoted returns a text as a JSON string.
func Quoted(text string) string { return string(appendQuoted(nil, text)) }

// SelectorOf returns the selector of an element, with the same keys as the selector like.
func SelectorOf(element, like string) string {
	value, _ := parse([]byte(element), openAll)
	return string(appendSelector(nil, value, selectorKeys(like)))
}

// Lossless returns a converter with the same ruleset that converts by the law of package preserve.
func (c *Converter) Lossless() *Converter {
	other := *c
	other.lossless = newLossless(c)
	return &other
}

// IsLossless reports whether the converter does that.
func (c *Converter) IsLossless() bool { return c.lossless != nil }

// Ruleset returns the ruleset of the converter, without schemas.
func (c *Converter) Ruleset() *Ruleset { return c.ruleset }

// ShapeOf returns the schema of a version.
func (c *Converter) ShapeOf(version string) *shape.Schema { return c.version(version).shape }

// FitsWhole reports whether the schema allows an object, or a fragment of one.
func (c *Converter) FitsWhole(version, object string) bool {
	s := &step{}
	root, err := s.parse([]byte(object), openNestedMembers)
	if err == nil {
		s.complete = isComplete(s.metadata(root))
	}
	return err == nil && s.fitsSchema(root, c.version(version).shape)
}

// Rule is a rule that computes a field: the pointers of its scope at the version of the field and at the
// other one, and the pointers of its target and source fields, relative to the scope.
type Rule struct {
	Scope, OtherScope string
	To, From          []string
}

// RuleTo returns the rule that computes a field of one of two versions, nil if there is none.
func (c *Converter) RuleTo(version, pointer string) *Rule {
	v, other := c.version(version), c.otherThan(version)
	scope, rule := c.directionTo(version).ruleTo([]byte(inNames(pointer, v.hubNames)))
	if rule == nil {
		return nil
	}
	found := &Rule{Scope: inNames(scope, v.ownNames), OtherScope: inNames(scope, other.ownNames)}
	for _, f := range rule.to {
		found.To = append(found.To, f.image)
	}
	for _, f := range rule.from {
		found.From = append(found.From, f.image)
	}
	return found
}

// inNames returns a pointer with other names.
func inNames(pointer string, names *naming) string {
	if names == nil || pointer == "" {
		return pointer
	}
	renamed, _ := renamedPointer([]byte(pointer), names.Names)
	return string(renamed)
}

// InHubNames and InOwnNames return an object of a version with the names of the hub, and the reverse.
func (c *Converter) InHubNames(version, object string) string {
	return renamedObject(object, c.version(version).hubNames)
}

// InOwnNames is the reverse of InHubNames.
func (c *Converter) InOwnNames(version, object string) string {
	return renamedObject(object, c.version(version).ownNames)
}

func renamedObject(object string, names *naming) string {
	if names == nil {
		return object
	}
	text, err := new(step).renamedText([]byte(object), names)
	if err != nil {
		panic(err) // tests have JSON
	}
	return string(text)
}

// Computes reports whether a rule computes a field of one of two versions.
func (c *Converter) Computes(version, pointer string) bool {
	return c.directionTo(version).computes([]byte(inNames(pointer, c.version(version).hubNames)))
}

// FilledAt returns the default that rules fill into a field of one of two versions, nil if there is
// none.
func (c *Converter) FilledAt(version, pointer string) []byte {
	pointer = inNames(pointer, c.version(version).hubNames)
	if filled := c.directionTo(version).defaultAt([]byte(pointer), false); filled != nil {
		return filled.value
	}
	return nil
}

// directionTo returns the direction to one of two versions.
func (c *Converter) directionTo(name string) *direction {
	if v := c.version(name); v.fromHub != nil {
		return v.fromHub
	}
	return c.otherThan(name).toHub
}

// otherThan returns the other one of two versions.
func (c *Converter) otherThan(name string) *version {
	return c.versions[slices.IndexFunc(c.versions, func(other *version) bool { return other.name != name })]
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

// PreservedText returns the value of an annotation that preserves values, a JSON object by pointer.
// It returns any other text unchanged.
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
		case '~':
			e.kind = excludedEntry
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
