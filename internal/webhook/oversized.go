// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/conversion-operator/conversion-operator/internal/conversion"
)

// A converter pod remembers which objects it has answered in a truncated form, so that
// users hear of them before they write one. API servers have every object converted to
// each served version when they fill their caches: whether any client reads it or not.

const (
	// maxOversized bounds the objects that a pod remembers.
	maxOversized = 64
	// maxOversizedFields bounds the fields of each, and maxOversizedField each of those,
	// in bytes.
	maxOversizedFields, maxOversizedField = 5, 128
	// oversizedLife is how long an object is remembered that is not seen again. The
	// manager asks more often.
	oversizedLife = 24 * time.Hour
)

// Oversized is an object that was answered in a truncated form.
type Oversized struct {
	// Object is its name, or namespace/name.
	Object string `json:"object"`
	// Version is the one that it was converted to, and FieldsOf the one that has the
	// fields for which there is no room.
	Version  string `json:"version"`
	FieldsOf string `json:"fieldsOf"`
	// Fields are the first of those, and Bytes is what the annotation would take that
	// preserves them.
	Fields []string  `json:"fields,omitempty"`
	Bytes  int64     `json:"bytes"`
	Last   time.Time `json:"last"`
}

// oversizedKey tells them apart.
type oversizedKey struct{ object, version string }

// addOversized remembers an object that was answered in a truncated form.
func (l *failureLog) addOversized(object string, omitted *conversion.Omitted) {
	now := l.now()
	seen := Oversized{Object: object, Version: omitted.At, FieldsOf: omitted.Version, Bytes: int64(omitted.Bytes), Last: now}
	for _, field := range omitted.Fields[:min(len(omitted.Fields), maxOversizedFields)] {
		if len(field) <= maxOversizedField {
			seen.Fields = append(seen.Fields, truncate(field))
		}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	key := oversizedKey{object, omitted.At}
	if _, known := l.oversized[key]; !known && len(l.oversized) >= maxOversized {
		if all := l.tellOversized(); len(all) >= maxOversized {
			oldest := slices.MinFunc(all, func(a, b Oversized) int { return a.Last.Compare(b.Last) })
			delete(l.oversized, oversizedKey{oldest.Object, oldest.Version})
		}
	}
	l.oversized[key] = seen
}

// tellOversized returns what is remembered, and forgets what was not seen for long. It
// needs the lock.
func (l *failureLog) tellOversized() []Oversized {
	var all []Oversized
	for key, seen := range l.oversized {
		if l.now().Sub(seen.Last) > oversizedLife {
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

// rememberOversized notes an object that was answered in a truncated form in
// production. What server-side apply sends may have no name.
func (x *exchange) rememberOversized(omitted *conversion.Omitted) {
	if x.review.isProbe() || strings.HasPrefix(x.agent, ProbeAgent) {
		return
	}
	name, _ := describe(x.object)
	if name = nameOrNothing(name); name != "" {
		x.handler.failures.addOversized(name, omitted)
	}
}
