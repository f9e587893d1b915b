// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"slices"
	"strings"
)

// step is one thing that happens, and what clients write meanwhile.
type step struct {
	Number int
	Kind   string
	// Subject is what it happens to; empty for the cluster as a whole.
	Subject string
	// Detail says what exactly, in the words of its kind.
	Detail string
	// Text is new in every step, for fields of which any change counts.
	Text string
	// Seconds that it lasts, where it lasts.
	Seconds int
	Writes  []write
	// After is what the subjects should be then.
	After []subject
	// Waits tells that the next step comes once the cluster has come to rest.
	Waits bool
}

// write is what one client does with one object.
type write struct {
	Client        int
	Subject, Name string
	Version       string
	Do            writeKind
	// Record is put in place of the object's own.
	Record record
	// Label is given to the object under the client's name.
	Label string
}

type writeKind string

const (
	// putObject creates an object, or reads it and writes another record in its place.
	putObject writeKind = "put"
	// labelObject patches a label. Several clients may do it at once.
	labelObject writeKind = "label"
	// deleteObject deletes an object that may not exist.
	deleteObject writeKind = "delete"
)

// String is the step in one line.
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
	if version, keeper := s.kept(); keeper != "" {
		line += "; " + version + " stays, as " + keeper + " has values of it"
	}
	if !s.Waits {
		line += "; without waiting"
	}
	return line
}

// kept is a version that is to be removed by this step, and the object that keeps it;
// no object where it goes.
func (s step) kept() (version, keeper string) {
	if s.Kind != retirement {
		return "", ""
	}
	version, _, _ = readRetirement(s.Detail)
	return version, s.subject().Kept[version]
}

// clients says who writes what: "client 0 puts a/x at v1".
func (s step) clients() string {
	var says []string
	for _, w := range s.Writes {
		says = append(says, fmt.Sprintf("client %d %ss %s/%s at %s", w.Client, w.Do, w.Subject, w.Name, w.Version))
	}
	return strings.Join(says, ", ")
}

// subject is what the step's subject should be after it.
func (s step) subject() subject {
	return s.After[slices.IndexFunc(s.After, func(each subject) bool { return each.Name == s.Subject })]
}
