// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package conversion

import (
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/conversion-operator/conversion-operator/internal/conversion/shape"
)

// comesAs reports whether a value is what the field is preserved as: a shell only
// where it has nothing in it, for its fields have owners of their own.
func (l *coming) comesAs(value []byte) bool {
	switch {
	case l.shell:
		return isBare(value)
	case l.null:
		return isNull(value)
	case l.common != nil:
		return !l.common.fits(new(arena), value)
	}
	return true
}

// fits reports whether a value that was preserved is one that the field can have.
// Users can write what is preserved: a label that is no string would make the object
// unreadable, and a value that the schema refuses one that cannot be written. On the
// way through the hub, it is the object at its end that must fit.
func (h *hop) fits(f *slot, value []byte) bool {
	return f.legal(value) && h.fitsShape(f.shape, value)
}

func (h *hop) fitsShape(s *shape.Schema, value []byte) bool {
	if s == nil || h.judged(s).Fits(value) == nil {
		return true
	}
	h.stretched = true
	return h.lenient
}

// judged is the schema that a value must fit. That of a fragment may lack what the
// value as a whole must have.
func (h *hop) judged(s *shape.Schema) *shape.Schema {
	if h.whole {
		return s
	}
	return s.Part()
}

// legal reports whether the API server accepts a value: any as a field, and few
// as labels.
func (s *slot) legal(value []byte) bool {
	switch {
	case s.label:
		return isString(value) && len(validation.IsValidLabelValue(decodeString(value))) == 0
	case s.text:
		return isString(value)
	}
	return true
}

// isBare reports whether a value has nothing in it.
func isBare(value []byte) bool {
	if n, err := parse(value, one); err != nil || n.kind != array {
		return err == nil && n.first == nil
	}
	list, err := parse(value, elements)
	return err == nil && list.first == nil
}
