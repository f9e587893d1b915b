// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package compile

import (
	"maps"
	"slices"
	"strings"

	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema"

	"github.com/conversion-operator/conversion-operator/internal/engine/conversion"
)

// suggest returns the field that a misspelled path probably means: a sibling with a similar name,
// or else a field of the same name elsewhere. It returns nil if there is none.
func suggest(root *schema.Structural, path conversion.Path) conversion.Path {
	name := path[len(path)-1]
	var best conversion.Path
	closest := 1 + min(3, len(name)/2)
	elsewhere := 1 << 10
	eachField(root, nil, func(candidate conversion.Path) {
		last := candidate[len(candidate)-1]
		if slices.Equal(candidate[:len(candidate)-1], path[:len(path)-1]) {
			if edits := Distance(strings.ToLower(last), strings.ToLower(name)); edits < closest {
				best, closest, elsewhere = candidate, edits, 0
			}
			return
		}
		if strings.EqualFold(last, name) {
			if edits := Distance(candidate.String(), path.String()); edits < elsewhere {
				best, elsewhere = candidate, edits
			}
		}
	})
	return best
}

// eachField calls found for every named field of a schema.
func eachField(s *schema.Structural, at conversion.Path, found func(conversion.Path)) {
	for _, name := range slices.Sorted(maps.Keys(s.Properties)) {
		if len(at) > 0 || !conversion.IsEnvelope(name) {
			next, property := append(slices.Clip(at), name), s.Properties[name]
			found(next)
			eachField(&property, next, found)
		}
	}
	if elements := elementsOf(s); elements != nil {
		eachField(elements, append(slices.Clip(at), conversion.Each), found)
	}
}

// Distance is the Levenshtein distance: how many bytes to add, remove or replace to turn one text
// into the other.
func Distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			replaced := diagonal
			if a[i] != b[j] {
				replaced++
			}
			diagonal = row[j+1]
			row[j+1] = min(replaced, diagonal+1, row[j]+1)
		}
	}
	return row[len(b)]
}
