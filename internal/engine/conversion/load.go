// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package conversion

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/conversion-operator/conversion-operator/internal/engine/conversion/document"
)

// Load reads a ruleset that Marshal wrote. It fails for an unknown format, and for rules that a
// converter could not follow.
func Load(data []byte) (*Ruleset, error) {
	decoder := json.NewDecoder(bytes.NewReader(data))
	decoder.DisallowUnknownFields()
	ruleset := &Ruleset{}
	if err := decoder.Decode(ruleset); err != nil {
		return nil, fmt.Errorf("the ruleset is not readable: %w", err)
	}
	switch {
	case ruleset.Format != RulesetFormat:
		return nil, fmt.Errorf("the ruleset has format %d, this version of conversion-operator reads %d", ruleset.Format, RulesetFormat)
	case ruleset.Group == "" || ruleset.Kind == "" || len(ruleset.Versions) == 0:
		return nil, errors.New("the ruleset names no group, kind or version")
	case len(ruleset.Spokes) > 0 && !slices.Contains(ruleset.Versions, ruleset.Hub):
		return nil, fmt.Errorf("the ruleset is not readable: its hub %q is not one of its versions", ruleset.Hub)
	}
	if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("the ruleset is not readable: there is something behind it")
	}
	for i := range ruleset.Spokes {
		if !ruleset.Spokes[i].Root.sound(false) {
			return nil, fmt.Errorf("the ruleset is not readable: its rules for version %s are damaged", ruleset.Spokes[i].Version)
		}
	}
	return ruleset, nil
}

// sound reports whether a converter can follow the rules: a ruleset is a file, which may be
// truncated or edited. ofElements is true for the scope of elements, which rules may name as a whole.
func (s *Scope) sound(ofElements bool) bool {
	isDamaged := func(path Path) bool { return len(path) == 0 && !ofElements }
	for _, move := range s.Moves {
		if isDamaged(move.Spoke) || isDamaged(move.Hub) || len(move.Spoke)+len(move.Hub) == 0 {
			return false
		}
	}
	for _, x := range slices.Concat(s.Exchanges, s.Derived) {
		if slices.ContainsFunc(slices.Concat(x.Spoke, x.Hub), func(field Field) bool { return isDamaged(field.Path) }) {
			return false
		}
	}
	for i := range s.Exchanges {
		if x := &s.Exchanges[i]; !x.sound() || x.CEL != nil && (!x.CEL.computesSpoke() || !x.CEL.computesHub()) {
			return false
		}
	}
	for i := range s.Derived {
		if x := &s.Derived[i]; !x.sound() || x.CEL == nil || x.CEL.computesSpoke() == x.CEL.computesHub() {
			return false
		}
	}
	for _, path := range slices.Concat(s.DropSpoke, s.DropHub) {
		if len(path) == 0 {
			return false
		}
	}
	for _, d := range s.Defaults {
		if len(d.Path) == 0 || (len(d.Value) == 0) == (d.From == "") || d.From != "" && !slices.Contains(DefaultSources, d.From) {
			return false
		}
	}
	for _, leaf := range slices.Concat(s.OnlySpoke, s.OnlyHub) {
		if len(leaf.Path) == 0 && leaf.Known == nil {
			return false
		}
	}
	for i := range s.Collections {
		if !s.Collections[i].sound() {
			return false
		}
	}
	return !slices.ContainsFunc(s.Shared, func(shared Shared) bool { return len(shared.Spoke) == 0 || len(shared.Hub) == 0 })
}

func (c *Collection) sound() bool {
	for _, x := range []*Exclusion{c.ExcludeSpoke, c.ExcludeHub} {
		if x != nil && len(x.Without) == 0 {
			return false
		}
	}
	forms := []Form{FormList, FormMap, FormOne}
	spoke, hub := slices.Index(forms, c.SpokeForm), slices.Index(forms, c.HubForm)
	switch {
	case spoke < 0, hub < 0, slices.Contains(c.Spoke, Each), slices.Contains(c.Hub, Each):
		return false
	case spoke+hub == 1 && c.Key == "", spoke+hub == 3: // a list and a map without a key, or a map and one value
		return false
	}
	return c.Scope.sound(!c.IsOne())
}

func (e *Exchange) sound() bool {
	isElement := func(field Field) bool { return len(field.Path) == 0 }
	if len(e.Spoke) > 1 && slices.ContainsFunc(e.Spoke, isElement) || len(e.Hub) > 1 && slices.ContainsFunc(e.Hub, isElement) {
		return false
	}
	spoke, hub := len(e.Spoke), len(e.Hub)
	switch {
	case e.Format != nil:
		return spoke == 1 && hub > 0 && len(e.Format.Integer) == hub && len(e.Format.Texts) == hub+1
	case e.CEL != nil:
		isDamaged := func(f FieldAround) bool { return f.Up < 1 || len(f.Path) == 0 }
		return spoke+len(e.CEL.SpokeAround) > 0 && hub+len(e.CEL.HubAround) > 0 && len(e.CEL.Spoke) == spoke && len(e.CEL.Hub) == hub &&
			!slices.ContainsFunc(slices.Concat(e.CEL.SpokeAround, e.CEL.HubAround), isDamaged)
	case e.Cast != nil && e.Cast.Quantity != "" && !slices.Contains(Units, e.Cast.Quantity):
		return false
	case e.Cast != nil && e.Cast.Document != "" && !document.Known(e.Cast.Document):
		return false
	}
	for _, pair := range e.Literals {
		if !json.Valid([]byte(pair[0])) || !json.Valid([]byte(pair[1])) {
			return false
		}
	}
	return spoke == 1 && hub == 1
}
