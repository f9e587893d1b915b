// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package verify

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"github.com/conversion-operator/conversion-operator/internal/conversion"
)

// keptPart is a value that an annotation keeps for another version.
type keptPart struct {
	// Path is general.
	Path string
	// Bytes is the size of its value.
	Bytes int
}

// annotationsOf an object, nil where it has none.
func annotationsOf(tree any) map[string]any {
	object, _ := tree.(map[string]any)
	metadata, _ := object["metadata"].(map[string]any)
	annotations, _ := metadata["annotations"].(map[string]any)
	return annotations
}

// keptIn is what the annotations of an object keep for the versions, and the
// size of those annotations in bytes: names and values, as the API server counts.
func keptIn(tree any, versions []string) (parts []keptPart, size int) {
	annotations := annotationsOf(tree)
	for _, version := range versions {
		name := conversion.KeptPrefix + version
		text, _ := annotations[name].(string)
		if text == "" {
			continue
		}
		size += len(name) + len(text)
		values := map[string]json.RawMessage{}
		if json.Unmarshal([]byte(text), &values) != nil {
			continue // somebody else wrote it; it is as good as empty
		}
		for _, pointer := range slices.Sorted(maps.Keys(values)) {
			parts = append(parts, keptPart{pathOf(pointer), len(values[pointer])})
		}
	}
	return parts, size
}

// withoutKept returns an object without the annotations that keep values for
// the versions. They are no data of the version that the object is in, and an
// old one may rightly go.
func withoutKept(tree any, versions []string) any {
	object, _ := tree.(map[string]any)
	annotations := annotationsOf(tree)
	left := maps.Clone(annotations)
	for _, version := range versions {
		delete(left, conversion.KeptPrefix+version)
	}
	if len(left) == len(annotations) {
		return tree
	}
	object = maps.Clone(object)
	metadata := maps.Clone(object["metadata"].(map[string]any))
	if metadata["annotations"] = left; len(left) == 0 {
		delete(metadata, "annotations")
	}
	object["metadata"] = metadata
	return object
}

var pointerNames = strings.NewReplacer("~1", "/", "~0", "~")

// pathOf writes a place in an annotation as a path. Elements of lists are [*].
func pathOf(pointer string) string {
	var path strings.Builder
	for segment := range strings.SplitSeq(strings.TrimPrefix(strings.TrimPrefix(pointer, "!"), "/"), "/") {
		if strings.HasPrefix(segment, "[") || strings.Trim(segment, "0123456789") == "" {
			path.WriteString("[*]")
			continue
		}
		path.WriteString(member(pointerNames.Replace(segment)))
	}
	return path.String()
}
