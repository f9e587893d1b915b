// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package conversion

import (
	"slices"

	"github.com/conversion-operator/conversion-operator/internal/engine/tree"
)

// Most objects, and most elements of lists, come back from the other version as they were, but for what only the source
// version has. A function notes of what it makes of such a value what the other direction makes of it again, so that the way
// back needs no work, and what is lost is found by looking at what was removed.
//
// It is known of a scope that no field has to do with two rules (isReversible), and that each of its objects keeps what rules
// set in it apart from what was there (target.isApart). It is seen of a value that each computed value gives the values back that
// it was computed from (restores), that nothing was in the place of a field that a rule sets, and that the target version has
// all other fields. Then the other direction takes out what this one has set, and sets what this one has taken out.

// prepareReverse prepares both directions of a scope.
func prepareReverse(f, back *function) {
	f.back, back.back = back, f
	isReversible := f.isReversible() && back.isReversible()
	for _, one := range []*function{f, back} {
		isReversible = isReversible && one.setFirm()
	}
	f.reversible, back.reversible = isReversible, isReversible
}

// isReversible reports whether nothing happens to an object but that fields are moved, computed from each other, or removed,
// and to each field only one of these.
func (f *function) isReversible() bool {
	if f.ofElements || len(f.derived)+len(f.derivedPaths)+len(f.fills)+len(f.drops)+len(f.shared) > 0 {
		return false
	}
	var from, to [][]string
	for _, x := range f.exchanges {
		if x.CEL != nil || x.Cast != nil && x.Cast.Document != "" {
			return false
		}
		for _, field := range x.from {
			from = append(from, field.Path)
		}
		for _, field := range x.to {
			to = append(to, field.Path)
		}
	}
	for _, m := range f.moves {
		if m.each != nil && !m.each.isReversible() {
			return false
		}
		from, to = append(from, m.from), append(to, m.to)
	}
	return areApart(from, from, false) && areApart(to, to, false) && areApart(from, to, true) && f.removesOthers(from)
}

// isReversible reports whether all elements of a collection are for the other version, in the same order.
func (c *each) isReversible() bool {
	isSorted := c.form != c.otherForm && (c.form == FormMap || c.otherForm == FormMap)
	return c.common == nil && c.exclusion == nil && c.targetExclusion == nil && !isSorted
}

// areApart reports whether no path is in another one, or is one of metadata or of selected elements. Equal ones may be allowed.
func areApart(paths, others [][]string, equal bool) bool {
	for i, path := range paths {
		if len(path) == 0 || path[0] == "metadata" || slices.ContainsFunc(path, IsSelector) {
			return false
		}
		for j, other := range others {
			isSame := equal && slices.Equal(path, other) || !equal && i == j
			if !isSame && (Path(path).HasPrefix(other) || Path(other).HasPrefix(path)) {
				return false
			}
		}
	}
	return true
}

// removesOthers reports whether a function removes none of the fields that rules take, nor what is in them.
func (f *function) removesOthers(taken [][]string) bool {
	for _, h := range f.holders {
		if h.known != nil || slices.ContainsFunc(h.path, IsSelector) {
			return false
		}
		for name, leaf := range h.fields {
			removed := Path(append(slices.Clip(h.path), name))
			for _, path := range taken {
				if removed.HasPrefix(path) || Path(path).HasPrefix(removed) && !leaf.Shell {
					return false
				}
			}
		}
	}
	return true
}

// setFirm notes of each object with fields that rules set how much of its path both versions have. It returns false if
// an object in one that only one version has is in both versions again.
func (f *function) setFirm() bool {
	for i := range f.targets {
		t := &f.targets[i]
		t.firm = len(t.path)
		for t.firm > 0 && f.back.isShell(t.path[:t.firm]) {
			t.firm--
		}
		for length := 1; length <= t.firm; length++ {
			if f.isShell(t.path[:length]) || f.back.isShell(t.path[:length]) {
				return false
			}
		}
	}
	return true
}

// isShell reports whether a path is that of an object that only the source version has.
func (f *function) isShell(path []string) bool {
	last := len(path) - 1
	return slices.ContainsFunc(f.holders, func(h *sidedObject) bool {
		return h.fields[path[last]] != nil && h.fields[path[last]].Shell && slices.Equal(h.path, path[:last])
	})
}

// isApart reports whether the object with fields that rules have set in a value is in both versions, or exists for these alone.
func (t *target) isApart(made, source *tree.Node) bool {
	return made.At(t.path) == nil ||
		source.At(t.path[:t.firm]).Is(tree.Object) && (t.firm == len(t.path) || source.At(t.path[:t.firm+1]) == nil)
}

// restores reports whether the other direction of an exchange makes the values again of their images.
func (r *conversionRun) restores(x *exchange, images, values []*tree.Node) bool {
	if !slices.ContainsFunc(images, func(image *tree.Node) bool { return image != nil }) {
		return false
	}
	again := r.images(x.back, images)
	for i, value := range values {
		if i >= len(again) || !r.Equal(again[i], value) || value != nil && !x.back.takes(i, value) {
			return false
		}
	}
	return true
}

// noteBack notes what the other direction makes of a value, which was made of another one, if that is known. It returns
// whether that is the same.
func (f *function) noteBack(r *conversionRun, made, whole *tree.Node, removes bool) (isSame bool) {
	if slices.ContainsFunc(f.back.holders, func(h *sidedObject) bool { return h.removesOf(made) }) {
		return false
	}
	again := whole
	for i := 0; removes && i < len(f.holders); i++ {
		if h := f.holders[i]; h.removesOf(again) {
			again = h.remove(r, again)
		}
	}
	if slices.ContainsFunc(f.targets, func(t target) bool { return !t.isApart(made, again) }) {
		return false
	}
	r.NoteBack(made, again, f)
	return again == whole
}
