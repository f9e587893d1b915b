// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package conversion

import (
	"github.com/conversion-operator/conversion-operator/internal/engine/conversion/shape"
	"github.com/conversion-operator/conversion-operator/internal/engine/preserve"
	"github.com/conversion-operator/conversion-operator/internal/engine/tree"
)

// Tests compile rules, and the compiler imports this package. So they are in a package
// of their own, and this file exports the internals that they use.

// Limits of the engine.
const (
	MaxDropped = maxDropped
	MaxCounted = maxCounted
	MaxPath    = maxPath
	WorkLimit  = workLimit
)

// Functions of the engine.
var (
	Kibibytes = kibibytes
	ShortPath = shortPath
)

// Ruleset returns the ruleset of the converter, without schemas.
func (c *Converter) Ruleset() *Ruleset { return c.ruleset }

// Fingerprint identifies the rules in preserved data.
func (c *Converter) Fingerprint() string { return c.fingerprint }

// ShapeOf returns the schema of a version.
func (c *Converter) ShapeOf(version string) *shape.Schema { return c.version(version).shape }

// FitsWhole reports whether the schema allows an object, or a fragment of one.
func (c *Converter) FitsWhole(version, object string) bool {
	root, err := tree.NewArena().Read([]byte(object))
	if err != nil {
		return false
	}
	metadata := root.Get("metadata")
	isFragment := metadata.Get("name") == nil && metadata.Get("uid") == nil
	return preserve.Of(c.version(version).shape, isFragment).Allows(root)
}

// WithoutNotes returns a converter of the ruleset that notes nothing of values, and the number of scopes that would.
func WithoutNotes(ruleset *Ruleset) (slow *Converter, scopes int, err error) {
	if slow, err = NewConverter(ruleset); err != nil {
		return nil, 0, err
	}
	for _, v := range slow.versions {
		for _, f := range []*function{v.there, v.back} {
			if f != nil {
				scopes += f.withoutNotes()
			}
		}
	}
	return slow, scopes, nil
}

func (f *function) withoutNotes() (scopes int) {
	if f.reversible {
		f.reversible, scopes = false, 1
	}
	for _, c := range f.collections {
		scopes += c.inner.withoutNotes()
	}
	return scopes
}
