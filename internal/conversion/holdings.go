// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package conversion

import (
	"cmp"
	"slices"
	"strings"
)

const (
	// maxCounted bounds the fields of a version that are counted one by one: the
	// first that are found. Objects can make up any number of them.
	maxCounted = 100
	// maxPath bounds the text of one, in bytes.
	maxPath = 256
)

// Holdings count what objects hold in their annotations.
type Holdings struct {
	// Seen objects were looked at, and Objects of them hold preserved data.
	Seen    int64 `json:"seen"`
	Objects int64 `json:"objects"`
	// Bytes are those of all annotations, names aside.
	Bytes int64 `json:"bytes"`
	// Largest is the object that holds most, and LargestBytes how much.
	Largest      string `json:"largest,omitempty"`
	LargestBytes int64  `json:"largestBytes,omitempty"`
	// Versions are those whose data is held, by name.
	Versions []VersionHoldings `json:"versions,omitempty"`
}

// VersionHoldings count what is held of one version.
type VersionHoldings struct {
	Version string `json:"version"`
	Objects int64  `json:"objects"`
	Bytes   int64  `json:"bytes"`
	// Unreadable objects have text in an annotation that cannot be read.
	Unreadable int64 `json:"unreadable,omitempty"`
	// Fields are the first 100 that were found, by path, and More tells that there
	// are others.
	Fields []FieldHoldings `json:"fields,omitempty"`
	More   bool            `json:"more,omitempty"`
}

// FieldHoldings count the objects that hold something of one field.
type FieldHoldings struct {
	Path    string `json:"path"`
	Objects int64  `json:"objects"`
}

// Add counts one object, and what it holds.
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

// Clone returns a copy that shares nothing with h; nil of nil.
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
	at, found := slices.BinarySearchFunc(h.Versions, name, func(v VersionHoldings, name string) int { return cmp.Compare(v.Version, name) })
	if !found {
		h.Versions = slices.Insert(h.Versions, at, VersionHoldings{Version: name})
	}
	return &h.Versions[at]
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
	at, found := slices.BinarySearchFunc(v.Fields, path, func(f FieldHoldings, path string) int { return cmp.Compare(f.Path, path) })
	switch {
	case found:
		v.Fields[at].Objects++
	case len(v.Fields) == maxCounted:
		v.More = true
	default:
		v.Fields = slices.Insert(v.Fields, at, FieldHoldings{Path: path, Objects: 1})
	}
}

// shortPath cuts a path that is too long to the object that holds the field.
func shortPath(path string) string {
	for len(path) > maxPath {
		path = path[:max(strings.LastIndexAny(path[:maxPath], ".["), 1)]
	}
	return path
}
