// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import "slices"

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
	// Versions are those of the CustomResourceDefinition, the served ones among them,
	// and the one that is stored.
	Versions, Served []string
	Storage          string
	Paused           bool
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
	copied.Versions, copied.Served = slices.Clone(s.Versions), slices.Clone(s.Served)
	return &copied
}

// without are the texts but one.
func without(all []string, one string) []string {
	return slices.DeleteFunc(slices.Clone(all), func(each string) bool { return each == one })
}

// ordered are the versions of a set, as the CustomResourceDefinition lists them.
func ordered(set []string) []string {
	return slices.DeleteFunc(slices.Clone(versions), func(version string) bool { return !slices.Contains(set, version) })
}
