// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"maps"
	"slices"
	"strings"

	"github.com/conversion-operator/conversion-operator/internal/conversion"
	"github.com/conversion-operator/conversion-operator/internal/conversion/compile"
)

// leaf is a field of one version, and what becomes of it in the other one.
type leaf struct {
	compile.FieldVerdict
	path path
}

// leaves are those of one version.
type leaves []leaf

// leavesOf are those of a version that a spoke's conversion is about.
func leavesOf(all []compile.FieldVerdict, spoke, version string) leaves {
	var found leaves
	for _, verdict := range all {
		if verdict.Spoke == spoke && verdict.Version == version {
			found = append(found, leaf{verdict, parse(verdict.Path)})
		}
	}
	return found
}

// of returns the leaf field that contains a field: the one that names most of it. It is
// nil where there is none.
func (l leaves) of(p path) *leaf {
	var best *leaf
	for i := range l {
		if p.begins(l[i].path) && (best == nil || len(l[i].path) > len(best.path) ||
			len(l[i].path) == len(best.path) && l[i].path.names() > best.path.names()) {
			best = &l[i]
		}
	}
	return best
}

// about returns the leaf field that contains a field, or where the field is above leaves,
// one that a rule has as a whole with it.
func (l leaves) about(p path) *leaf {
	if leaf := l.of(p); leaf != nil {
		return leaf
	}
	i := slices.IndexFunc(l, func(leaf leaf) bool { return leaf.Rule != "" && slices.Equal(parse(leaf.Root), p) })
	if i < 0 {
		return nil
	}
	return &l[i]
}

// below reports whether there are leaves below a field.
func (l leaves) below(p path) bool {
	return slices.ContainsFunc(l, func(leaf leaf) bool { return len(leaf.path) > len(p) && leaf.path.begins(p) })
}

// has reports whether a version has a field.
func (l leaves) has(p path) bool {
	return slices.ContainsFunc(l, func(leaf leaf) bool { return leaf.path.begins(p) || p.begins(leaf.path) })
}

// found is a field of an object, with its leaf field if it has one.
type found struct {
	path  path
	value any
	leaf  *leaf
}

// fieldsOf are the fields of an object: what its version's leaves are, and the
// scalars and empty objects between them.
func (l leaves) fieldsOf(tree any) []found {
	var all []found
	l.walk(tree, nil, func(field found) { all = append(all, field) })
	return all
}

func (l leaves) walk(value any, at path, visit func(found)) {
	if len(at) == 0 || l.below(at) {
		switch node := value.(type) {
		case map[string]any:
			for _, name := range slices.Sorted(maps.Keys(node)) {
				if next := at.down(name); !l.isEnvelope(next) {
					l.walk(node[name], next, visit)
				}
			}
			if len(node) > 0 || len(at) == 0 {
				return
			}
		case []any:
			for i, value := range node {
				l.walk(value, at.down(element(i)), visit)
			}
			if len(node) > 0 {
				return
			}
		}
	}
	visit(found{at, value, l.of(at)})
}

// isEnvelope tells what is the API server's from what rules may name.
func (l leaves) isEnvelope(at path) bool {
	switch at[0] {
	case "apiVersion", "kind":
		return true
	case "metadata":
		kept := len(at) > 2 && at[1] == "annotations" && strings.HasPrefix(at[2], conversion.PreservedPrefix)
		return kept || !l.has(at)
	}
	return false
}
