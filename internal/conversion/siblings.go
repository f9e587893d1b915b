// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package conversion

import "slices"

// adopt takes the entries of fields that the version to which a hop leads has in
// common with others from their annotations. Its own count more.
func (c *Converter) adopt(h *hop, metadata *node, w *way, arriving *preserved) error {
	annotations := metadata.get(&nameAnnotations)
	if annotations == nil {
		return nil
	}
	own := arriving.entries
	for _, name := range w.siblings {
		sibling := c.version(name)
		if sibling == nil || !c.holds(h, annotations, sibling, func(e entry) bool { return e.kind == aValue && w.shares(e.pointer, name) }) {
			continue
		}
		other := h.take(metadata, sibling, nil)
		rest := other.entries[:0:0]
		for _, e := range other.entries {
			switch {
			case e.kind != aValue || !w.shares(e.pointer, name):
				rest = append(rest, e)
			case own.find(e.pointer, e.kind) == nil:
				arriving.entries = append(arriving.entries, e)
			}
		}
		if err := h.write(metadata, sibling, preserved{rest, other.unreadable}); err != nil {
			return err
		}
	}
	arriving.entries = arriving.sorted()
	return nil
}

// supersede takes from the annotations of others the fields that the version that a hop
// leaves has in common with them, where it had a value of its own.
func (c *Converter) supersede(h *hop, metadata *node, w *way) error {
	annotations := metadata.get(&nameAnnotations)
	if annotations == nil || len(h.keep) == 0 {
		return nil
	}
	for _, name := range w.back.siblings {
		sibling := c.version(name)
		if sibling == nil || !c.holds(h, annotations, sibling, func(e entry) bool { return h.isLive(w.back, &e, name) }) {
			continue
		}
		other := h.take(metadata, sibling, nil)
		other.entries = slices.DeleteFunc(other.entries, func(e entry) bool {
			return h.isLive(w.back, &e, name)
		})
		if err := h.write(metadata, sibling, other); err != nil {
			return err
		}
	}
	return nil
}

// isLive reports whether an entry of a sibling is of a field of which this conversion
// has preserved a value.
func (h *hop) isLive(back *way, e *entry, sibling string) bool {
	return e.kind == aValue && back.shares(e.pointer, sibling) && h.keep.find(e.pointer, aValue) != nil
}

// holds reports whether the annotations of a sibling hold one of some entries. If they
// do not, they stay as they were written.
func (c *Converter) holds(h *hop, annotations *node, sibling *version, one func(entry) bool) bool {
	if annotations.get(&sibling.annotation) == nil && annotations.get(&sibling.legacy) == nil {
		return false
	}
	other := h.peek(annotations, sibling)
	return slices.ContainsFunc(other.entries, one)
}

// shares reports whether an entry is of a field that a sibling has, too.
func (w *way) shares(pointer []byte, sibling string) bool {
	for scope, rest := range w.scopesOf(pointer) {
		for i := range scope.coming {
			if scope.coming[i].pointer == string(rest) && slices.Contains(scope.coming[i].siblings, sibling) {
				return true
			}
		}
	}
	return false
}
