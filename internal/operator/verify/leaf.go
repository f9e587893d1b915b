// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package verify

import (
	"slices"

	"github.com/conversion-operator/conversion-operator/internal/engine/conversion"
	"github.com/conversion-operator/conversion-operator/internal/engine/conversion/compile"
)

// Leaf is a leaf field, and what happens to it between a spoke and the hub. Objects
// are not leaf fields, but their fields are.
type Leaf struct {
	// Spoke is the version that is converted to and from the hub.
	Spoke string `json:"spoke"`
	// Version has the field: the spoke, or the hub.
	Version string `json:"version"`
	// Path has the format of a policy.
	Path string `json:"path"`
	// Owner says where the value is while the object is in the other version.
	Owner compile.Owner `json:"owner"`
	// Rule is the position of the policy's rule for the field, if it has one.
	Rule string `json:"rule,omitempty"`
	// Root is this field or one above it: the one that the rule or the annotation
	// covers as a whole, if there is one.
	Root string `json:"root,omitempty"`
}

func leavesOf(result compile.Result) []Leaf {
	leaves := make([]Leaf, 0, len(result.Leaves))
	for _, leaf := range result.Leaves {
		leaves = append(leaves, Leaf{leaf.Spoke, leaf.Version, leaf.Path, leaf.Owner, leaf.Rule, leaf.Root})
	}
	return leaves
}

// dropsOf returns the paths that a drop rule may remove from an object of a version
// in a round trip to another one.
func dropsOf(leaves []Leaf, hub, from, to string) []conversion.Path {
	var roots []string
	for _, leaf := range leaves {
		ofStart := leaf.Spoke == from && leaf.Version == from
		ofHub := leaf.Spoke == to && leaf.Version == hub
		if leaf.Owner == compile.OwnerDropped && (ofStart || ofHub) && !slices.Contains(roots, leaf.Root) {
			roots = append(roots, leaf.Root)
		}
	}
	drops := make([]conversion.Path, len(roots))
	for i, root := range roots {
		drops[i], _ = conversion.ParsePath(root) // the compiler has written it
	}
	return drops
}

// onlyDropped reports whether two objects differ only in dropped fields, and in
// objects that had no other fields.
func onlyDropped(before, after any, drops []conversion.Path) bool {
	if len(drops) == 0 {
		return false
	}
	for _, removeEmpty := range []bool{false, true} {
		left, _ := without(before, drops, removeEmpty)
		right, _ := without(after, drops, false)
		if len(Differences(left, right)) == 0 {
			return true
		}
	}
	return false
}

// without returns a value without the values at the paths, which are relative to
// it; removeEmpty also removes objects that become empty.
func without(tree any, paths []conversion.Path, removeEmpty bool) (left any, ok bool) {
	switch tree := tree.(type) {
	case map[string]any:
		members := map[string]any{}
		for name, value := range tree {
			below, dropped := descend(paths, name)
			if dropped {
				continue
			}
			if value, ok := without(value, below, removeEmpty); ok {
				members[name] = value
			}
		}
		return members, !removeEmpty || len(members) > 0 || len(tree) == 0
	case []any:
		elements := make([]any, len(tree))
		for i, element := range tree {
			below, _ := descend(paths, conversion.Each)
			elements[i], _ = without(element, below, false)
		}
		return elements, true
	}
	return tree, true
}

// descend returns the remaining paths that go through a member or element, and
// whether one of them ends there.
func descend(paths []conversion.Path, through string) (below []conversion.Path, ends bool) {
	for _, path := range paths {
		if path[0] != through && path[0] != conversion.Each {
			continue
		}
		if len(path) == 1 {
			return nil, true
		}
		below = append(below, path[1:])
	}
	return below, false
}
