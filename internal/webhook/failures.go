// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/conversion-operator/conversion-operator/internal/engine/conversion"
)

// A converter pod remembers which conversions failed, so that the manager can report them to users:
// the pod knows the object and the cause, but has no access to the API.

// Causes of failed conversions that do not come from the rules. Package conversion has the other
// causes.
const (
	// CauseTooSlow means that the API server abandoned the call after a long time.
	CauseTooSlow conversion.Cause = "TooSlow"
	// CausePanic means that the converter panicked. Its log has the cause.
	CausePanic conversion.Cause = "Panic"
)

const (
	// maxFailures bounds the number of entries of a kind. A policy with three versions has 6 pairs, and most
	// pairs fail for one cause.
	maxFailures = 64
	// maxAllFailures bounds the entries of all kinds of a pod together, and so their memory: to 3 MiB,
	// and as much for maxAllOversized. If it is reached, the kind with the most entries loses one.
	maxAllFailures = 2048
	// maxFailureMessage bounds a message, in bytes.
	maxFailureMessage = 512
	// exampleTTL is how long an object remains the example without failing again. The example
	// changes rarely, so that the condition that names it is stable.
	exampleTTL = 10 * time.Minute
	// slowAfter is the age from which a cancelled call counts as too slow. API servers wait for up
	// to 30 s; users who cancel wait less.
	slowAfter = 10 * time.Second
)

// Failures is the response at FailuresPath.
type Failures struct {
	// Now is the time of the pod, to which the other times are relative.
	Now time.Time `json:"now"`
	// Since is when the pod started to count.
	Since time.Time `json:"since"`
	// Failures are sorted by CustomResourceDefinition, ruleset, versions and cause.
	Failures []Failure `json:"failures"`
	// Oversized are objects that were returned in a truncated form, sorted.
	Oversized []Oversized `json:"oversized,omitempty"`
}

// Failure summarizes the failed conversions of one ruleset, pair of versions, and cause.
type Failure struct {
	// CRD is the name of the CustomResourceDefinition of the ruleset.
	CRD string `json:"crd"`
	// Ruleset is the hash of the ruleset that the API server requested.
	Ruleset string `json:"ruleset"`
	// From and To are versions of the ruleset, or both "other" if either is not: callers cannot
	// create entries at will.
	From  string           `json:"from"`
	To    string           `json:"to"`
	Cause conversion.Cause `json:"cause"`
	// Count of failed conversions since the pod started to count.
	Count int64     `json:"count"`
	First time.Time `json:"first"`
	Last  time.Time `json:"last"`
	// Object is an example, as name or namespace/name. It is empty if no failed object had a name.
	// Message is the error for that object.
	Object  string `json:"object,omitempty"`
	Message string `json:"message"`
}

// failureKey identifies a Failure.
type failureKey struct {
	ruleset, from, to string
	cause             conversion.Cause
}

// failureEntry is a Failure, and when its example failed last.
type failureEntry struct {
	Failure
	exampleLast time.Time
}

// failureLogs are the logs of all kinds that a pod serves.
type failureLogs struct {
	mu   sync.Mutex
	logs []*failureLog
}

// serveKinds sets which kinds there are.
func (all *failureLogs) serveKinds(kinds map[string]*kind) {
	all.mu.Lock()
	defer all.mu.Unlock()
	all.logs = nil
	for _, kind := range kinds {
		all.logs = append(all.logs, kind.failures)
	}
}

// full returns the log that must lose an entry before a log gets another one: log itself, if it has
// most entries; or that with the most, log itself if none has more, if all of them together have
// mostOfAll; or else nil. The caller must hold all.mu.
func (all *failureLogs) full(log *failureLog, entries func(*failureLog) int, most, mostOfAll int) *failureLog {
	if entries(log) >= most {
		return log
	}
	total, fullest := 0, log
	for _, each := range all.logs {
		total += entries(each)
		if entries(each) > entries(fullest) {
			fullest = each
		}
	}
	if total < mostOfAll {
		return nil
	}
	return fullest
}

