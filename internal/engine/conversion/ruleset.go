// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package conversion

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"io"
	"slices"
)

// RulesetFormat is the format of a ruleset. It changes if an older reader would misread a ruleset.
const RulesetFormat = 3

// Ruleset is the compiled form of a policy's rules for the versions of one kind. It is small and
// needs no other schemas: a converter pod mounts it.
type Ruleset struct {
	Format int    `json:"format"`
	CRD    string `json:"crd"`
	Group  string `json:"group"`
	Kind   string `json:"kind"`
	// Namespaced is true if objects have a namespace.
	Namespaced bool   `json:"namespaced,omitempty"`
	Hub        string `json:"hub"`
	// Versions are all versions of the ruleset, sorted.
	Versions []string `json:"versions"`
	// DropOverflow drops values that annotations have no room for, instead of failing.
	DropOverflow bool `json:"dropOverflow,omitempty"`
	// Truncating allows conversions to omit values that annotations have no room for. Nil makes
	// them fail instead.
	Truncating *Truncating `json:"truncating,omitempty"`
	// RefusesStatus does not restore preserved values below .status: a client that may write the
	// annotations of an object may not be allowed to write its status.
	RefusesStatus bool `json:"refusesStatus,omitempty"`
	// Schemas are the stripped schemas (package shape) by version. A preserved value is only
	// restored if its field allows it.
	Schemas map[string]json.RawMessage `json:"schemas,omitempty"`
	// Spokes are the versions other than the hub, in the order of Versions.
	Spokes []Spoke `json:"spokes,omitempty"`
}

// Spoke has the rules between one version and the hub.
type Spoke struct {
	Version string `json:"version"`
	Root    Scope  `json:"root"`
}

// Scope has the rules for an object, or for each element of a list or map. Paths are relative to
// it.
type Scope struct {
	Moves     []Move     `json:"moves,omitempty"`
	Exchanges []Exchange `json:"exchanges,omitempty"`
	// Derived are exchanges by expressions that only compute the fields of one side. What these have otherwise is dropped.
	Derived  []Exchange `json:"derived,omitempty"`
	Defaults []Default  `json:"defaults,omitempty"`
	// DropSpoke and DropHub are the fields that are dropped.
	DropSpoke []Path `json:"dropSpoke,omitempty"`
	DropHub   []Path `json:"dropHub,omitempty"`
	// OnlySpoke and OnlyHub are the fields that the other side lacks.
	OnlySpoke []LeafField `json:"onlySpoke,omitempty"`
	OnlyHub   []LeafField `json:"onlyHub,omitempty"`
	// Shared are objects that both sides have, and that values of rules leave or enter.
	Shared []Shared `json:"shared,omitempty"`
	// Collections are the lists and maps whose elements are scopes.
	Collections []Collection `json:"collections,omitempty"`
}

// LeafField is a field, with everything below it, that one side lacks.
type LeafField struct {
	Path Path `json:"path"`
	// Shell marks an object that is only preserved if it is empty: its fields are preserved by
	// themselves.
	Shell bool `json:"shell,omitempty"`
	// Null marks a field of both sides that is nullable on one side only: on the other, the API
	// server would prune the null.
	Null bool `json:"null,omitempty"`
	// Common marks a field of both sides of which one side allows more: a value without this shape
	// is one-sided.
	Common *Common `json:"common,omitempty"`
	// Siblings are the other spokes that have the same field, if the hub lacks it: a value that
	// one of them has preserved is the value of all.
	Siblings []string `json:"siblings,omitempty"`
	// Known marks an object of both sides that may have any members on one side only: all members
	// but these are one-sided.
	Known []string `json:"known,omitzero"`
}

// Shared is an object or map of both sides. If the values that rules take out of it are all that
// it has, it exists for these only, and does not exist on the other side.
type Shared struct {
	Spoke Path `json:"spoke"`
	Hub   Path `json:"hub"`
	// OfSpoke and OfHub are the paths of these values, relative to the scope.
	OfSpoke []Path `json:"ofSpoke,omitempty"`
	OfHub   []Path `json:"ofHub,omitempty"`
}

