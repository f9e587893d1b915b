// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package conversion

import (
	"bytes"
	"encoding/json"
	"errors"
	"strconv"
	"strings"
)

var (
	nameDeletion   = newName("deletionTimestamp")
	nameFinalizers = newName("finalizers")
)

// Admit says why an object must not be stored, and nil if it may: it is a truncated
// form, or it could not be converted as a whole to another version. One of a version
// that the ruleset does not know is no matter of the ruleset: no form of it comes from here.
func (c *Converter) Admit(text []byte, stop func() bool) error {
	h := stepPool.Get().(*step)
	defer h.release()
	h.start(stop)
	root, from, err := c.parseWhole(h, text)
	switch {
	case CauseOf(err) == CauseUnknownVersion:
		return nil
	case err != nil:
		return err
	}
	if metadata := root.get(&nameMetadata); metadata != nil && metadata.get(&nameDeletion) != nil && !isHeld(metadata) {
		return nil // it was to be deleted, and the last of its finalizers is gone
	}
	if err := c.refuseMarked(h, root, from); err != nil {
		return err
	}
	return c.convertible(text, from, stop)
}

// AdmitDeletion says why an object must not be deleted at a version: it is a truncated
// form there, and it would be stored, with a deletion timestamp, until finalizers are
// gone. Waits tells that the deletion itself adds one.
func (c *Converter) AdmitDeletion(text []byte, waits bool) error {
	h := stepPool.Get().(*step)
	defer h.release()
	h.start(nil)
	root, from, err := c.parseWhole(h, text)
	if err != nil {
		return nil // what cannot be read can be deleted
	}
	if metadata := root.get(&nameMetadata); !waits && !isHeld(metadata) {
		return nil
	}
	return c.refuseTruncated(h, root, from)
}

// OmittedIn says what an object lacks that this or another converter with the same key
// has truncated, nil where that is nothing, or where it cannot be told.
func (c *Converter) OmittedIn(text []byte) *Omitted {
	h := stepPool.Get().(*step)
	defer h.release()
	h.start(nil)
	root, from, err := c.parseWhole(h, text)
	if err != nil {
		return nil
	}
	if truncated, is := errors.AsType[*TruncatedError](c.refuseTruncated(h, root, from)); is {
		return truncated.Omitted
	}
	return nil
}

// OmittedBy is OmittedIn for an object of which a version and annotations are known.
func (c *Converter) OmittedBy(version string, annotations map[string]string) *Omitted {
	text, err := json.Marshal(map[string]any{
		"apiVersion": c.ruleset.Group + "/" + version, "kind": c.ruleset.Kind, "metadata": map[string]any{"annotations": annotations},
	})
	if err != nil {
		return nil // cannot be: annotations are texts
	}
	return c.OmittedIn(text)
}

// parseWhole parses a text that is one object of the kind.
func (c *Converter) parseWhole(h *step, text []byte) (*node, *version, error) {
	root, end, err := h.parseFirst(text, c.look)
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

// convertible says why an object has no whole form at one of the other versions.
func (c *Converter) convertible(text []byte, from *version, stop func() bool) error {
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

// refuseMarked refuses an object in which an annotation of the resource says that it
// is a truncated form, no matter who has written that.
func (c *Converter) refuseMarked(h *step, root *node, from *version) error {
	annotations := root.find(annotationsPath)
	if annotations == nil {
		return nil
	}
	for m := annotations.first; m != nil; m = m.next {
		if !m.isText() || !c.isOurs(m.label()) {
			continue
		}
		signed := len(from.token) > 0 && bytes.Contains(m.text, from.token)
		if signed || h.format2(h.decode(m.text)).get(&nameOmitted) != nil {
			return c.shortenedError(h, m, from)
		}
	}
	return nil
}

// isOurs tells the annotations of the resource from those of other kinds. One of a
// version that the ruleset does not have, and whose name is cut, is not recognised.
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

// shortenedError reads the marker of a truncated form.
func (c *Converter) shortenedError(h *step, annotation *node, at *version) error {
	refused := &TruncatedError{Annotation: annotation.label()}
	var owner *version
	for _, v := range c.versions {
		if v.annotation.text == refused.Annotation {
			owner = v
		}
	}
	marker := h.format2(h.decode(annotation.text)).get(&nameOmitted)
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
	places, err := h.parse(fields.text, elements)
	if err != nil || places.kind != array {
		return refused
	}
	for m := places.first; m != nil && len(refused.Fields) < maxDropped; m = m.next {
		if m.isText() {
			refused.Fields = append(refused.Fields, owner.pathOf(h.decode(m.text)))
		}
	}
	return refused
}

// valueOf is the text of a value, nothing where there is none.
func valueOf(n *node) []byte {
	if n == nil {
		return nil
	}
	return n.text
}
