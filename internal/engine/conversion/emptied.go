// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package conversion

import (
	"slices"

	"github.com/conversion-operator/conversion-operator/internal/engine/tree"
)

// emptied returns which shared objects have nothing but what rules take out of them.
func (f *function) emptied(value *tree.Node) []bool {
	if len(f.shared) == 0 {
		return nil
	}
	emptied := make([]bool, len(f.shared))
	for i, s := range f.shared {
		emptied[i] = hasOnly(value.At(s.from), s.from, s.outgoing)
	}
	return emptied
}

// isEmptied reports whether a value that moves is a shared object that has nothing any more.
func (f *function) isEmptied(r *conversionRun, value *tree.Node, to []string, emptied []bool) bool {
	if r.keepEmptied || !value.Is(tree.Object) || value.Len() > 0 {
		return false
	}
	i := slices.IndexFunc(f.shared, func(s shared) bool { return slices.Equal(s.to, to) })
	return i >= 0 && emptied[i]
}

// removeEmptied removes the shared objects that have nothing any more.
func (f *function) removeEmptied(r *conversionRun, value *tree.Node, emptied []bool) *tree.Node {
	for i, s := range f.shared {
		if !emptied[i] || r.keepEmptied {
			continue
		}
		if now := value.At(s.to); now.Is(tree.Object) && now.Len() == 0 {
			value = r.WithAt(value, s.to, nil)
		}
	}
	return value
}

// hasOnly reports whether an object at a path is not empty, and has nothing but values at some of the paths.
func hasOnly(object *tree.Node, at Path, paths []Path) bool {
	if !object.Is(tree.Object) || object.Len() == 0 {
		return false
	}
	return !slices.ContainsFunc(object.Members(), func(m tree.Member) bool {
		inner := append(slices.Clip(at), m.Name)
		var below []Path
		for _, path := range paths {
			if slices.Equal(path, inner) {
				return false
			}
			if path.HasPrefix(inner) {
				below = append(below, path)
			}
		}
		return len(below) == 0 || !hasOnly(m.Value, inner, below)
	})
}
