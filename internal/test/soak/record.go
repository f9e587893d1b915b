// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
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
// absent.
type record struct {
	// HostPort is host:port or, written at v1, only a host, in which case the other versions have
	// neither.
	HostPort string
	Replicas int64
	// Tags exist only at v1beta1, Note at v1, Timeout at v2.
	Tags    []string
	Note    string
	Timeout int64
}

// spec returns the record as an object's spec at a version.
func (r record) spec(version string) map[string]any {
	spec := map[string]any{}
	host, port, both := strings.Cut(r.HostPort, ":")
	switch version {
	case hub:
		if both {
			spec["host"], spec["port"] = host, port
		}
		put(spec, "replicas", r.Replicas)
		if len(r.Tags) > 0 {
			spec["tags"] = list(r.Tags)
		}
	case joined:
		put(spec, "hostPort", r.HostPort)
		put(spec, "replicas", r.Replicas)
		put(spec, "note", r.Note)
	case nested:
		if both {
			spec["address"] = map[string]any{"host": host, "port": port}
		}
		put(spec, "size", r.Replicas)
		put(spec, "timeoutSeconds", r.Timeout)
	}
	return spec
}

// overwritten returns the record after a client replaced it at a version. Fields that this version
// does not have keep their values.
func (r record) overwritten(version string, by record) record {
	r.HostPort, r.Replicas = by.HostPort, by.Replicas
	switch version {
	case hub:
		r.Tags = slices.Clone(by.Tags)
	case joined:
		r.Note = by.Note
	case nested:
		r.Timeout = by.Timeout
	}
	return r
}

// ownField is a field that only one version can express. Objects that are stored at another version
// preserve it in an annotation.
type ownField struct {
	path string
	// value returns the value in the annotation as decoded JSON; nil if absent.
	value func(record) any
	// forget removes the field from a record.
	forget func(*record)
}

// ownFields has no fields of the hub, which is never removed.
var ownFields = map[string][]ownField{
	joined: {
		{".spec.note", func(r record) any { return text(r.Note) }, func(r *record) { r.Note = "" }},
		{hostOnlyPath, func(r record) any { return text(r.hostOnly()) }, func(r *record) { r.HostPort = strings.TrimPrefix(r.HostPort, r.hostOnly()) }},
	},
	nested: {
		{".spec.timeoutSeconds", func(r record) any { return number(r.Timeout) }, func(r *record) { r.Timeout = 0 }},
	},
}

// hostOnlyPath is the path of a host without a port, which only v1 can express.
const hostOnlyPath = ".spec.hostPort"

// hostOnly returns the host of a record without a port.
func (r record) hostOnly() string {
	if strings.Contains(r.HostPort, ":") {
		return ""
	}
	return r.HostPort
}

func text(value string) any {
	if value == "" {
		return nil
	}
	return value
}

func number(value int64) any {
	if value == 0 {
		return nil
	}
	return json.Number(strconv.FormatInt(value, 10))
}

// wouldLose returns the fields whose values would be lost with a version, without the accepted
// ones.
func (r record) wouldLose(version string, accepted []string) []string {
	var paths []string
	for _, field := range ownFields[version] {
		if field.value(r) != nil && !accepts(accepted, field.path) {
			paths = append(paths, field.path)
		}
	}
	return paths
}

// without returns the record after a version was removed with its accepted losses.
func (r record) without(version string, accepted []string) record {
	for _, field := range ownFields[version] {
		if accepts(accepted, field.path) {
			field.forget(&r)
		}
	}
	return r
}

// accepts reports whether acceptedLosses has a field, or a parent of it.
func accepts(accepted []string, path string) bool {
	return slices.ContainsFunc(accepted, func(one string) bool { return path == one || strings.HasPrefix(path, one+".") })
}

func put[T comparable](spec map[string]any, field string, value T) {
	var absent T
	if value != absent {
		spec[field] = value
	}
}

func list(texts []string) []any {
	all := make([]any, len(texts))
	for i, text := range texts {
		all[i] = text
	}
	return all
}
