// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package form is the serialised form of a stripped schema: package strip writes it, and
// package shape reads it. Names are short, because a ruleset contains thousands of them.
package form

import (
	"bytes"
	"encoding/json"
)

// Node is the stripped schema of one value. Fields may be added, but not renamed: older
// rulesets must stay readable.
type Node struct {
	// Type is the first letter of the type, empty for any type.
	Type string `json:"t,omitempty"`
	// Properties are the declared members, and Additional the schema of all others.
	Properties map[string]*Node `json:"p,omitempty"`
	Additional *Node            `json:"a,omitempty"`
	// Closed is additionalProperties: false.
	Closed bool  `json:"ac,omitempty"`
	Items  *Node `json:"i,omitempty"`

	Nullable    bool `json:"n,omitempty"`
	Preserve    bool `json:"u,omitempty"` // x-kubernetes-preserve-unknown-fields
	Embedded    bool `json:"er,omitempty"`
	IntOrString bool `json:"is,omitempty"`

	// Limits are nil if there are none: most nodes have none.
	*Limits
}

// Limits restrict a value beyond its type, or give it a default.
type Limits struct {
	// ListType is "set" or "map"; an atomic list needs no check.
	ListType string   `json:"lt,omitempty"`
	ListKeys []string `json:"lk,omitempty"`

	Required     []string          `json:"r,omitempty"`
	Enum         []json.RawMessage `json:"e,omitempty"`
	Default      json.RawMessage   `json:"d,omitempty"`
	Pattern      string            `json:"re,omitempty"`
	Format       string            `json:"f,omitempty"`
	Minimum      *float64          `json:"mn,omitempty"`
	Maximum      *float64          `json:"mx,omitempty"`
	ExclusiveMin bool              `json:"xn,omitempty"`
	ExclusiveMax bool              `json:"xx,omitempty"`
	MultipleOf   *float64          `json:"mo,omitempty"`
	MinLength    *int64            `json:"ln,omitempty"`
	MaxLength    *int64            `json:"lx,omitempty"`
	MinItems     *int64            `json:"in,omitempty"`
	MaxItems     *int64            `json:"ix,omitempty"`
	MinMembers   *int64            `json:"pn,omitempty"`
	MaxMembers   *int64            `json:"px,omitempty"`
	Unique       bool              `json:"ui,omitempty"`

	AllOf []*Node `json:"all,omitempty"`
	AnyOf []*Node `json:"any,omitempty"`
	OneOf []*Node `json:"one,omitempty"`
	Not   *Node   `json:"not,omitempty"`
}

// Types are the types by their first letter.
var Types = map[string]string{"s": "string", "i": "integer", "n": "number", "b": "boolean", "o": "object", "a": "array"}

// Encode returns the JSON form of a schema. Equal schemas give equal bytes.
func Encode(node *Node) (json.RawMessage, error) {
	var text bytes.Buffer
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false) // patterns are full of < and >
	if err := encoder.Encode(node); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(text.Bytes(), []byte("\n")), nil
}
