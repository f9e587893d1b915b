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
		f.unread.Add(m.from, Each)
		f.knowText(m.from)
	}
	for i, x := range f.exchanges {
		for j := range x.from {
			if x.isShared(j) {
				continue
			}
			f.knowText(x.from[j].Path)
			f.together.Add(x.from[j].Path, Each).Group = i + 1
			f.unread.Add(x.from[j].Path, Each).Whole = !x.reads(j)
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

// readShared notes the fields that expressions read beside those that are for the rule, of the scope or in a scope in it.
func (f *function) readShared() {
	for _, c := range f.collections {
		for _, field := range c.inner.around {
			if field.Up == 1 {
				f.unread.Remove(field.Path, Each)
			}
		}
	}
	for _, x := range f.exchanges {
		for j := range x.from {
			if x.isShared(j) && x.reads(j) {
				f.unread.Remove(x.from[j].Path, Each)
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
