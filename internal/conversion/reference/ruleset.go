// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package reference

import (
	"bytes"
	"encoding/json"
	"fmt"

	"github.com/conversion-operator/conversion-operator/internal/conversion/shape"
)

// ruleset is the file form of conversion.Ruleset.
type ruleset struct {
	Format     int      `json:"format"`
	CRD        string   `json:"crd"`
	Group      string   `json:"group"`
	Kind       string   `json:"kind"`
	Namespaced bool     `json:"namespaced"`
	Hub        string   `json:"hub"`
	Versions   []string `json:"versions"`
	// DropOverflow is for objects that are too large; the reference refuses them.
	RefusesStatus bool `json:"refusesStatus"`
	DropOverflow  bool `json:"dropOverflow"`
	// Schemas are read by package shape, and no part of the law.
	Schemas map[string]json.RawMessage `json:"schemas"`
	Spokes  []struct {
		Version string `json:"version"`
		Root    scope  `json:"root"`
	} `json:"spokes"`
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
	// spoke and hub are what the schemas say of the scope, nil where that is not known.
	spoke, hub *shape.Schema
}

// exchange is fields of the two sides that are computed from each other.
type exchange struct {
	Spoke  []field `json:"spoke"`
	Hub    []field `json:"hub"`
	Format *struct {
		Texts   []string `json:"texts"`
		Integer []bool   `json:"integer"`
	} `json:"format"`
	Table [][2]string `json:"table"`
	Wrap  *struct {
		Hub bool `json:"hub"`
	} `json:"wrap"`
	Cast *struct {
		Hub     bool `json:"hub"`
		Seconds bool `json:"seconds"`
	} `json:"cast"`
	Common *common `json:"common"`
	Index  *struct {
		Hub     bool   `json:"hub"`
		Key     string `json:"key"`
		Integer bool   `json:"integer"`
	} `json:"index"`
	CEL *struct {
		Spoke []celField `json:"spoke"`
		Hub   []celField `json:"hub"`
	} `json:"cel"`
}

// celField is a field as expressions see it.
type celField struct {
	Name       string          `json:"name"`
	Schema     json.RawMessage `json:"schema"`
	Expression string          `json:"expression"`
}

// field of an exchange. Without the object above it, which is that many segments
// of its path, a value that was preserved alone does not come back.
type field struct {
	Path   path `json:"path"`
	Anchor int  `json:"anchor"`
	// Text marks a label or an annotation, and Label a label.
	Text  bool `json:"text"`
	Label bool `json:"label"`
	// NullAnchor tells a null above it that a client wrote from an emptied object.
	NullAnchor bool `json:"nullAnchor"`
	// NotNull marks a field that the API server takes nulls away from.
	NotNull bool `json:"notNull"`
	// schema is what a value must fit, nil where that is not known.
	schema *shape.Schema
}

// filling is a field that one side lacks, and what it gets there.
type filling struct {
	Path   path            `json:"path"`
	Hub    bool            `json:"hub"`
	Value  json.RawMessage `json:"value"`
	Anchor int             `json:"anchor"`
	// NullAnchor is that of field.
	NullAnchor bool `json:"nullAnchor"`
	schema     *shape.Schema
}

// leaf is a field that one side lacks.
type leaf struct {
	Path   path `json:"path"`
	Anchor int  `json:"anchor"`
	// Shell marks an object that matters only where it has nothing in it.
	Shell bool `json:"shell"`
	// Text, Label and NullAnchor are those of field.
	Text       bool `json:"text"`
	Label      bool `json:"label"`
	NullAnchor bool `json:"nullAnchor"`
	// Null marks a field that y has too, where it cannot be null.
	Null bool `json:"null"`
	// Fits marks a field that y has too, where it must be of a shape.
	Common *common `json:"common"`
	// Known marks an object of which all members but these are meant.
	Known []string `json:"known"`
	// Siblings are other spokes that have the field, which the hub lacks.
	Siblings []string `json:"siblings"`
	schema   *shape.Schema
}

// shared is an object that both sides have, and the values that leave it.
type shared struct {
	Path  path   `json:"path"`
	Spoke []path `json:"spoke"`
	Hub   []path `json:"hub"`
}

type collection struct {
	Path  path     `json:"path"`
	Map   bool     `json:"map"`
	Keys  []string `json:"keys"`
	Scope scope    `json:"scope"`
}

// readRuleset reads what Ruleset.Marshal wrote. Whatever it does not know is an error:
// the reference would be wrong without it.
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