// Collection is a list, a map, or a value in another place, whose elements are converted by themselves.
type Collection struct {
	Spoke Path `json:"spoke"`
	Hub   Path `json:"hub"`
	// SpokeForm and HubForm say what has the elements there.
	SpokeForm Form `json:"spokeForm,omitempty"`
	HubForm   Form `json:"hubForm,omitempty"`
	// Key is the field of a list's elements that is their name in the map on the other side, or that identifies them in both
	// lists although no schema says so. IntegerKey is true for a field of type integer, and false for type string.
	Key        string `json:"key,omitempty"`
	IntegerKey bool   `json:"integerKey,omitempty"`
	// Keys are the fields that identify the elements of a list in the hub. The elements of a list without
	// keys are identified by their content.
	Keys []string `json:"keys,omitempty"`
	// ExcludeSpoke and ExcludeHub select the elements that the spoke, or the hub, has alone.
	ExcludeSpoke *Exclusion `json:"excludeSpoke,omitempty"`
	ExcludeHub   *Exclusion `json:"excludeHub,omitempty"`
	Scope        Scope      `json:"scope"`
}

// Form is what has the elements of a collection.
type Form string

const (
	// FormList is a list.
	FormList Form = ""
	// FormMap is a map, whose elements are identified by their names.
	FormMap Form = "map"
	// FormOne is a value that is itself the only element. The other side has a value, too, or the first element of a list.
	FormOne Form = "one"
)

// At returns the path in the hub, or in the spoke.
func (c *Collection) At(hub bool) Path {
	if hub {
		return c.Hub
	}
	return c.Spoke
}

// Form returns the form in the hub, or in the spoke.
func (c *Collection) Form(hub bool) Form {
	if hub {
		return c.HubForm
	}
	return c.SpokeForm
}

// Inside returns the path of the elements in the hub, or in the spoke, below another path.
func (c *Collection) Inside(hub bool, above Path) Path {
	at := slices.Concat(above, c.At(hub))
	if c.Form(hub) == FormOne {
		return at
	}
	return append(at, Each)
}

// IsOne reports whether both sides have one value, such as an object that moves.
func (c *Collection) IsOne() bool { return c.SpokeForm == FormOne && c.HubForm == FormOne }

// Move copies a value between two paths.
type Move struct {
	Spoke Path `json:"spoke"`
	Hub   Path `json:"hub"`
}

// Exchange is a group of fields that are computed from each other, by one of Format, Table,
// Literals, Cast, Scale and CEL. Without any of them, both sides have the same value, if both allow it and
// it has the shape Common.
type Exchange struct {
	Spoke []Field `json:"spoke"`
	Hub   []Field `json:"hub"`

	Format *Format `json:"format,omitempty"`
	// Table pairs the strings of the spoke with those of the hub.
	Table [][2]string `json:"table,omitempty"`
	// Literals pairs JSON values of the spoke with those of the hub, if they are not all strings.
	Literals [][2]string `json:"literals,omitempty"`
	// Closed is true if only the values in Literals have an image: both sides have other types.
	Closed bool   `json:"closed,omitempty"`
	Cast   *Cast  `json:"cast,omitempty"`
	Scale  *Scale `json:"scale,omitempty"`
	CEL    *CEL   `json:"cel,omitempty"`
	// Common is the shape of the values that both sides allow, if one side allows more.
	Common *Common `json:"common,omitempty"`
}

// single returns what computes one value from one, nil if the exchange is between one value and several.
func (e *Exchange) single() single {
	switch {
	case e.Format != nil, e.CEL != nil:
		return nil
	case e.Cast != nil:
		return e.Cast
	case e.Scale != nil:
		return e.Scale
	}
	return e.asTable()
}

// Field is a field of an Exchange.
type Field struct {
	Path Path `json:"path"`
	// Anchor is the object of the other side without which nothing is computed from missing fields.
	Anchor Path `json:"anchor,omitempty"`
}

// Format is one string in the spoke, and several fields in the hub, its holes.
type Format struct {
	// Texts are the texts before, between and after the holes: one more than holes.
	Texts []string `json:"texts"`
	// Integer is true, for each hole, for a field of type integer, and false for type string.
	Integer []bool `json:"integer"`
}

