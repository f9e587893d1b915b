// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package conversion

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
)

// RulesetFormat is the format of a ruleset. It changes when an older reader would misread a
// ruleset. One of format 2 has no schemas, and is read unchanged: pods serve it until API
// servers ask for another.
const RulesetFormat = 3

// Ruleset is what a policy's rules mean for the versions of one kind. It needs no
// schema any more, and is small: a converter pod mounts it.
type Ruleset struct {
	Format int    `json:"format"`
	CRD    string `json:"crd"`
	Group  string `json:"group"`
	Kind   string `json:"kind"`
	// Namespaced tells whether objects have a namespace.
	Namespaced bool   `json:"namespaced,omitempty"`
	Hub        string `json:"hub"`
	// Versions are those that the ruleset covers, sorted.
	Versions []string `json:"versions"`
	// DropOverflow gives kept values up that have no room, instead of failing.
	DropOverflow bool `json:"dropOverflow,omitempty"`
	// Truncating allows conversions to leave out what annotations have no room for.
	// Nil fails them instead.
	Truncating *Truncating `json:"truncating,omitempty"`
	// RefusesStatus keeps what is preserved below .status out of objects: the client that may
	// write an object may write that, and not its status.
	RefusesStatus bool `json:"refusesStatus,omitempty"`
	// Schemas are what the versions' schemas say of values (package shape), by
	// version: what is preserved comes back only as a value that its field can have.
	Schemas map[string]json.RawMessage `json:"schemas,omitempty"`
	// Spokes are the versions besides the hub, in the order of Versions.
	Spokes []Spoke `json:"spokes,omitempty"`
}

// Spoke converts one version to and from the hub.
type Spoke struct {
	Version string `json:"version"`
	Root    Scope  `json:"root"`
}

// Scope is an object, or each element of a list or map in it, with what is
// local to it. Paths are relative to it.
type Scope struct {
	Moves     []Move     `json:"moves,omitempty"`
	Exchanges []Exchange `json:"exchanges,omitempty"`
	Defaults  []Default  `json:"defaults,omitempty"`
	// DropSpoke and DropHub are the fields that are given up.
	DropSpoke []Path `json:"dropSpoke,omitempty"`
	DropHub   []Path `json:"dropHub,omitempty"`
	// OnlySpoke and OnlyHub are the fields that the other side lacks.
	OnlySpoke []LeafField `json:"onlySpoke,omitempty"`
	OnlyHub   []LeafField `json:"onlyHub,omitempty"`
	// Shared are objects on both sides that values leave or enter.
	Shared []Shared `json:"shared,omitempty"`
	// Lists and maps whose elements are scopes of their own; they have the same
	// path on both sides.
	Collections []Collection `json:"collections,omitempty"`
}

// LeafField is a field, with all below it, that one side lacks.
type LeafField struct {
	Path Path `json:"path"`
	// Anchor is the number of segments of the object above it that both sides
	// have. Without that object the leaf field is not restored.
	Anchor int `json:"anchor"`
	// Shell marks an object that is kept only where it is empty: its fields have
	// owners of their own.
	Shell bool `json:"shell,omitempty"`
	// Text marks a label or annotation, which is a string or nothing, and Label a
	// label, whose text the API server limits.
	Text  bool `json:"text,omitempty"`
	Label bool `json:"label,omitempty"`
	// Null marks a field that both sides have, and that may be null on one of them
	// only: the API server would take the null away on the other.
	Null bool `json:"null,omitempty"`
	// Common marks a field that both sides have, and of which one side allows more: a
	// value that is not of this shape is one-sided.
	Common *Common `json:"common,omitempty"`
	// NullAnchor tells that a null in place of the object above it is one that
	// a client wrote. Otherwise it is an object that was emptied, as server-side
	// apply leaves it.
	NullAnchor bool `json:"nullAnchor,omitempty"`
	// Siblings are the other spokes that have the same field, where the hub lacks it:
	// what one of them has preserved is the value of all.
	Siblings []string `json:"siblings,omitempty"`
	// Known marks an object that both sides have and that may hold anything on
	// one side only: all of its members but these are one-sided.
	Known []string `json:"known,omitzero"`
}

// Shared is an object or map that both sides have. The values that rules take
// out of it may be all that it has: then it is there for them alone, and is not
// there on the other side.
type Shared struct {
	Path Path `json:"path"`
	// Spoke and Hub are those values, relative to the scope.
	Spoke []Path `json:"spoke,omitempty"`
	Hub   []Path `json:"hub,omitempty"`
}

// Collection is a list or map.
type Collection struct {
	Path Path `json:"path"`
	// Map tells a map, whose elements are known by their keys.
	Map bool `json:"map,omitempty"`
	// Keys are the fields that tell the elements of a list apart. A list without
	// them has elements that are known by what they are.
	Keys  []string `json:"keys,omitempty"`
	Scope Scope    `json:"scope"`
}

