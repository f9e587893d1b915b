// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package conversion

import (
	"slices"

	"github.com/conversion-operator/conversion-operator/internal/engine/tree"
)

// hintOf returns what the rules of any version look into.
func hintOf(ruleset *Ruleset) *tree.Hint {
	h := &tree.Hint{}
	addHint(h, annotationsPath)
	for i := range ruleset.Spokes {
		addScopeHint([]*tree.Hint{h}, &ruleset.Spokes[i].Root)
	}
	mergeHint(h)
	return h
}

// addHint adds a path, and returns its end.
func addHint(h *tree.Hint, path Path) *tree.Hint {
	for _, name := range path {
		next := h.Members[name]
		if next == nil {
			next = &tree.Hint{}
			if h.Members == nil {
				h.Members = map[string]*tree.Hint{}
			}
			h.Members[name] = next
		}
		h = next
	}
	return h
}

// addParentHint adds the object that has a field.
func addParentHint(h *tree.Hint, path Path) { addHint(h, path[:max(len(path)-1, 0)]) }

// addScopeHint adds what a scope looks into. all are the hints of the scopes around it, and its own.
func addScopeHint(all []*tree.Hint, scope *Scope) {
	h := all[len(all)-1]
	for _, move := range scope.Moves {
		addParentHint(h, move.Spoke)
		addParentHint(h, move.Hub)
	}
	for _, x := range slices.Concat(scope.Exchanges, scope.Derived) {
		for _, f := range slices.Concat(x.Spoke, x.Hub) {
			addParentHint(h, f.Path)
		}
		if x.CEL != nil {
			for _, f := range slices.Concat(x.CEL.SpokeAround, x.CEL.HubAround) {
				addParentHint(all[max(len(all)-1-f.Up, 0)], f.Path)
			}
		}
	}
	for _, path := range slices.Concat(scope.DropSpoke, scope.DropHub) {
		addParentHint(h, path)
	}
	for _, d := range scope.Defaults {
		addParentHint(h, d.Path)
	}
	for _, leaf := range slices.Concat(scope.OnlySpoke, scope.OnlyHub) {
		addParentHint(h, leaf.Path)
		if leaf.Shell || leaf.Known != nil {
			addHint(h, leaf.Path)
		}
	}
	for i := range scope.Shared {
		addHint(h, scope.Shared[i].Spoke)
		addHint(h, scope.Shared[i].Hub)
	}
	for i := range scope.Collections {
		addCollectionHint(all, &scope.Collections[i])
	}
}

func addCollectionHint(all []*tree.Hint, c *Collection) {
	for _, ofHub := range []bool{false, true} {
		opened := addHint(all[len(all)-1], c.At(ofHub))
		if c.Form(ofHub) == FormOne {
			addScopeHint(append(slices.Clip(all), opened), &c.Scope)
			continue
		}
		if opened.Each == nil {
			opened.Each = &tree.Hint{}
		}
		addScopeHint(append(slices.Clip(all), opened.Each), &c.Scope)
		for _, x := range []*Exclusion{c.ExcludeSpoke, c.ExcludeHub} {
			if x != nil {
				addParentHint(opened.Each, x.Without)
			}
		}
	}
}

// mergeHint makes the hint of one member of a map include that of all members: another rule, or another spoke, may name
// the member.
func mergeHint(h *tree.Hint) {
	for _, member := range h.Members {
		if h.Each != nil {
			joinHint(member, h.Each)
		}
		mergeHint(member)
	}
	if h.Each != nil {
		mergeHint(h.Each)
	}
}

func joinHint(h, other *tree.Hint) {
	for name, member := range other.Members {
		joinHint(addHint(h, Path{name}), member)
	}
	if other.Each != nil {
		if h.Each == nil {
			h.Each = &tree.Hint{}
		}
		joinHint(h.Each, other.Each)
	}
}
