// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package reference

import (
	"bytes"
	"encoding/json"
	"fmt"

	"github.com/conversion-operator/conversion-operator/internal/conversion/expression"
	"github.com/conversion-operator/conversion-operator/internal/conversion/shape"
)

// ruleset is the file form of conversion.Ruleset.
type ruleset struct {
	Format        int      `json:"format"`
	CRD           string   `json:"crd"`
	Group         string   `json:"group"`
	Kind          string   `json:"kind"`
	Namespaced    bool     `json:"namespaced"`
	Hub           string   `json:"hub"`
	Versions      []string `json:"versions"`
	RefusesStatus bool     `json:"refusesStatus"`
	// DropOverflow is for objects that are too large, which the reference refuses.
	DropOverflow bool `json:"dropOverflow"`
	// Schemas are read by package shape. They are not part of the law.
	Schemas map[string]json.RawMessage `json:"schemas"`
	Spokes  []spoke                    `json:"spokes"`
}

type spoke struct {
	Version string `json:"version"`
	// Renamed are fields with another name at the hub. Paths in Root have the names of the hub.
	Renamed []renamed `json:"renamed"`
	Root    scope     `json:"root"`
}

// renamed is a field of the spoke with another name at the hub.
type renamed struct {
	Spoke     path `json:"spoke"`
	Hub       path `json:"hub"`
	InElement bool `json:"inElement"`
}

type scope struct {
	Moves []struct {
		Spoke path `json:"spoke"`
		Hub   path `json:"hub"`
	} `json:"moves"`
	Exchanges   []exchange   `json:"exchanges"`
	Defaults    []filling    `json:"defaults"`
	DropSpoke   []path       `json:"dropSpoke"`
	DropHub     []path       `json:"dropHub"`
	OnlySpoke   []leaf       `json:"onlySpoke"`
	OnlyHub     []leaf       `json:"onlyHub"`
	Shared      []shared     `json:"shared"`
	Collections []collection `json:"collections"`
	// spoke and hub are the schemas of the scope, nil if they are unknown.
	spoke, hub *shape.Schema
	// names are those of the spoke.
	names names
}

// exchange is a set of fields on each side that are computed from each other.
type exchange struct {
	Spoke  []field `json:"spoke"`
	Hub    []field `json:"hub"`
	Format *struct {
		Texts   []string `json:"texts"`
		Integer []bool   `json:"integer"`
	} `json:"format"`
	Table    [][2]string `json:"table"`
	Literals [][2]string `json:"literals"`
	Closed   bool        `json:"closed"`
	Wrap     *struct {
		Hub   bool   `json:"hub"`
		Field string `json:"field"`
	} `json:"wrap"`
	Cast *struct {
		Hub          bool   `json:"hub"`
		Seconds      bool   `json:"seconds"`
		Milliseconds bool   `json:"milliseconds"`
		Number       bool   `json:"number"`
		Quantity     string `json:"quantity"`
		Boolean      bool   `json:"boolean"`
		Timestamp    bool   `json:"timestamp"`
		Separator    string `json:"separator"`
		Document     string `json:"document"`
		List         bool   `json:"list"`
	} `json:"cast"`
	Common *common `json:"common"`
	Index  *struct {
		Hub     bool   `json:"hub"`
		Key     string `json:"key"`
		Integer bool   `json:"integer"`
		Value   string `json:"value"`
	} `json:"index"`
	CEL *struct {
		Spoke []celField `json:"spoke"`
		Hub   []celField `json:"hub"`
		// Bounds are for package expression, as are the schemas.
		Bounds expression.Bounds `json:"bounds"`
		// WhenMissing computes values also if all values of the other side are missing.
		WhenMissing bool `json:"whenMissing"`
	} `json:"cel"`
}

// celField is a field in an expression.
type celField struct {
	Name       string          `json:"name"`
	Schema     json.RawMessage `json:"schema"`
	Expression string          `json:"expression"`
}

// field is a field of an exchange. A value that was preserved alone comes back only if the object
// at the first Anchor segments of Path exists.
type field struct {
	Path   path `json:"path"`
	Anchor int  `json:"anchor"`
	// Text marks a label or an annotation, and Label a label.
	Text  bool `json:"text"`
	Label bool `json:"label"`
	// NullAnchor means that a null in the place of the anchor was written by a client. Otherwise
	// the null is an object that server-side apply emptied.
	NullAnchor bool `json:"nullAnchor"`
	// NotNull marks a field from which the API server removes nulls.
	NotNull bool `json:"notNull"`
	// schema is the schema of the field, nil if it is unknown.
	schema *shape.Schema
	// image is the pointer with the names of the field's version.
	image string
}

// filling is a field that one side lacks, and the default that it gets there.
type filling struct {
	Path  path            `json:"path"`
	Hub   bool            `json:"hub"`
	Value json.RawMessage `json:"value"`
	// From is the name of the metadata that has the value, if there is no Value.
	From   string `json:"from"`
	Anchor int    `json:"anchor"`
	// NullAnchor has the meaning of field.NullAnchor.
	NullAnchor bool `json:"nullAnchor"`
	schema     *shape.Schema
}

// leaf is a field that one side lacks.
type leaf struct {
	Path   path `json:"path"`
	Anchor int  `json:"anchor"`
	// Shell marks an object that is preserved only if it is empty.
	Shell bool `json:"shell"`
	// Text, Label and NullAnchor have their meanings in field.
	Text       bool `json:"text"`
	Label      bool `json:"label"`
	NullAnchor bool `json:"nullAnchor"`
	// Null marks a field that y has too, but where it cannot be null.
	Null bool `json:"null"`
	// Common is set for a field that y has too, where values must have this shape.
	Common *common `json:"common"`
	// Known marks an object that stands for all of its members except these.
	Known []string `json:"known"`
	// Siblings are other spokes that have the field, which the hub lacks.
	Siblings []string `json:"siblings"`
	schema   *shape.Schema
}

// shared is an object that both sides have, and the values that rules move out of it.
type shared struct {
	Path  path   `json:"path"`
	Spoke []path `json:"spoke"`
	Hub   []path `json:"hub"`
}

// collection is a list or map. With Spoke and Hub it is there, and Path is a member of the root that stands
// for both in pointers.
type collection struct {
	Path  path `json:"path"`
	Spoke path `json:"spoke"`
	Hub   path `json:"hub"`
	Map   bool `json:"map"`
	// Object is true for a single object instead of a list or map.
	Object bool     `json:"object"`
	Keys   []string `json:"keys"`
	// ExcludeSpoke and ExcludeHub are the elements that only the spoke, or the hub, can have.
	ExcludeSpoke *exclusion `json:"excludeSpoke"`
	ExcludeHub   *exclusion `json:"excludeHub"`
	Scope        scope      `json:"scope"`
}

// readRuleset reads the output of Ruleset.Marshal. Unknown members are an error: the reference
// would ignore them and be wrong.
func readRuleset(text []byte) (*ruleset, error) {
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.DisallowUnknownFields()
	read := &ruleset{}
	if err := decoder.Decode(read); err != nil {
		return nil, fmt.Errorf("the reference does not know this ruleset: %w", err)
	}
	if read.Format != 2 && read.Format != 3 {
		return nil, fmt.Errorf("the reference does not know a ruleset of format %d", read.Format)
	}
	return read, nil
}
