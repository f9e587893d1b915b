// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"maps"
	"slices"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
)

// world is the expected state of the cluster, computed from the steps alone.
type world struct {
	Subjects []*subject
	// Fleets exist all the time.
	Fleets []*fleet
	// Managers is the number of manager pods.
	Managers int
	// Idle is set if the previous step was waited for, so that nothing changes any more.
	Idle bool
}

// subject is one CustomResourceDefinition and its policy.
type subject struct {
	// Name is the first part of its group.
	Name string
	// Exists is set if the CRD exists, Policy if the policy exists.
	Exists, Policy bool
	// Versions are the versions of the CRD, Served and Deprecated subsets of them.
	Versions, Served, Deprecated []string
	Storage                      string
	// Fleet has the converter pods of the policy; empty for pods of its own.
	Fleet string
	// Wanted is spec.storageVersion of the policy, Retires its spec.retirement.
	Wanted  string
	Retires map[string]v1alpha1.RetirementAction
	// Accepts are the acceptedLosses by version. Blocked are the versions whose removal is blocked,
	// with the object whose value would be lost.
	Accepts map[string][]string
	Blocked map[string]string
	// Records are the writes of clients, by object. Stale are objects with a host but no port that
	// was overwritten at a version other than v1: the API server does not convert a write at the
	// stored version, so that the annotation may still have the host.
	Records map[string]record
	Stale   map[string]bool
	// MigrationsSuspended is set if only migrations are suspended, Suspended if the policy is.
	MigrationsSuspended, Suspended bool
	// Unsettled is set if the operator has pending work that a suspended policy would stop, and
	// without which the model cannot predict the cluster.
	Unsettled bool
	// Behind is set if objects may be stored at another version than the storage version.
	Behind bool
	// Overwrites counts overwrites of spec.conversion since the last change of the policy: the
	// operator reverts at most five in ten minutes.
	Overwrites int
}

var subjectNames = []string{"a", "b", "c"}

func newWorld() *world {
	w := &world{Idle: true, Managers: managersAtFirst}
	for _, name := range fleetNames {
		w.Fleets = append(w.Fleets, &fleet{Name: name, Replicas: replicasAtFirst})
	}
	for _, name := range subjectNames {
		w.Subjects = append(w.Subjects, &subject{Name: name})
	}
	return w
}

func (w *world) subject(name string) *subject {
	return w.Subjects[slices.IndexFunc(w.Subjects, func(s *subject) bool { return s.Name == name })]
}

// blocksRemoval reports whether an object blocks the removal of a version.
func (s *subject) blocksRemoval(name string) bool {
	return slices.Contains(slices.Collect(maps.Values(s.Blocked)), name)
}

func (s *subject) group() string { return groupOf(s.Name) }

func groupOf(name string) string { return name + ".soak.example.com" }

// crdOf returns the name of the CRD, which is also the name of the policy.
func crdOf(name string) string { return "crontabs." + groupOf(name) }

// subjects returns copies of all subjects.
func (w *world) subjects() []subject {
	var all []subject
	for _, s := range w.Subjects {
		all = append(all, *s.clone())
	}
	return all
}

func (s *subject) clone() *subject {
	copied := *s
	copied.Versions, copied.Served, copied.Deprecated = slices.Clone(s.Versions), slices.Clone(s.Served), slices.Clone(s.Deprecated)
	copied.Retires, copied.Accepts, copied.Blocked = maps.Clone(s.Retires), maps.Clone(s.Accepts), maps.Clone(s.Blocked)
	copied.Records, copied.Stale = maps.Clone(s.Records), maps.Clone(s.Stale)
	return &copied
}

// write applies a client's write.
func (s *subject) write(w write) {
	before := s.Records[w.Name]
	switch w.Do {
	case putObject:
		after := before.overwritten(w.Version, w.Record)
		s.Records = set(s.Records, w.Name, after)
		s.Stale = set(s.Stale, w.Name, w.Version != joined && (s.Stale[w.Name] || before.hostOnly() != ""))
	case deleteObject:
		delete(s.Records, w.Name)
		delete(s.Stale, w.Name)
	case labelObject:
	}
}

// blocker returns an object with a value that would be lost with the version. If the only such value
// may be stale, certain is false.
func (s *subject) blocker(version string, accepted []string) (name string, certain bool) {
	stale := false
	for _, name := range sortedKeys(s.Records) {
		if len(s.Records[name].wouldLose(version, accepted)) > 0 {
			return name, true
		}
		stale = stale || s.Stale[name]
	}
	return "", version != joined || !stale || accepts(accepted, hostOnlyPath)
}

// discard applies the removal of a version to the objects.
func (s *subject) discard(version string) {
	for name, is := range s.Records {
		s.Records[name] = is.without(version, s.Accepts[version])
	}
	if version == joined && accepts(s.Accepts[version], hostOnlyPath) {
		s.Stale = nil
	}
}

// set adds an entry to a map, which may be nil.
func set[V any](all map[string]V, key string, value V) map[string]V {
	if all == nil {
		all = map[string]V{}
	}
	all[key] = value
	return all
}

// active reports whether the policy exists and is not suspended.
func (s *subject) active() bool { return s.Policy && !s.Suspended }

// becomeIdle applies a wait until nothing changes any more.
func (w *world) becomeIdle() {
	w.Idle = true
	for _, s := range w.Subjects {
		s.Unsettled = false
		s.Behind = s.Behind && (!s.active() || s.MigrationsSuspended)
	}
}

// with adds a version to a set of versions.
func with(set []string, version string) []string { return ordered(append(slices.Clone(set), version)) }

func without(all []string, one string) []string {
	return slices.DeleteFunc(slices.Clone(all), func(each string) bool { return each == one })
}

// ordered sorts versions like the CRD.
func ordered(set []string) []string {
	return slices.DeleteFunc(slices.Clone(versions), func(version string) bool { return !slices.Contains(set, version) })
}
