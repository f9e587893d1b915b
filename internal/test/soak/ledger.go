// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"maps"
	"sync"
)

// entry is what an object must be.
type entry struct {
	Record record
	Labels map[string]string
	// WrittenAt is the version in which it was written last.
	WrittenAt string
}

// ledger keeps what clients have written. Whatever the operator and the cluster do,
// objects must be read like this. A policy that accepts losses with a version takes
// just those out of it; nothing else changes it.
type ledger struct {
	mu      sync.Mutex
	objects map[string]map[string]entry
}

func newLedger() *ledger { return &ledger{objects: map[string]map[string]entry{}} }

// get is what an object must be, and whether there is one.
func (l *ledger) get(subject, name string) (entry, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	found, exists := l.objects[subject][name]
	return found, exists
}

// put notes that a client has written a record at a version.
func (l *ledger) put(subject, name, version string, written record) {
	l.change(subject, name, func(e *entry) { e.Record, e.WrittenAt = written, version })
}

// label notes that a client has given an object a label.
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

// discard notes that a version is gone with what was accepted to be lost with it.
func (l *ledger) discard(subject, version string, accepted []string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for name, is := range l.objects[subject] {
		is.Record = is.Record.without(version, accepted)
		l.objects[subject][name] = is
	}
}

// remove notes that an object is gone.
func (l *ledger) remove(subject, name string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.objects[subject], name)
}

// forget notes that all objects of a subject are gone.
func (l *ledger) forget(subject string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.objects, subject)
}

// all are the objects of a subject.
func (l *ledger) all(subject string) map[string]entry {
	l.mu.Lock()
	defer l.mu.Unlock()
	return maps.Clone(l.objects[subject])
}
