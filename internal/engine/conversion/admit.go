// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package conversion

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"strconv"
	"strings"
)

var (
	nameDeletion   = newName("deletionTimestamp")
	nameFinalizers = newName("finalizers")
)

// Admit returns an error if an object must not be stored: it is a truncated form, or it could only
// be converted to another version as a truncated form. Objects of versions that the ruleset does
// not know are admitted, because a converter never truncates them.
func (c *Converter) Admit(text []byte, stop func(memory int64) bool) error {
	from, err := c.stored(text, stop)
	if err != nil || from == nil {
		return err
	}
	return c.convertible(text, from, stop)
}

// stored returns the version of an object, nil if it may be stored whatever it has, and an error if it is a
// truncated form.
func (c *Converter) stored(text []byte, stop func(memory int64) bool) (*version, error) {
	s := stepPool.Get().(*step)
	defer s.release()
	s.start(stop)
	root, from, err := c.parseWhole(s, text)
	switch {
	case CauseOf(err) == CauseUnknownVersion:
		return nil, nil
	case err != nil:
		return nil, err
	}
	if metadata := root.get(&nameMetadata); metadata != nil && metadata.get(&nameDeletion) != nil && !isHeld(metadata) {
		return nil, nil // the deletion finishes: the last finalizer is gone
	}
	return from, cmp.Or(c.refuseMarked(s, root, from), s.meter.err)
}

// AdmitDeletion returns an error if an object must not be deleted at a version: it is a truncated
// form there, and the deletion would store it, with a deletion timestamp, until finalizers are
// gone. waits is true if the deletion itself adds a finalizer.
func (c *Converter) AdmitDeletion(text []byte, waits bool, stop func(memory int64) bool) error {
	s := stepPool.Get().(*step)
	defer s.release()
	s.start(stop)
	root, from, err := c.parseWhole(s, text)
	if err != nil {
		return s.meter.err // otherwise, an unreadable object may be deleted
	}
	if metadata := root.get(&nameMetadata); !waits && !isHeld(metadata) {
		return nil
	}
	return c.refuseTruncated(s, root, from)
}

// OmittedIn returns what was omitted from a truncated form, nil if nothing was or if that is
// unknown. Any converter with the same key may have truncated the object.
func (c *Converter) OmittedIn(text []byte) *Omitted {
	s := stepPool.Get().(*step)
	defer s.release()
	s.start(nil)
	root, from, err := c.parseWhole(s, text)
	if err != nil {
		return nil
	}
	if truncated, is := errors.AsType[*TruncatedError](c.refuseTruncated(s, root, from)); is {
		return truncated.Omitted
	}
	return nil
}

// OmittedBy is OmittedIn for the version and the annotations of an object.
func (c *Converter) OmittedBy(version string, annotations map[string]string) *Omitted {
	text, err := json.Marshal(map[string]any{
		"apiVersion": c.ruleset.Group + "/" + version, "kind": c.ruleset.Kind, "metadata": map[string]any{"annotations": annotations},
	})
	if err != nil {
		return nil // cannot happen: annotations are strings
	}
	return c.OmittedIn(text)
}

// parseWhole parses a text that consists of one object of the kind.
func (c *Converter) parseWhole(s *step, text []byte) (*node, *version, error) {
	root, end, err := s.parseFirst(text, c.projection)
	if err != nil {
		return nil, nil, err
	}
	if err := onlySpace(text, end); err != nil {
		return nil, nil, err
	}
	from, err := c.versionOf(root)
	return root, from, err
}

// isHeld reports whether an object has finalizers.
func isHeld(metadata *node) bool {
	if metadata == nil {
		return false
	}
	finalizers := metadata.get(&nameFinalizers)
	return finalizers != nil && !isNull(finalizers.text) && !bytes.Equal(bytes.Join(bytes.Fields(finalizers.text), nil), []byte("[]"))
}

// convertible returns an error if the object has no complete form in one of the other versions.
func (c *Converter) convertible(text []byte, from *version, stop func(memory int64) bool) error {
	var buffer []byte
	for _, to := range c.versions {
		if to == from {
			continue
		}
		out, outcome, err := c.convert(buffer[:0], text, to.name, stop, true)
		switch {
		case err != nil:
			return err
		case outcome.Omitted != nil:
			return &TooLargeError{outcome.Omitted}
		}
		buffer = out
	}
	return nil
}

// refuseMarked refuses an object if an annotation of the resource marks it as a truncated form, no
// matter who wrote it.
func (c *Converter) refuseMarked(s *step, root *node, from *version) error {
	annotations := root.find(annotationsPath)
	if annotations == nil {
		return nil
	}
	for m := annotations.first; m != nil; m = m.next {
		if !m.isText() || !c.isOurs(m.decodedName()) {
			continue
		}
		signed := len(from.token) > 0 && bytes.Contains(m.text, from.token)
		if signed || s.formatted(s.decode(m.text)).get(&nameOmitted) != nil {
			return c.truncatedError(s, m, from)
		}
	}
	return nil
}

// isOurs reports whether the annotation belongs to the resource. It misses shortened names of
// versions that the ruleset does not have.
func (c *Converter) isOurs(annotation string) bool {
	if !strings.HasPrefix(annotation, PreservedPrefix) {
		return false
	}
	for _, v := range c.versions {
		if v.annotation.text == annotation {
			return true
		}
	}
	return strings.HasSuffix(annotation, "."+c.ruleset.CRD)
}

// truncatedError reads the marker of a truncated form.
func (c *Converter) truncatedError(s *step, annotation *node, at *version) error {
	refused := &TruncatedError{Annotation: annotation.decodedName()}
	var owner *version
	for _, v := range c.versions {
		if v.annotation.text == refused.Annotation {
			owner = v
		}
	}
	marker := s.formatted(s.decode(annotation.text)).get(&nameOmitted)
	if owner == nil || marker == nil || !marker.isObject() {
		return refused
	}
	size, err := strconv.Atoi(string(valueOf(marker.get(&nameBytes))))
	count, bad := strconv.Atoi(string(valueOf(marker.get(&nameCount))))
	fields := marker.get(&nameFields)
	if err != nil || bad != nil || fields == nil {
		return refused
	}
	refused.Omitted = &Omitted{Version: owner.name, At: at.name, Count: count, Bytes: size}
	places, err := s.parse(fields.text, openElements)
	if err != nil || places.kind != array {
		return refused
	}
	for m := places.first; m != nil && len(refused.Fields) < maxDropped; m = m.next {
		if m.isText() {
			refused.Fields = append(refused.Fields, owner.pathOf(s.decode(m.text)))
		}
	}
	return refused
}

// valueOf returns the text of a value, nil for nil.
func valueOf(n *node) []byte {
	if n == nil {
		return nil
	}
	return n.text
}
