// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package conversion

import (
	"slices"

	"github.com/conversion-operator/conversion-operator/internal/engine/preserve"
)

// describe says what a function reads, in the paths of its source version.
func (s *Scope) describe(f *function) {
	ofSpoke := f.toHub
	for _, path := range slices.Concat(f.drops, f.derivedPaths) {
		f.dropped.Add(path, Each).Whole = true
		f.unread.Add(path, Each).Whole = true
	}
	only, _ := ends(ofSpoke, s.OnlySpoke, s.OnlyHub)
	for i := range only {
		leaf := &only[i]
		f.knowText(leaf.Path)
		switch at := leaf.Path; {
		case leaf.Known != nil:
			holder := f.unread.Add(at, Each)
			holder.Others = &preserve.Paths{Whole: true}
			for _, name := range leaf.Known {
				holder.Add([]string{name}, Each)
			}
		case leaf.Shell:
			f.unread.Add(at, Each).Bare = true
		case !leaf.Null && leaf.Common == nil:
			f.unread.Add(at, Each).Whole = true
		}
	}
	for _, d := range f.fills {
		if d.atSource {
			f.unread.Add(d.Path, Each).Whole = true
		}
	}
	for _, m := range f.moves {
		f.read(m.from)
		f.knowText(m.from)
	}
	for i, x := range f.exchanges {
		for j := range x.from {
			if x.isShared(j) {
				continue
			}
			f.knowText(x.from[j].Path)
			f.together.Add(ofAll(x.from[j].Path), Each).Group = i + 1
			if x.reads(j) {
				f.read(x.from[j].Path)
			} else {
				f.unread.Add(ofAll(x.from[j].Path), Each).Whole = true
			}
		}
	}
	for _, c := range f.collections {
		if c.form == FormList && c.Key != "" {
			f.known.Add(c.from, Each).Keys = []string{c.Key}
		}
		at := c.Inside(!f.toHub, nil)
		f.unread.Join(at, Each, c.inner.unread)
		f.dropped.Join(at, Each, c.inner.dropped)
		f.together.Join(at, Each, c.inner.together)
		f.known.Join(at, Each, c.inner.known)
	}
	f.readShared()
}

// read notes that a rule reads a field. If that is in one element of a list, other rules may have noted that nothing reads the
// list.
func (f *function) read(path Path) {
	selected := slices.IndexFunc(path, IsSelector)
	if selected < 0 {
		f.unread.Add(path, Each)
		return
	}
	f.unread.Remove(ofAll(path), Each)
	f.known.Add(ofAll(path[:selected]), Each).Selected = true
}

// ofAll returns a path with all elements in the place of each one that is selected.
func ofAll(path Path) Path {
	all := slices.Clone(path)
	for i, segment := range all {
		if IsSelector(segment) {
			all[i] = Each
		}
	}
	return all
}

// readShared notes the fields that expressions read beside those that are for the rule, of the scope or in a scope in it.
func (f *function) readShared() {
	for _, c := range f.collections {
		for _, field := range c.inner.around {
			if field.Up == 1 {
				f.unread.Remove(ofAll(field.Path), Each)
			}
		}
	}
	for _, x := range f.exchanges {
		for j := range x.from {
			if x.isShared(j) && x.reads(j) {
				f.unread.Remove(ofAll(x.from[j].Path), Each)
			}
		}
	}
}

// knowText notes that a rule knows a label or an annotation.
func (f *function) knowText(path Path) {
	if len(path) > 0 && path[0] == "metadata" {
		f.known.Add(path, Each).Text = true
	}
}
