// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"slices"
	"strconv"
	"strings"
)

// The versions that a CustomResourceDefinition of the run can have. The hub is the
// first, and never goes.
const (
	hub    = "v1beta1"
	joined = "v1"
	nested = "v2"
)

var versions = []string{hub, joined, nested}

// record is what an object says, whatever version it is read in. A field without
// a value is absent.
type record struct {
	// HostPort is host:port, or, written at v1, a host alone: then the other
	// versions have neither.
	HostPort string
	Replicas int64
	// Tags are at v1beta1 only, Note at v1, Timeout at v2.
	Tags    []string
	Note    string
	Timeout int64
}

// spec is the record as it is read, and written, at a version.
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

// overwritten is what a record becomes when a client reads it at a version, puts
// another in its place and writes that: what only other versions have, stays.
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

// ownField is a field that one version alone can express. Objects that are stored in
// another version hold its value in an annotation.
type ownField struct {
	path string
	// value is what the annotation has, as JSON is read; nil where there is nothing.
	value func(record) any
	// forget takes it out of a record.
	forget func(*record)
}

// ownFields of the versions that can be removed: the hub never goes.
var ownFields = map[string][]ownField{
	joined: {
		{".spec.note", func(r record) any { return text(r.Note) }, func(r *record) { r.Note = "" }},
		{loneHost, func(r record) any { return text(r.lone()) }, func(r *record) { r.HostPort = strings.TrimPrefix(r.HostPort, r.lone()) }},
	},
	nested: {
		{".spec.timeoutSeconds", func(r record) any { return number(r.Timeout) }, func(r *record) { r.Timeout = 0 }},
	},
}

// loneHost is the path of a host without a port, which only v1 can express.
const loneHost = ".spec.hostPort"

// lone is the host of a record that has no port.
func (r record) lone() string {
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

// wouldLose are the fields of which a record has values that would be lost with a
// version, besides those that are accepted.
func (r record) wouldLose(version string, accepted []string) []string {
	var paths []string
	for _, field := range ownFields[version] {
		if field.value(r) != nil && !accepts(accepted, field.path) {
			paths = append(paths, field.path)
		}
	}
	return paths
}

// without is the record after a version was removed whose accepted losses were taken
// out of annotations.
func (r record) without(version string, accepted []string) record {
	for _, field := range ownFields[version] {
		if accepts(accepted, field.path) {
			field.forget(&r)
		}
	}
	return r
}

// accepts reports whether a field, or what it is in, is among acceptedLosses.
func accepts(accepted []string, path string) bool {
	return slices.ContainsFunc(accepted, func(one string) bool { return path == one || strings.HasPrefix(path, one+".") })
}

func put[T comparable](spec map[string]any, field string, value T) {
	var absent T
	if value != absent {
		spec[field] = value
	}
}

// list is texts as JSON has them.
func list(texts []string) []any {
	all := make([]any, len(texts))
	for i, text := range texts {
		all[i] = text
	}
	return all
}
