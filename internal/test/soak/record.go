// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package soak

import (
	"fmt"
	"iter"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
)

// record is the content of an object, independent of versions. What it is in each version does not use the
// operator's code.
type record struct {
	HostPort string // host:port
	Replicas int64
	// Own has the value of the field that only one version has, by version; none if the field is absent.
	Own map[string]any
}

// ownFields are the fields of the spec that only one version has. Objects that are stored at another
// version preserve them in an annotation.
var ownFields = map[string]string{hub: "tags", joined: "note", nested: "timeoutSeconds"}

func ownPath(version string) string { return ".spec." + ownFields[version] }

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
	if own := r.Own[version]; own != nil {
		spec[ownFields[version]] = own
	}
	return spec
}

// preserved returns the annotation with the values of a version; nil if it has none.
func (r record) preserved(version string) any {
	if r.Own[version] == nil {
		return nil
	}
	return map[string]any{"format": int64(2), "fields": map[string]any{"/spec/" + ownFields[version]: r.Own[version]}}
}

// with returns the record with another value of a version's own field; nil removes it.
func (r record) with(version string, own any) record {
	all := map[string]any{version: own}
	for other, value := range r.Own {
		if other != version {
			all[other] = value
		}
	}
	r.Own = all
	return r
}

// overwritten returns the record after a client replaced it at a version. Fields that this version
// does not have keep their values.
func (r record) overwritten(version string, by record) record {
	r.HostPort, r.Replicas = by.HostPort, by.Replicas
	return r.with(version, by.Own[version])
}

func randomRecord(random *rand.Rand) record {
	r := record{HostPort: fmt.Sprintf("host-%d.example.com:%d", random.IntN(100), 1+random.IntN(65535)), Replicas: random.Int64N(4), Own: map[string]any{}}
	if random.IntN(2) == 0 {
		r.Own[joined] = fmt.Sprintf("note %d: ü, \"quotes\" and / slashes ~", random.IntN(1000))
	}
	var tags []any
	for range random.IntN(3) {
		tags = append(tags, fmt.Sprintf("tag-%d", random.IntN(10)))
	}
	if len(tags) > 0 {
		r.Own[hub] = tags
	}
	if random.IntN(2) == 0 {
		r.Own[nested] = 1<<53 + 1 + random.Int64N(1000) // more than a float64 can tell apart
	}
	return r
}

// sorted returns the entries of a map in the order of their keys.
func sorted[V any](of map[string]V) iter.Seq2[string, V] {
	return func(yield func(string, V) bool) {
		for _, key := range slices.Sorted(maps.Keys(of)) {
			if !yield(key, of[key]) {
				return
			}
		}
	}
}
