// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"maps"
	"slices"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
)

// world is what the cluster should look like after the steps so far. It is known
// from the steps alone.
type world struct {
	Subjects []*subject
	// Rests tells that the step before was waited for: nothing goes on any more.
	Rests bool
}

// subject is one CustomResourceDefinition and its policy.
type subject struct {
	// Name is the first part of its group.
	Name string
	// Exists tells whether there is a CustomResourceDefinition, and Policy whether a
	// policy.
	Exists, Policy bool
	// Versions are those of the CustomResourceDefinition; among them those that are
	// served, those that API servers warn of, and the one that is stored.
	Versions, Served, Deprecated []string
	Storage                      string
	// Wanted is spec.storageVersion of the policy, and Retires its spec.retirement.
	Wanted  string
	Retires map[string]v1alpha1.RetirementAction
	// Accepts are the acceptedLosses in it, and Kept the versions that are to be removed
	// and stay: by the object that has a value which would be lost with them.
	Accepts map[string][]string
	Kept    map[string]string
	// Records are what clients have written, by object. Stale are the objects that had a
	// host alone, which was overwritten at another version than v1: a write to a stored
	// object at its own version converts nothing, so that the annotation may still have it.
	Records map[string]record
	Stale   map[string]bool
	// Paused are the migrations, and Suspended all of the policy.
	Paused, Suspended bool
	// Unsettled tells that the operator has yet to do what it would not do suspended,
	// and without which the model would not know what the cluster looks like.
	Unsettled bool
	// Behind tells that objects may be stored in a version that is not the storage version.
	Behind bool
	// Overwrites of spec.conversion since the policy was changed last: the operator
	// undoes no more than five within ten minutes.
	Overwrites int
}

// subjectNames are the CustomResourceDefinitions of a run.
var subjectNames = []string{"a", "b"}

func newWorld() *world {
	w := &world{Rests: true}
	for _, name := range subjectNames {
		w.Subjects = append(w.Subjects, &subject{Name: name})
	}
	return w
}

// subject with a name.
func (w *world) subject(name string) *subject {
	return w.Subjects[slices.IndexFunc(w.Subjects, func(s *subject) bool { return s.Name == name })]
}

// keeps reports whether an object keeps a version.
func (s *subject) keeps(name string) bool {
	return slices.Contains(slices.Collect(maps.Values(s.Kept)), name)
}

// group of the CustomResourceDefinition.
func (s *subject) group() string { return groupOf(s.Name) }

func groupOf(name string) string { return name + ".soak.example.com" }

// crdOf is the name of the CustomResourceDefinition, and of the policy.
func crdOf(name string) string { return "crontabs." + groupOf(name) }

// subjects are copies of all.
func (w *world) subjects() []subject {
	var all []subject
	for _, s := range w.Subjects {
		all = append(all, *s.clone())
	}
	return all
}

// clone keeps what a subject is now.
func (s *subject) clone() *subject {
	copied := *s
	copied.Versions, copied.Served, copied.Deprecated = slices.Clone(s.Versions), slices.Clone(s.Served), slices.Clone(s.Deprecated)
	copied.Retires, copied.Accepts, copied.Kept = maps.Clone(s.Retires), maps.Clone(s.Accepts), maps.Clone(s.Kept)
	copied.Records, copied.Stale = maps.Clone(s.Records), maps.Clone(s.Stale)
	return &copied
}

// write is what a client has done to an object.
func (s *subject) write(w write) {
	before := s.Records[w.Name]
	switch w.Do {
	case putObject:
		after := before.overwritten(w.Version, w.Record)
		s.Records = set(s.Records, w.Name, after)
		s.Stale = set(s.Stale, w.Name, w.Version != joined && (s.Stale[w.Name] || before.lone() != ""))
	case deleteObject:
		delete(s.Records, w.Name)
		delete(s.Stale, w.Name)
	case labelObject:
	}
}

// keeper is an object that keeps a version: it has a value that would be lost with it.
// It is not certain where there is none but perhaps a stale one.
func (s *subject) keeper(version string, accepted []string) (name string, certain bool) {
	stale := false
	for _, name := range sortedKeys(s.Records) {
		if len(s.Records[name].wouldLose(version, accepted)) > 0 {
			return name, true
		}
		stale = stale || s.Stale[name]
	}
	return "", version != joined || !stale || accepts(accepted, loneHost)
}

// discard is what the removal of a version leaves of the objects.
func (s *subject) discard(version string) {
	for name, is := range s.Records {
		s.Records[name] = is.without(version, s.Accepts[version])
	}
	if version == joined && accepts(s.Accepts[version], loneHost) {
		s.Stale = nil
	}
}

// set adds to a map that may be nil.
func set[V any](all map[string]V, key string, value V) map[string]V {
	if all == nil {
		all = map[string]V{}
	}
	all[key] = value
	return all
}

// active reports whether there is a policy that changes things.
func (s *subject) active() bool { return s.Policy && !s.Suspended }

// rest is what a step leaves that is waited for.
func (w *world) rest() {
	w.Rests = true
	for _, s := range w.Subjects {
		s.Unsettled = false
		s.Behind = s.Behind && (!s.active() || s.Paused)
	}
}

// with is a set of versions and one more, and none of them twice.
func with(set []string, version string) []string { return ordered(append(slices.Clone(set), version)) }

// without are the texts but one.
func without(all []string, one string) []string {
	return slices.DeleteFunc(slices.Clone(all), func(each string) bool { return each == one })
}

// ordered are the versions of a set, as the CustomResourceDefinition lists them.
func ordered(set []string) []string {
	return slices.DeleteFunc(slices.Clone(versions), func(version string) bool { return !slices.Contains(set, version) })
}
