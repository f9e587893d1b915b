// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"cmp"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/conversion-operator/conversion-operator/internal/conversion"
)

// A converter pod remembers which conversions failed, so that the manager can tell
// users of them: the pod knows the object and the cause, and has no access to the API.

// Causes of failed conversions that are not the rules': the others are those of
// package conversion.
const (
	// CauseTooSlow: the API server gave the call up, after a long time.
	CauseTooSlow conversion.Cause = "TooSlow"
	// CausePanic: the converter has a bug, which its log has.
	CausePanic conversion.Cause = "Panic"
)

const (
	// maxFailures bounds what a pod remembers. Of a policy with three versions there
	// are 6 pairs, and most of them fail for one cause.
	maxFailures = 64
	// maxFailureMessage bounds a message, in bytes.
	maxFailureMessage = 512
	// exampleLife is how long an object stays the example without failing again. It
	// changes seldom, so that a condition that names it does.
	exampleLife = 10 * time.Minute
	// slowAfter tells a caller that went away from one that gave up: an API server
	// waits for 30 s at most, and a person for less.
	slowAfter = 10 * time.Second
)

// Failures is the answer at FailuresPath.
type Failures struct {
	// Now is the clock of the pod, by which the other times are to be read.
	Now time.Time `json:"now"`
	// Since is when the pod began to count.
	Since time.Time `json:"since"`
	// Failures are sorted by their rulesets, versions and causes.
	Failures []Failure `json:"failures"`
	// Oversized are objects that were answered in a truncated form, sorted.
	Oversized []Oversized `json:"oversized,omitempty"`
}

// Failure is a kind of failed conversion.
type Failure struct {
	// Ruleset is the hash of the rules that the API server asked for.
	Ruleset string `json:"ruleset"`
	// From and To are versions that the pod has rules for, and "other" where either
	// is another one: callers cannot make up entries.
	From  string           `json:"from"`
	To    string           `json:"to"`
	Cause conversion.Cause `json:"cause"`
	// Count of failed conversions since the pod began to count.
	Count int64     `json:"count"`
	First time.Time `json:"first"`
	Last  time.Time `json:"last"`
	// Object is one of the objects, as its name or namespace/name, empty where none
	// had a name, and Message what its reader was told.
	Object  string `json:"object,omitempty"`
	Message string `json:"message"`
}

// failureKey tells kinds of failed conversions apart.
type failureKey struct {
	ruleset, from, to string
	cause             conversion.Cause
}

// remembered is a kind of failed conversion, and when its example failed last.
type remembered struct {
	Failure
	exampleLast time.Time
}

// failureLog remembers failed conversions. To convert without a failure costs nothing.
type failureLog struct {
	now   func() time.Time
	since time.Time

	mu    sync.Mutex
	known map[failureKey]*remembered
	// oversized are objects that were answered in a truncated form (oversized.go).
	oversized map[oversizedKey]Oversized
}

func newFailureLog(now func() time.Time) *failureLog {
	return &failureLog{now: now, since: now(), known: map[failureKey]*remembered{}, oversized: map[oversizedKey]Oversized{}}
}

// add counts a failed conversion of an object.
func (l *failureLog) add(key failureKey, object, message string) {
	now := l.now()
	l.mu.Lock()
	defer l.mu.Unlock()
	entry := l.known[key]
	if entry == nil {
		l.makeRoom()
		entry = &remembered{Failure: Failure{Ruleset: key.ruleset, From: key.from, To: key.to, Cause: key.cause, First: now}}
		l.known[key] = entry
	}
	entry.Count++
	entry.Last = now
	if object == entry.Object || now.Sub(entry.exampleLast) > exampleLife {
		entry.Object, entry.Message, entry.exampleLast = object, message, now
	}
}

// makeRoom forgets what has not failed for the longest time.
func (l *failureLog) makeRoom() {
	if len(l.known) < maxFailures {
		return
	}
	var oldest failureKey
	for key, entry := range l.known {
		if last := l.known[oldest]; last == nil || entry.Last.Before(last.Last) {
			oldest = key
		}
	}
	delete(l.known, oldest)
}

// read returns what is remembered.
func (l *failureLog) read() Failures {
	l.mu.Lock()
	defer l.mu.Unlock()
	answer := Failures{Now: l.now(), Since: l.since, Failures: []Failure{}, Oversized: l.tellOversized()}
	for _, entry := range l.known {
		answer.Failures = append(answer.Failures, entry.Failure)
	}
	slices.SortFunc(answer.Failures, func(a, b Failure) int {
		return cmp.Or(cmp.Compare(a.Ruleset, b.Ruleset), cmp.Compare(a.From, b.From), cmp.Compare(a.To, b.To), cmp.Compare(a.Cause, b.Cause))
	})
	return answer
}

// remember notes that an object could not be converted in production: what the
// operator itself tries out is none of it, nor that a caller went away.
func (x *exchange) remember(pair *pair, failure failure, object string, cause error) {
	word := causes[failure]
	switch {
	case x.review.isProbe() || strings.HasPrefix(x.agent, ProbeAgent):
		return
	case failure == failureCanceled && clock()-x.began < slowAfter:
		return
	}
	key := failureKey{x.ruleset, pair.from, x.target.version, word}
	if pair == x.target.unknown {
		key.to = otherVersion
	}
	x.handler.failures.add(key, nameOrNothing(object), truncate(cause.Error()))
}

// nameOrNothing returns a name that an object can have: the request may hold anything.
func nameOrNothing(name string) string {
	const longest = 2*253 + 1
	odd := func(r rune) bool { return r <= ' ' || r > '~' }
	if len(name) > longest || strings.ContainsFunc(name, odd) {
		return ""
	}
	return name
}

// truncate bounds a message, and leaves out what a terminal would obey.
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
