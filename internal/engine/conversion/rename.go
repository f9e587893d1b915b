// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package conversion

import (
	"slices"

	"github.com/conversion-operator/conversion-operator/internal/engine/tree"
)

// Most elements of lists are objects of which rules only rename fields. They are converted at once, and back without any
// work: the other direction gives what they were made of.

// renames has the fields of objects that have another name in the target version, and "" for those to which more happens.
type renames map[string]string

// name returns the name of a field in the target version, "" if more happens to it.
func (r renames) name(name string) string {
	if other, found := r[name]; found {
		return other
	}
	return name
}

// prepareRenames prepares both directions of a scope.
func prepareRenames(f, back *function) {
	f.back, back.back = back, f
	f.renames, back.renames = renamesOf(f, back), renamesOf(back, f)
}

// renamesOf prepares one direction, nil if something may happen to any object.
func renamesOf(f, back *function) renames {
	for _, one := range []*function{f, back} {
		if one.ofElements || len(one.exchanges)+len(one.derived)+len(one.fills) > 0 {
			return nil
		}
	}
	r := renames{}
	for _, name := range slices.Concat(f.treated(), back.treated()) {
		if name == "" {
			return nil
		}
		r[name] = ""
	}
	for _, m := range f.moves {
		if m.isRename() {
			r[m.to[0]] = ""
		}
	}
	for _, m := range f.moves {
		if m.isRename() {
			r[m.from[0]] = m.to[0]
		}
	}
	return r
}

func (m *move) isRename() bool { return m.each == nil && len(m.from) == 1 && len(m.to) == 1 }

// treated returns the names of the source version's fields to which more happens than that they are renamed, and "" if
// something happens to the whole object.
func (f *function) treated() (names []string) {
	add := func(path []string) {
		if len(path) == 0 {
			names = append(names, "")
		} else {
			names = append(names, path[0])
		}
	}
	for _, path := range slices.Concat(f.drops, f.derivedPaths) {
		add(path)
	}
	for _, m := range f.moves {
		if !m.isRename() {
			add(m.from)
		}
	}
	for _, h := range f.holders {
		if len(h.path) > 0 || h.known != nil {
			add(h.path)
			continue
		}
		for name := range h.fields {
			names = append(names, name)
		}
	}
	return names
}

// rename returns what an object becomes of which fields are only renamed, nil for any other value.
func (f *function) rename(r *conversionRun, value *tree.Node) *tree.Node {
	if f.renames == nil || !value.Is(tree.Object) {
		return nil
	}
	if source := value.RenamedFrom(f.back); source != nil {
		return source
	}
	return r.Rename(value, f, f.renames.name)
}
