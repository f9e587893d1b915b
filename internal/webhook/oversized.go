// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"cmp"
	"slices"
	"time"

	"github.com/conversion-operator/conversion-operator/internal/engine/conversion"
)

// A converter pod remembers which objects it returned in a truncated form, so that users learn
// about them before they write one. API servers convert every object to each served version to fill
// their caches, even if no client reads it.

const (
	// maxOversized bounds the number of remembered objects of a kind, and maxAllOversized those of all
	// kinds, like maxAllFailures.
	maxOversized, maxAllOversized = 64, 2048
	// maxOversizedFields bounds the fields of each object, and maxOversizedField their length in
	// bytes.
	maxOversizedFields, maxOversizedField = 5, 128
	// oversizedTTL is how long an object is remembered after it was last seen. The manager reads
	// the list more often.
	oversizedTTL = 24 * time.Hour
)

// Oversized is an object that was returned in a truncated form.
type Oversized struct {
	// CRD is the name of its CustomResourceDefinition.
	CRD string `json:"crd"`
	// Object is the name, or namespace/name.
	Object string `json:"object"`
	// Version is the version that it was converted to, and FieldsOf the version whose fields do not
	// fit into annotations.
	Version  string `json:"version"`
	FieldsOf string `json:"fieldsOf"`
	// Fields are the first of these fields, and Bytes is the size of the annotation that would
	// preserve all of them.
	Fields []string  `json:"fields,omitempty"`
	Bytes  int64     `json:"bytes"`
	Last   time.Time `json:"last"`
}

// oversizedKey identifies an Oversized.
type oversizedKey struct{ object, version string }

// addOversized remembers an object that was returned in a truncated form.
func (l *failureLog) addOversized(object string, omitted *conversion.Omitted) {
	now := l.now()
	seen := Oversized{CRD: l.crd, Object: object, Version: omitted.At, FieldsOf: omitted.Version, Bytes: int64(omitted.Bytes), Last: now}
	for _, field := range omitted.Fields[:min(len(omitted.Fields), maxOversizedFields)] {
		if len(field) <= maxOversizedField {
			seen.Fields = append(seen.Fields, truncate(field))
		}
	}
	l.all.mu.Lock()
	defer l.all.mu.Unlock()
	key := oversizedKey{object, omitted.At}
	if _, known := l.oversized[key]; !known {
		l.makeRoomForOversized()
	}
	l.oversized[key] = seen
}

// makeRoomForOversized makes room for one more object. The caller must hold l.all.mu.
func (l *failureLog) makeRoomForOversized() {
	full := l.all.full(l, func(l *failureLog) int { return len(l.oversized) }, maxOversized, maxAllOversized)
	if full == nil {
		return
	}
	before := len(full.oversized)
	if all := full.listOversized(); len(all) == before {
		oldest := slices.MinFunc(all, func(a, b Oversized) int { return a.Last.Compare(b.Last) })
		delete(full.oversized, oversizedKey{oldest.Object, oldest.Version})
	}
}

// listOversized returns the remembered objects, and removes expired ones. The caller must hold
// l.all.mu.
func (l *failureLog) listOversized() []Oversized {
	var all []Oversized
	for key, seen := range l.oversized {
		if l.now().Sub(seen.Last) > oversizedTTL {
			delete(l.oversized, key)
			continue
		}
		all = append(all, seen)
	}
	slices.SortFunc(all, func(a, b Oversized) int {
		return cmp.Or(cmp.Compare(a.Object, b.Object), cmp.Compare(a.Version, b.Version))
	})
	return all
}

// recordOversized records an object that was returned in a truncated form in production. Objects of
// server-side apply may have no name.
func (x *exchange) recordOversized(omitted *conversion.Omitted) {
	if x.probe {
		return
	}
	name, _ := describe(x.object)
	if name = validName(name); name != "" {
		x.kind.failures.addOversized(name, omitted)
	}
}
