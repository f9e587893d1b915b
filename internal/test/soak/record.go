// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package soak

import (
	"maps"
	"slices"
	"strings"
)

// The versions of a CRD. The hub comes first, and is never removed.
const (
	hub    = "v1beta1"
	joined = "v1"
	nested = "v2"
)

var versions = []string{hub, joined, nested}

// record is the content of an object, independent of versions. What it is in each version does not use the
// operator's code.
type record struct {
	HostPort string // host:port
	Replicas int64
	// Own has the value of the field that only one version has, by version; none if the field is absent.
	Own map[string]any
}

// ownPaths are the fields that only one version has. Objects that are stored at another version preserve
// them in an annotation.
var ownPaths = map[string]string{hub: ".spec.tags", joined: ".spec.note", nested: ".spec.timeoutSeconds"}

// spec returns the record as an object's spec at a version.
func (r record) spec(version string) map[string]any {
	host, port, _ := strings.Cut(r.HostPort, ":")
	spec, replicas := map[string]any{}, "replicas"
	switch version {
	case hub:
		spec["host"], spec["port"] = host, port
	case joined:
		spec["hostPort"] = r.HostPort
	case nested:
		spec["address"], replicas = map[string]any{"host": host, "port": port}, "size"
	}
	if r.Replicas != 0 {
		spec[replicas] = r.Replicas
	}
	if own, set := r.Own[version]; set {
		spec[strings.TrimPrefix(ownPaths[version], ".spec.")] = own
	}
	return spec
}

// with returns the record with another value of a version's own field; nil removes it.
func (r record) with(version string, own any) record {
	r.Own = set(maps.Clone(r.Own), version, own)
	maps.DeleteFunc(r.Own, func(_ string, own any) bool { return own == nil })
	return r
}

// overwritten returns the record after a client replaced it at a version. Fields that this version
// does not have keep their values.
func (r record) overwritten(version string, by record) record {
	r.HostPort, r.Replicas = by.HostPort, by.Replicas
	return r.with(version, by.Own[version])
}

// own returns the preserved values of a version, by path.
func (r record) own(version string) map[string]any {
	values := map[string]any{}
	if own, set := r.Own[version]; set {
		values[ownPaths[version]] = own
	}
	return values
}

// wouldLose returns the paths whose values would be lost with a version, without the accepted ones.
func (r record) wouldLose(version string, accepted []string) []string {
	return slices.DeleteFunc(sortedKeys(r.own(version)), func(path string) bool { return accepts(accepted, path) })
}

// accepts reports whether acceptedLosses has a field, or a parent of it.
func accepts(accepted []string, path string) bool {
	return slices.ContainsFunc(accepted, func(one string) bool { return path == one || strings.HasPrefix(path, one+".") })
}

// sortedKeys returns the sorted keys of a map.
func sortedKeys[V any](of map[string]V) []string { return slices.Sorted(maps.Keys(of)) }

// set adds an entry to a map, which may be nil.
func set[V any](all map[string]V, key string, value V) map[string]V {
	if all == nil {
		all = map[string]V{}
	}
	all[key] = value
	return all
}