// Move copies a value between two paths.
type Move struct {
	Spoke Path `json:"spoke"`
	Hub   Path `json:"hub"`
}

// Exchange is fields of the two sides that are computed from each other. How, one
// of Format, Table, Wrap, Cast, Index and CEL says; without any, a value is the
// same on both sides, as far as it is legal there and of the shape Common.
type Exchange struct {
	Spoke []Field `json:"spoke"`
	Hub   []Field `json:"hub"`

	Format *Format `json:"format,omitempty"`
	// Table pairs the strings of the spoke with those of the hub.
	Table [][2]string `json:"table,omitempty"`
	Wrap  *Wrap       `json:"wrap,omitempty"`
	Cast  *Cast       `json:"cast,omitempty"`
	Index *Index      `json:"index,omitempty"`
	CEL   *CEL        `json:"cel,omitempty"`
	// Common is the shape of the values that both sides can have, where one allows more.
	Common *Common `json:"common,omitempty"`
}

// Field is one of an Exchange.
type Field struct {
	Path Path `json:"path"`
	// Anchor is that of Leaf, for a value that was preserved.
	Anchor int `json:"anchor,omitempty"`
	// Text, Label and NullAnchor are those of Leaf.
	Text       bool `json:"text,omitempty"`
	Label      bool `json:"label,omitempty"`
	NullAnchor bool `json:"nullAnchor,omitempty"`
	// NotNull marks a field that cannot be null, where one of the other side can.
	NotNull bool `json:"notNull,omitempty"`
}

// Format is one string in the spoke, and several fields in the hub, its holes.
type Format struct {
	// Texts stand before, between and behind the holes: one more than there are holes.
	Texts []string `json:"texts"`
	// Integer tells, for each hole, a field of type integer from one of type string.
	Integer []bool `json:"integer"`
}

// Wrap is one value on one side, and a list on the other.
type Wrap struct {
	// Hub tells that the list is the hub's.
	Hub bool `json:"hub,omitempty"`
}

// Cast is an integer on one side, and a string on the other.
type Cast struct {
	// Hub tells that the string is the hub's.
	Hub bool `json:"hub,omitempty"`
	// Seconds tells a duration from a decimal number.
	Seconds bool `json:"seconds,omitempty"`
}

// Index is a list of objects on one side, and a map on the other.
type Index struct {
	// Hub tells that the list is the hub's.
	Hub bool `json:"hub,omitempty"`
	// Key is the field of the list's objects that is the key of the map.
	Key string `json:"key"`
	// Integer tells a key of type integer from one of type string.
	Integer bool `json:"integer,omitempty"`
}

// CEL is a pair of expressions for each field.
type CEL struct {
	// Spoke and Hub are parallel to those of the Exchange.
	Spoke []CELField `json:"spoke"`
	Hub   []CELField `json:"hub"`
}

// CELField is a field as expressions see it, and the expression that computes it.
type CELField struct {
	// Name is what expressions call it: self.name.
	Name string `json:"name"`
	// Schema is its structural schema, JSONSchemaProps as in a CustomResourceDefinition.
	Schema json.RawMessage `json:"schema"`
	// Expression computes it from the fields of the other side.
	Expression string `json:"expression"`
}

// Default is a field that one side lacks, and the value that it gets there.
type Default struct {
	Path Path `json:"path"`
	// Hub tells a field of the hub from one of the spoke.
	Hub   bool            `json:"hub,omitempty"`
	Value json.RawMessage `json:"value"`
	// Anchor is that of Leaf: without that object nothing is filled.
	Anchor int `json:"anchor,omitempty"`
	// NullAnchor is that of Leaf.
	NullAnchor bool `json:"nullAnchor,omitempty"`
}

// Marshal writes the ruleset; equal rulesets give equal bytes.
func (p *Ruleset) Marshal() ([]byte, error) { return json.Marshal(p) }

// Hash identifies the ruleset: 16 hexadecimal characters.
func (p *Ruleset) Hash() string {
	text, err := p.Marshal()
	if err != nil {
		return "" // cannot be: a ruleset holds nothing that has no JSON form
	}
	return HashOf(text)
}

// HashOf is the hash of the ruleset that Marshal wrote as text. It stays the same
// for a program of another version, which would write the ruleset differently.
func HashOf(text []byte) string {
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:8])
}

