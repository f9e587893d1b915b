// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package reference

import (
	"github.com/conversion-operator/conversion-operator/internal/conversion/document"
	"github.com/conversion-operator/conversion-operator/internal/conversion/shape"
)

// textOf is a document in a format, with a value of a schema, which may be nil. The texts are read and
// written by package document, and pruned by package shape; they are not part of the law.
type textOf struct {
	format string
	schema *shape.Schema
	// isWhole is false for fragments, which get no defaults.
	isWhole bool
}

func documentOf(e *exchange, isWhole bool) textOf {
	structure := e.Hub[0].schema
	if e.Cast.Hub {
		structure = e.Spoke[0].schema
	}
	return textOf{e.Cast.Document, structure, isWhole}
}

// print writes a value as a text.
func (d textOf) print(value any) any {
	content, ok := document.Decode([]byte(marshal(value)))
	if !ok {
		return none
	}
	return d.text(content)
}

func (d textOf) text(content any) any {
	text, ok := document.Write(d.format, content)
	if !ok {
		return none
	}
	return string(text)
}

// read returns the value in a text, without what the API server prunes, and with its defaults.
func (d textOf) read(value any) any {
	text, isText := value.(string)
	if !isText {
		return none
	}
	content, ok := document.Read(d.format, []byte(text))
	if !ok || d.schema != nil && !d.schema.Prune(content) {
		return none
	}
	if d.schema != nil && d.isWhole {
		d.schema.FillDefaults(content)
	}
	encoded, ok := document.Encode(content)
	if !ok {
		return none
	}
	read, err := Decode(encoded)
	if err != nil {
		return none
	}
	return read
}

// patch adds to a text what the schema prunes of a preserved text.
func (d textOf) patch(value, preserved any) any {
	text, isText := value.(string)
	known, isKnown := preserved.(string)
	if !isText || !isKnown || d.schema == nil {
		return value
	}
	content, ok := document.Read(d.format, []byte(text))
	other, also := document.Read(d.format, []byte(known))
	if !ok || !also || !d.schema.AddPruned(content, other) {
		return value
	}
	if patched := d.text(content); patched != none {
		return patched
	}
	return value
}