// Cast is a number, boolean, list or object on one side, and a string on the other: a decimal integer,
// if no other form is set.
type Cast struct {
	// Hub is true if the hub has the string.
	Hub bool `json:"hub,omitempty"`
	// Seconds and Milliseconds are true for a duration, which the number counts in these.
	Seconds      bool `json:"seconds,omitempty"`
	Milliseconds bool `json:"milliseconds,omitempty"`
	// Number is true for a number that may have a fraction.
	Number bool `json:"number,omitempty"`
	// Quantity is the unit of a quantity, one of Units.
	Quantity string `json:"quantity,omitempty"`
	Boolean  bool   `json:"boolean,omitempty"`
	// Timestamp is true for a time, in seconds since 1970.
	Timestamp bool `json:"timestamp,omitempty"`
	// Separator is between the strings of a list.
	Separator string `json:"separator,omitempty"`
	// Document is the format of a text that has an object or a list, one of document.Formats. List is true
	// if the schema allows only lists.
	Document string `json:"document,omitempty"`
	List     bool   `json:"list,omitempty"`
}

// CEL has an expression for each field.
type CEL struct {
	// Spoke and Hub are parallel to those of the Exchange.
	Spoke []CELField `json:"spoke"`
	Hub   []CELField `json:"hub"`
	// SpokeAround and HubAround are fields of the objects around the scope. They are only read.
	SpokeAround []FieldAround `json:"spokeAround,omitempty"`
	HubAround   []FieldAround `json:"hubAround,omitempty"`
	// WhenMissing evaluates expressions also if all fields that they can read are missing.
	WhenMissing bool `json:"whenMissing,omitempty"`
}

// CELField is a field of expressions, with the expression that computes it.
type CELField struct {
	// Name is its name in expressions: self.name.
	Name string `json:"name"`
	// Expression computes it from the fields of the other side. It is empty if the rule only reads the field, which other
	// rules may be for.
	Expression string `json:"expression"`
}

// FieldAround is a field of an object around a scope.
type FieldAround struct {
	CELField
	// Up is the number of scopes from that of the rule to that of the field, and Path the path in it.
	Up   int  `json:"up"`
	Path Path `json:"path"`
}

// Default is a field that one side lacks, with its default value there.
type Default struct {
	Path Path `json:"path"`
	// Hub is true for a field of the hub.
	Hub   bool            `json:"hub,omitempty"`
	Value json.RawMessage `json:"value,omitempty"`
	// From is the metadata that has the value, name or namespace, if there is no Value.
	From string `json:"from,omitempty"`
	// Anchor is the object of the other side without which no default is filled in.
	Anchor Path `json:"anchor,omitempty"`
}

// DefaultSources are the values of Default.From.
var DefaultSources = []string{"name", "namespace"}

// Marshal returns the JSON form of the ruleset. Equal rulesets give equal bytes.
func (p *Ruleset) Marshal() ([]byte, error) { return json.Marshal(p) }

// Hash returns the hash of the ruleset: 16 hexadecimal characters.
func (p *Ruleset) Hash() string {
	text, err := p.Marshal()
	if err != nil {
		return "" // cannot happen: everything in a ruleset has a JSON form
	}
	return HashOf(text)
}

// HashOf returns the hash of a ruleset in the form of Marshal. It does not depend on the version
// of the program, which could write the ruleset differently.
func HashOf(text []byte) string {
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:8])
}

// fingerprint identifies the rules and the schemas in preserved data.
func (p *Ruleset) fingerprint() string {
	const digits = 8
	rules := *p
	rules.Schemas, rules.Truncating = nil, nil
	all := sha256.New()
	_, _ = io.WriteString(all, rules.Hash()) // a hash accepts all writes
	for _, name := range p.Versions {
		_, _ = all.Write(p.Schemas[name])
	}
	return hex.EncodeToString(all.Sum(nil))[:digits]
}

// Pairs returns the ordered pairs of versions that the ruleset converts.
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

// Identity reports whether a conversion changes nothing but the version: the versions have the
// same fields, and no rule changes one. Then strategy None gives the same result. It ignores
// values that previous rulesets have preserved; strategy None leaves those in their annotation.
func (p *Ruleset) Identity() bool {
	return !slices.ContainsFunc(p.Spokes, func(spoke Spoke) bool { return !spoke.Root.identity() })
}

func (s Scope) identity() bool {
	touched := len(s.Moves) + len(s.Exchanges) + len(s.Derived) + len(s.Defaults) + len(s.DropSpoke) + len(s.DropHub) +
		len(s.OnlySpoke) + len(s.OnlyHub) + len(s.Shared)
	return touched == 0 && !slices.ContainsFunc(s.Collections, func(c Collection) bool {
		return !slices.Equal(c.Spoke, c.Hub) || c.SpokeForm != c.HubForm || c.ExcludeSpoke != nil || c.ExcludeHub != nil || !c.Scope.identity()
	})
}
