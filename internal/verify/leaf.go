// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package verify

import (
	"regexp"
	"slices"

	"github.com/conversion-operator/conversion-operator/internal/conversion/compile"
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
func dropsOf(leaves []Leaf, hub, from, to string) []string {
	var paths []string
	for _, leaf := range leaves {
		ofStart := leaf.Spoke == from && leaf.Version == from
		ofHub := leaf.Spoke == to && leaf.Version == hub
		if leaf.Owner == compile.OwnerDropped && (ofStart || ofHub) && !slices.Contains(paths, leaf.Root) {
			paths = append(paths, leaf.Root)
		}
	}
	return paths
}

// onlyDropped reports whether two objects differ only in dropped fields, and in
// objects that had no other fields.
func onlyDropped(before, after any, paths []string) bool {
	if len(paths) == 0 {
		return false
	}
	var drops [][]string
	for _, path := range paths {
		drops = append(drops, segment.FindAllString(path, -1))
	}
	for _, tidy := range []bool{false, true} {
		left, _ := without(before, drops, tidy)
		right, _ := without(after, drops, false)
		if len(differences(left, right)) == 0 {
			return true
		}
	}
	return false
}

const each = "[*]"

// segment of a path: all elements, a quoted name, or a name.
var segment = regexp.MustCompile(`\[\*\]|\["[^"]+"\]|\.[^.\[]+`)

// without returns a value without the values at the paths, which are relative to
// it; tidy also removes objects that become empty.
func without(tree any, paths [][]string, tidy bool) (left any, there bool) {
	switch tree := tree.(type) {
	case map[string]any:
		members := map[string]any{}
		for name, value := range tree {
			below, dropped := follow(paths, member(name))
			if dropped {
				continue
			}
			if value, there := without(value, below, tidy); there {
				members[name] = value
			}
		}
		return members, !tidy || len(members) > 0 || len(tree) == 0
	case []any:
		elements := make([]any, len(tree))
		for i, element := range tree {
			below, _ := follow(paths, each)
			elements[i], _ = without(element, below, false)
		}
		return elements, true
	}
	return tree, true
}

// follow returns the remaining paths that go through a member or element, and
// whether one of them ends there.
func follow(paths [][]string, through string) (below [][]string, ends bool) {
	for _, path := range paths {
		if path[0] != through && path[0] != each {
			continue
		}
		if len(path) == 1 {
			return nil, true
		}
		below = append(below, path[1:])
	}
	return below, false
}
