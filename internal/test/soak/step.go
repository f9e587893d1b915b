// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"slices"
	"strings"
)

// step is one action or failure, and the writes of clients during it.
type step struct {
	Number int
	Kind   string
	// Subject is the affected subject; empty for the whole cluster.
	Subject string
	// Detail is the variant of the kind.
	Detail string
	// Text is unique per step, for fields such as triggers.
	Text string
	// Seconds is the duration, for kinds that have one.
	Seconds int
	Writes  []write
	// After is the state of the model after the step.
	After []subject
	// Fleets are the fleets of the model after the step.
	Fleets []fleet
	// Gentle is set if no conversion may fail until nothing changes any more.
	Gentle bool
	// Waits is set if the next step waits until nothing changes any more.
	Waits bool
}

// write is one operation of a client on an object.
type write struct {
	Client        int
	Subject, Name string
	Version       string
	Do            writeKind
	// Record replaces the record of the object.
	Record record
	// Label is the key of the label, named after the client.
	Label string
}

type writeKind string

const (
	// putObject creates an object, or reads it and writes another record in its place.
	putObject writeKind = "put"
	// labelObject patches a label. Several clients may do that at the same time.
	labelObject writeKind = "label"
	// deleteObject deletes an object, which may not exist.
	deleteObject writeKind = "delete"
)

// String returns the step in one line.
func (s step) String() string {
	words := []string{fmt.Sprintf("%3d  %s", s.Number, s.Kind)}
	for _, word := range []string{s.Subject, s.Detail} {
		if word != "" {
			words = append(words, word)
		}
	}
	if s.Seconds > 0 {
		words = append(words, fmt.Sprintf("for %d s", s.Seconds))
	}
	line := strings.Join(words, " ")
	if len(s.Writes) > 0 {
		line += "; meanwhile " + s.clients()
	}
	if version, blocker := s.blockedRemoval(); blocker != "" {
		line += "; " + version + " stays, as " + blocker + " has values of it"
	}
	if !s.Waits {
		line += "; without waiting"
	}
	return line
}

// blockedRemoval returns the version that this step is to remove, and the object that blocks the removal, if
// any.
func (s step) blockedRemoval() (version, blocker string) {
	if s.Kind != retirement {
		return "", ""
	}
	version, _, _ = readRetirement(s.Detail)
	return version, s.subject().Blocked[version]
}

// clients describes the writes: "client 0 puts a/x at v1".
func (s step) clients() string {
	var says []string
	for _, w := range s.Writes {
		says = append(says, fmt.Sprintf("client %d %ss %s/%s at %s", w.Client, w.Do, w.Subject, w.Name, w.Version))
	}
	return strings.Join(says, ", ")
}

// subject returns the subject of the step as it should be afterwards.
func (s step) subject() subject {
	return s.After[slices.IndexFunc(s.After, func(each subject) bool { return each.Name == s.Subject })]
}
