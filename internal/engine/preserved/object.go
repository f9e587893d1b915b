// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package preserved

import (
	"maps"
	"slices"
	"strings"

	"github.com/conversion-operator/conversion-operator/internal/engine/conversion"
	"github.com/conversion-operator/conversion-operator/internal/engine/preserve"
)

// Resource is a resource (plural.group) and its versions. It selects the annotations
// that hold its preserved data.
type Resource struct {
	Name     string
	Versions []string
}

// Annotations returns the annotations of an object, nil if it has none.
func Annotations(object any) map[string]string {
	members, _ := object.(map[string]any)
	metadata, _ := members["metadata"].(map[string]any)
	annotations, _ := metadata["annotations"].(map[string]any)
	var all map[string]string
	for name, value := range annotations {
		if text, ok := value.(string); ok {
			if all == nil {
				all = make(map[string]string, len(annotations))
			}
			all[name] = text
		}
	}
	return all
}

// Entries returns what an object preserves of a version.
func (r Resource) Entries(object any, version string) []preserve.Entry {
	all, _ := conversion.Entries(Annotations(object), r.Name, version)
	return all
}

// Size returns the size of the annotations of the versions in an object, in bytes: names
// and values, as the API server counts.
func (r Resource) Size(object any, versions []string) (size int) {
	annotations := Annotations(object)
	for _, version := range versions {
		name := conversion.AnnotationName(r.Name, version)
		if text := annotations[name]; text != "" {
			size += len(name) + len(text)
		}
	}
	return size
}

// Unreadable returns the versions of which an object has an annotation in an unknown format.
func (r Resource) Unreadable(object any) (versions []string) {
	annotations := Annotations(object)
	for _, version := range r.Versions {
		if _, readable := conversion.Entries(annotations, r.Name, version); !readable {
			versions = append(versions, version)
		}
	}
	return versions
}

// Foreign returns the names of an object's annotations that look like preserved data, but
// belong to another resource or to a version that the resource does not have.
func (r Resource) Foreign(object any) (names []string) {
	for _, name := range slices.Sorted(maps.Keys(Annotations(object))) {
		if strings.HasPrefix(name, conversion.PreservedPrefix) && !slices.Contains(r.names(), name) {
			names = append(names, name)
		}
	}
	return names
}

// Without returns an object without its preserved data. It does not change the object.
func (r Resource) Without(object any) any {
	members, _ := object.(map[string]any)
	metadata, _ := members["metadata"].(map[string]any)
	annotations, _ := metadata["annotations"].(map[string]any)
	left := maps.Clone(annotations)
	for _, name := range r.names() {
		delete(left, name)
	}
	if len(left) == len(annotations) {
		return object
	}
	members, metadata = maps.Clone(members), maps.Clone(metadata)
	if metadata["annotations"] = left; len(left) == 0 {
		delete(metadata, "annotations")
	}
	members["metadata"] = metadata
	return members
}

func (r Resource) names() (names []string) {
	for _, version := range r.Versions {
		names = append(names, conversion.AnnotationName(r.Name, version))
	}
	return names
}