// failureLog remembers failed conversions of one kind. Successful conversions do not use it.
type failureLog struct {
	crd string
	now func() time.Time

	// all has the lock of the log, too.
	all     *failureLogs
	entries map[failureKey]*failureEntry
	// oversized are objects that were returned in a truncated form (oversized.go).
	oversized map[oversizedKey]Oversized
}

func newFailureLog(all *failureLogs, crd string, now func() time.Time) *failureLog {
	return &failureLog{all: all, crd: crd, now: now, entries: map[failureKey]*failureEntry{}, oversized: map[oversizedKey]Oversized{}}
}

// add counts the failed conversion of an object.
func (l *failureLog) add(key failureKey, object, message string) {
	now := l.now()
	l.all.mu.Lock()
	defer l.all.mu.Unlock()
	entry := l.entries[key]
	if entry == nil {
		l.makeRoom()
		entry = &failureEntry{Failure: Failure{CRD: l.crd, Ruleset: key.ruleset, From: key.from, To: key.to, Cause: key.cause, First: now}}
		l.entries[key] = entry
	}
	entry.Count++
	entry.Last = now
	if object == entry.Object || now.Sub(entry.exampleLast) > exampleTTL {
		entry.Object, entry.Message, entry.exampleLast = object, message, now
	}
}

// makeRoom makes room for one more entry.
func (l *failureLog) makeRoom() {
	if full := l.all.full(l, func(l *failureLog) int { return len(l.entries) }, maxFailures, maxAllFailures); full != nil {
		full.evictOldest()
	}
}

// evictOldest removes the entry whose last failure is oldest.
func (l *failureLog) evictOldest() {
	var oldest failureKey
	for key, entry := range l.entries {
		if last := l.entries[oldest]; last == nil || entry.Last.Before(last.Last) {
			oldest = key
		}
	}
	delete(l.entries, oldest)
}

// readFailures returns all entries of one CustomResourceDefinition, or of all if crd is empty.
func (h *Handler) readFailures(crd string) Failures {
	answer := Failures{Now: time.Now(), Since: h.since, Failures: []Failure{}}
	kinds := h.served.Load().kinds
	for _, name := range slices.Sorted(maps.Keys(kinds)) {
		if crd == "" || crd == name {
			kinds[name].failures.appendTo(&answer)
		}
	}
	return answer
}

// appendTo appends all entries, sorted.
func (l *failureLog) appendTo(answer *Failures) {
	l.all.mu.Lock()
	defer l.all.mu.Unlock()
	first := len(answer.Failures)
	for _, entry := range l.entries {
		answer.Failures = append(answer.Failures, entry.Failure)
	}
	slices.SortFunc(answer.Failures[first:], func(a, b Failure) int {
		return cmp.Or(cmp.Compare(a.Ruleset, b.Ruleset), cmp.Compare(a.From, b.From), cmp.Compare(a.To, b.To), cmp.Compare(a.Cause, b.Cause))
	})
	answer.Oversized = append(answer.Oversized, l.listOversized()...)
}

// recordFailure records that an object could not be converted in production. It ignores probes of
// the operator, and callers that disconnected.
func (x *exchange) recordFailure(pair *pair, failure failure, object string, cause error) {
	switch {
	case x.probe:
		return
	case failure == failureCanceled && clock()-x.began < slowAfter:
		return
	}
	key := failureKey{x.ruleset.Hash, pair.from, x.target.version, causeOf[failure]}
	if pair == x.target.unknown {
		key.to = otherVersion
	}
	x.kind.failures.add(key, validName(object), truncate(cause.Error()))
}

// validName returns name if objects can have such a name, or an empty string: the request may
// contain anything.
func validName(name string) string {
	const longest = 2*253 + 1
	unprintable := func(r rune) bool { return r <= ' ' || r > '~' }
	if len(name) > longest || strings.ContainsFunc(name, unprintable) {
		return ""
	}
	return name
}

// truncate bounds a message, and replaces control characters, which a terminal would interpret.
func truncate(message string) string {
	message = strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f {
			return ' '
		}
		return r
	}, message)
	if len(message) <= maxFailureMessage {
		return message
	}
	return strings.ToValidUTF8(message[:maxFailureMessage], "") + "…"
}
