// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"maps"
	"sync"
)

// entry is the expected content of an object.
type entry struct {
	Record record
	Labels map[string]string
	// WrittenAt is the version of the last write.
	WrittenAt string
}

// ledger records what clients wrote. Reads must return exactly this, whatever the operator and the
// cluster do. Only the accepted losses of a removed version are taken out.
type ledger struct {
	mu      sync.Mutex
	objects map[string]map[string]entry
}

func newLedger() *ledger { return &ledger{objects: map[string]map[string]entry{}} }

// get returns the expected content of an object, and whether it exists.
func (l *ledger) get(subject, name string) (entry, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	found, exists := l.objects[subject][name]
	return found, exists
}

// put records that a client wrote an object at a version.
func (l *ledger) put(subject, name, version string, written record) {
	l.change(subject, name, func(e *entry) { e.Record, e.WrittenAt = written, version })
}

// label records that a client labelled an object.
func (l *ledger) label(subject, name, key, value string) {
	l.change(subject, name, func(e *entry) {
		e.Labels = maps.Clone(e.Labels)
		if e.Labels == nil {
			e.Labels = map[string]string{}
		}
		e.Labels[key] = value
	})
}

func (l *ledger) change(subject, name string, change func(*entry)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.objects[subject] == nil {
		l.objects[subject] = map[string]entry{}
	}
	e := l.objects[subject][name]
	change(&e)
	l.objects[subject][name] = e
}

// discard records that a version was removed with its accepted losses.
func (l *ledger) discard(subject, version string, accepted []string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for name, is := range l.objects[subject] {
		is.Record = is.Record.without(version, accepted)
		l.objects[subject][name] = is
	}
}

func (l *ledger) remove(subject, name string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.objects[subject], name)
}

// forget removes all objects of a subject.
func (l *ledger) forget(subject string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.objects, subject)
}

// all returns the objects of a subject.
func (l *ledger) all(subject string) map[string]entry {
	l.mu.Lock()
	defer l.mu.Unlock()
	return maps.Clone(l.objects[subject])
}
