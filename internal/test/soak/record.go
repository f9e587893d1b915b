// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package soak

import (
	"encoding/json"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// The versions of a CRD. The hub comes first, and is never removed.
const (
	hub    = "v1beta1"
	joined = "v1"
	nested = "v2"
)

var versions = []string{hub, joined, nested}

// record is the content of an object, independent of versions. A zero value means that the field is
// absent. What it is in each version does not use the operator's code.
type record struct {
	HostPort string // host:port
	Replicas int64
	// Tags exist only at v1beta1, Note at v1, Timeout at v2.
	Tags    []string
	Note    string
	Timeout int64
}

// spec returns the record as an object's spec at a version.
func (r record) spec(version string) map[string]any {
	host, port, _ := strings.Cut(r.HostPort, ":")
	var tags []any
	for _, tag := range r.Tags {
		tags = append(tags, tag)
	}
	spec := map[string]any{}
	switch version {
	case hub:
		spec = map[string]any{"host": host, "port": port, "replicas": r.Replicas, "tags": tags}
	case joined:
		spec = map[string]any{"hostPort": r.HostPort, "replicas": r.Replicas, "note": r.Note}
	case nested:
		spec = map[string]any{"address": map[string]any{"host": host, "port": port}, "size": r.Replicas, "timeoutSeconds": r.Timeout}
	}
	maps.DeleteFunc(spec, func(field string, value any) bool {
		return value == "" || value == int64(0) || field == "tags" && len(tags) == 0
	})
	return spec
}

// overwritten returns the record after a client replaced it at a version. Fields that this version
// does not have keep their values.
func (r record) overwritten(version string, by record) record {
	r.HostPort, r.Replicas = by.HostPort, by.Replicas
	switch version {
	case hub:
		r.Tags = by.Tags
	case joined:
		r.Note = by.Note
	case nested:
		r.Timeout = by.Timeout
	}
	return r
}

// own returns the values that only one version can express, by path. Objects that are stored at another
// version preserve them in an annotation. The hub, which is never removed, is left out.
func (r record) own(version string) map[string]any {
	values := map[string]any{}
	switch version {
	case joined:
		if r.Note != "" {
			values[".spec.note"] = r.Note
		}
	case nested:
		if r.Timeout != 0 {
			values[".spec.timeoutSeconds"] = json.Number(strconv.FormatInt(r.Timeout, 10))
		}
	}
	return values
}

// wouldLose returns the paths whose values would be lost with a version, without the accepted ones.
func (r record) wouldLose(version string, accepted []string) []string {
	return slices.DeleteFunc(sortedKeys(r.own(version)), func(path string) bool { return accepts(accepted, path) })
}

// without returns the record after a version was removed with its accepted losses.
func (r record) without(version string, accepted []string) record {
	for path := range r.own(version) {
		switch {
		case !accepts(accepted, path):
		case version == joined:
			r.Note = ""
		default:
			r.Timeout = 0
		}
	}
	return r
}

// accepts reports whether acceptedLosses has a field, or a parent of it.
func accepts(accepted []string, path string) bool {
	return slices.ContainsFunc(accepted, func(one string) bool { return path == one || strings.HasPrefix(path, one+".") })
}

// sortedKeys returns the sorted keys of a map.
func sortedKeys[V any](of map[string]V) []string { return slices.Sorted(maps.Keys(of)) }
