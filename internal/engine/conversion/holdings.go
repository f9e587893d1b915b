// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package conversion

import (
	"cmp"
	"slices"
	"strings"
)

const (
	// maxCounted limits the number of fields of a version that are counted: objects can invent any
	// number of them.
	maxCounted = 100
	// maxPath limits the length of a path, in bytes.
	maxPath = 256
)

// Holdings summarise the preserved data of objects.
type Holdings struct {
	// Seen is the number of objects that were read; Objects of them hold preserved data.
	Seen    int64 `json:"seen"`
	Objects int64 `json:"objects"`
	// Bytes is the total size of the annotations' values.
	Bytes int64 `json:"bytes"`
	// Largest is the object with the most preserved data, LargestBytes its size.
	Largest      string `json:"largest,omitempty"`
	LargestBytes int64  `json:"largestBytes,omitempty"`
	// Versions are sorted by name.
	Versions []VersionHoldings `json:"versions,omitempty"`
}

// VersionHoldings summarise the preserved data of one version.
type VersionHoldings struct {
	Version string `json:"version"`
	Objects int64  `json:"objects"`
	Bytes   int64  `json:"bytes"`
	// Unreadable is the number of objects with an annotation that cannot be read.
	Unreadable int64 `json:"unreadable,omitempty"`
	// Fields are the first 100 fields that were found, sorted by path. More is true if there are
	// others.
	Fields []FieldHoldings `json:"fields,omitempty"`
	More   bool            `json:"more,omitempty"`
}

// FieldHoldings is the number of objects with preserved data of one field.
type FieldHoldings struct {
	Path    string `json:"path"`
	Objects int64  `json:"objects"`
}

// Add counts one object with its preserved data.
func (h *Holdings) Add(object string, held []Preserved) {
	h.Seen++
	if len(held) == 0 {
		return
	}
	var size int64
	for i := range held {
		size += int64(held[i].Bytes)
		h.version(held[i].Version).add(&held[i])
	}
	h.Objects++
	h.Bytes += size
	if size > h.LargestBytes {
		h.Largest, h.LargestBytes = object, size
	}
}

// Clone returns a deep copy, nil for nil.
func (h *Holdings) Clone() *Holdings {
	if h == nil {
		return nil
	}
	clone := *h
	clone.Versions = slices.Clone(h.Versions)
	for i := range clone.Versions {
		clone.Versions[i].Fields = slices.Clone(clone.Versions[i].Fields)
	}
	return &clone
}

func (h *Holdings) version(name string) *VersionHoldings {
	i, found := slices.BinarySearchFunc(h.Versions, name, func(v VersionHoldings, name string) int { return cmp.Compare(v.Version, name) })
	if !found {
		h.Versions = slices.Insert(h.Versions, i, VersionHoldings{Version: name})
	}
	return &h.Versions[i]
}

func (v *VersionHoldings) add(held *Preserved) {
	v.Objects++
	v.Bytes += int64(held.Bytes)
	if held.Unreadable {
		v.Unreadable++
	}
	last := ""
	for _, path := range held.Fields {
		if path = shortPath(path); path != last {
			v.count(path)
		}
		last = path
	}
}

func (v *VersionHoldings) count(path string) {
	i, found := slices.BinarySearchFunc(v.Fields, path, func(f FieldHoldings, path string) int { return cmp.Compare(f.Path, path) })
	switch {
	case found:
		v.Fields[i].Objects++
	case len(v.Fields) == maxCounted:
		v.More = true
	default:
		v.Fields = slices.Insert(v.Fields, i, FieldHoldings{Path: path, Objects: 1})
	}
}

// shortPath shortens a path that is too long to one of its parent objects.
func shortPath(path string) string {
	for len(path) > maxPath {
		path = path[:max(strings.LastIndexAny(path[:maxPath], ".["), 1)]
	}
	return path
}