// Load reads a ruleset that Marshal wrote.
func Load(data []byte) (*Ruleset, error) {
	decoder := json.NewDecoder(bytes.NewReader(data))
	decoder.DisallowUnknownFields()
	ruleset := &Ruleset{}
	if err := decoder.Decode(ruleset); err != nil {
		return nil, fmt.Errorf("the ruleset is not readable: %w", err)
	}
	switch {
	case ruleset.Format != RulesetFormat && ruleset.Format != RulesetFormat-1:
		return nil, fmt.Errorf("the ruleset has format %d, this version of conversion-operator reads %d and %d", ruleset.Format, RulesetFormat-1, RulesetFormat)
	case ruleset.Group == "" || ruleset.Kind == "" || len(ruleset.Versions) == 0:
		return nil, errors.New("the ruleset names no group, kind or version")
	case len(ruleset.Spokes) > 0 && !slices.Contains(ruleset.Versions, ruleset.Hub):
		return nil, fmt.Errorf("the ruleset is not readable: its hub %q is not one of its versions", ruleset.Hub)
	}
	if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("the ruleset is not readable: there is something behind it")
	}
	for i := range ruleset.Spokes {
		if !ruleset.Spokes[i].Root.sound() {
			return nil, fmt.Errorf("the ruleset is not readable: its rules for version %s are damaged", ruleset.Spokes[i].Version)
		}
	}
	return ruleset, nil
}

// sound reports whether a converter can follow a scope: a ruleset is a file, which
// may be cut or edited.
func (s *Scope) sound() bool {
	for _, move := range s.Moves {
		if len(move.Spoke) == 0 || len(move.Hub) == 0 {
			return false
		}
	}
	for i := range s.Exchanges {
		if !s.Exchanges[i].sound() {
			return false
		}
	}
	for _, path := range slices.Concat(s.DropSpoke, s.DropHub) {
		if len(path) == 0 {
			return false
		}
	}
	for _, d := range s.Defaults {
		if len(d.Path) == 0 || !d.Path.reaches(d.Anchor) || len(d.Value) == 0 {
			return false
		}
	}
	for _, leaf := range slices.Concat(s.OnlySpoke, s.OnlyHub) {
		if len(leaf.Path) == 0 && leaf.Known == nil || !leaf.Path.reaches(leaf.Anchor) {
			return false
		}
	}
	for i := range s.Collections {
		if !s.Collections[i].Scope.sound() {
			return false
		}
	}
	return !slices.ContainsFunc(s.Shared, func(shared Shared) bool { return len(shared.Path) == 0 })
}

func (e *Exchange) sound() bool {
	for _, field := range slices.Concat(e.Spoke, e.Hub) {
		if len(field.Path) == 0 || !field.Path.reaches(field.Anchor) {
			return false
		}
	}
	spoke, hub := len(e.Spoke), len(e.Hub)
	switch {
	case e.Format != nil:
		return spoke == 1 && hub > 0 && len(e.Format.Integer) == hub && len(e.Format.Texts) == hub+1
	case e.CEL != nil:
		return spoke > 0 && hub > 0 && len(e.CEL.Spoke) == spoke && len(e.CEL.Hub) == hub
	}
	return spoke == 1 && hub == 1
}

// reaches reports whether a path has that many segments.
func (p Path) reaches(anchor int) bool { return 0 <= anchor && anchor <= len(p) }

// Pairs are the ordered pairs of versions that the ruleset converts.
func (p *Ruleset) Pairs() [][2]string {
	var pairs [][2]string
	for _, from := range p.Versions {
		for _, to := range p.Versions {
			if from != to {
				pairs = append(pairs, [2]string{from, to})
			}
		}
	}
	return pairs
}

func (p *Ruleset) spoke(version string) *Spoke {
	i := slices.IndexFunc(p.Spokes, func(spoke Spoke) bool { return spoke.Version == version })
	if i < 0 {
		return nil
	}
	return &p.Spokes[i]
}

// Identity reports whether every conversion leaves every object unchanged, its
// version aside: the versions have the same fields, and no rule touches one.
// Strategy None gives the same then. What previous rules have preserved in an
// annotation is not looked at: strategy None leaves it there.
func (p *Ruleset) Identity() bool {
	return !slices.ContainsFunc(p.Spokes, func(spoke Spoke) bool { return !spoke.Root.identity() })
}

func (s Scope) identity() bool {
	touched := len(s.Moves) + len(s.Exchanges) + len(s.Defaults) + len(s.DropSpoke) + len(s.DropHub) +
		len(s.OnlySpoke) + len(s.OnlyHub) + len(s.Shared)
	return touched == 0 && !slices.ContainsFunc(s.Collections, func(c Collection) bool { return !c.Scope.identity() })
}

// Accepted reports whether a field, or one above it, is among those that a policy
// without a converter gives up: spec.converter.none.acceptedLosses.
func Accepted(losses []string, path string) bool {
	return slices.ContainsFunc(losses, func(loss string) bool {
		rest, found := strings.CutPrefix(path, loss)
		return found && (rest == "" || rest[0] == '.' || rest[0] == '[')
	})
}
