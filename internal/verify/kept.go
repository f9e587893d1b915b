// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package verify

import (
	"github.com/conversion-operator/conversion-operator/internal/conversion"
	"github.com/conversion-operator/conversion-operator/internal/preserved"
)

// keptPart is a value that an annotation preserves for another version.
type keptPart struct {
	// Path is general.
	Path string
	// Bytes is the size of its value, and 4 for an absent field.
	Bytes int
}

// keptIn returns what the annotations of an object preserve for the versions, and the
// size of those annotations in bytes: names and values, as the API server counts.
func keptIn(tree any, of preserved.Resource, versions []string) (parts []keptPart, size int) {
	const word = 4
	for _, version := range versions {
		for _, e := range of.Entries(tree, version) {
			part := keptPart{preserved.Path(e.Pointer), len(e.Value)}
			if e.Kind == conversion.EntryAbsence {
				part.Bytes = word
			}
			parts = append(parts, part)
		}
	}
	return parts, of.Size(tree, versions)
}
