// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"slices"
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
