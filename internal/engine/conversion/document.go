// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package conversion

import (
	"github.com/conversion-operator/conversion-operator/internal/engine/conversion/document"
	"github.com/conversion-operator/conversion-operator/internal/engine/conversion/shape"
)

// documentCast is a Cast of a document.
type documentCast struct {
	*Cast
	// structure is the schema of the value in the document, nil if unknown.
	structure *shape.Schema
}

// convert returns nil if a text has no value of the schema's type. It prunes the value and fills in
// defaults, so that the text can be compared with what the API server makes of the value.
func (c *documentCast) convert(s *step, value *node, toHub bool) *node {
	defer s.meter.untilNow()()
	if toHub == c.Hub {
		return c.write(s, s.bytes(value))
	}
	if !value.isText() {
		return nil
	}
	content, ok := c.read(s, s.decode(value.text))
	if !ok || c.structure != nil && !c.structure.Prune(content) {
		return nil
	}
	if c.structure != nil && s.complete {
		c.structure.FillDefaults(content)
	}
	encoded, ok := document.Encode(content)
	if !ok {
		return nil
	}
	return s.raw(encoded)
}

func (c *documentCast) write(s *step, value []byte) *node {
	if s.spendDocument(len(value)) {
		return nil
	}
	content, ok := document.Decode(value)
	if !ok {
		return nil
	}
	return c.format(s, content)
}

func (c *documentCast) format(s *step, content any) *node {
	text, ok := document.Write(c.Document, content)
	if !ok {
		return nil
	}
	return s.quote(text)
}

// spendDocument counts the work and the memory for a document of that many bytes.
func (s *step) spendDocument(length int) (ended bool) {
	s.meter.take(documentBytes * length)
	return s.spend(documentUnits * length)
}

func (c *documentCast) read(s *step, text []byte) (content any, ok bool) {
	if s.spendDocument(len(text)) {
		return nil, false
	}
	return document.Read(c.Document, text)
}

// patch returns a text with the members of the preserved text that the schema does not declare: the
// other version has no place for them.
func (c *documentCast) patch(s *step, text *node, preserved []byte) *node {
	if c.structure == nil || !isString(preserved) {
		return text
	}
	defer s.meter.untilNow()()
	content, ok := c.read(s, s.decode(text.text))
	known, also := c.read(s, s.decode(preserved))
	if !ok || !also || !c.structure.AddPruned(content, known) {
		return text
	}
	if patched := c.format(s, content); patched != nil {
		return patched
	}
	return text
}
