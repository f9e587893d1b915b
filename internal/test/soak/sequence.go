// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package soak

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
)

// Step is one action, and the writes of clients during it.
type Step struct {
	Number int
	action
	// Target is the affected subject or fleet, empty for the whole cluster, and Detail the variant.
	Target, Detail string
	Writes         []Write
	// Before and After are the expected states before and after the step.
	Before, After State
	// Gentle is set if no conversion may fail until nothing changes any more.
	Gentle bool
	// Waits is set if the next step waits until nothing changes any more.
	Waits bool
}

// object names an object at a version.
type object struct{ Subject, Name, Version string }

func (o object) String() string { return fmt.Sprintf("%s/%s at %s", o.Subject, o.Name, o.Version) }

// Write is one operation of a client: it creates or replaces an object at a version, or deletes it.
type Write struct {
	object
	Delete bool
	record
}

func (w Write) String() string {
	if w.Delete {
		return "delete " + w.object.String()
	}
	return "put " + w.object.String()
}

// subject and fleet return the expected state of the target after the step, if it is one.
func (s Step) subject() *Subject                   { return s.After.Subjects[s.Target] }
func (s Step) fleet() *v1alpha1.ConverterFleetSpec { return s.After.Fleets[s.Target] }

// text is unique per step, for fields such as triggers.
func (s Step) text() string { return fmt.Sprintf("step-%d", s.Number) }

// String returns the step in one line.
func (s Step) String() string {
	line := strings.TrimSuffix(strings.TrimSpace(s.Name+" "+s.Target)+": "+s.Detail, ": ")
	if len(s.Writes) > 0 {
		line += fmt.Sprintf("; meanwhile clients %v", s.Writes)
	}
	if !s.Waits {
		line += "; without waiting"
	}
	return fmt.Sprintf("%3d  %s", s.Number, line)
}

// writesAtMost is the number of writes to objects of a subject during a step, objectNames that of their names.
const writesAtMost, objectNames = 3, 24

// Sequence generates the steps of a seed.
type Sequence struct {
	State
	random *rand.Rand
	// lots has each action as often as its weight says.
	lots   []action
	number int
	// idle is set if the previous step was waited for, so that nothing changes any more.
	idle bool
}

// NewSequence returns the sequence of a seed.
func NewSequence(seed uint64) *Sequence {
	q := &Sequence{State: newState(subjectNames, fleetNames), random: rand.New(rand.NewPCG(seed, seed)), idle: true} //nolint:gosec // it must be reproducible
	for _, a := range actions {
		q.lots = append(q.lots, slices.Repeat([]action{a}, a.weight)...)
	}
	return q
}

// NewPlannedSequence returns the sequence of a seed for the planner's world: one subject with pods of its own.
func NewPlannedSequence(seed uint64) *Sequence {
	q := NewSequence(seed)
	q.State = newState(subjectNames[:1], nil)
	q.lots = slices.DeleteFunc(q.lots, func(a action) bool { return a.real })
	return q
}

// Next returns the next step: a possible action, at random by weight.
func (q *Sequence) Next() Step {
	for {
		a := pick(q.random, q.lots)
		targets := q.targets(a)
		if len(targets) == 0 || a.idle && !q.idle {
			continue
		}
		target := pick(q.random, targets)
		variants := slices.DeleteFunc(slices.Clone(a.each()), func(variant string) bool {
			inWorld := !slices.Contains(fleetNames, variant) || q.Fleets[variant] != nil
			return !inWorld || a.possible != nil && !a.possible(q.Subjects[target], variant)
		})
		if len(variants) > 0 {
			return q.take(a, target, pick(q.random, variants))
		}
	}
}

// targets returns the fleets and subjects that an action can affect now, or an empty name for the cluster.
func (q *Sequence) targets(a action) []string {
	if a.onFleet == nil && a.on == nil {
		return []string{""}
	}
	return slices.DeleteFunc(slices.Concat(fleetNames, subjectNames), func(name string) bool {
		fleet, subject := q.Fleets[name], q.Subjects[name]
		return (fleet == nil || a.onFleet == nil || !a.onFleet(q.State, name)) && (subject == nil || a.on == nil || !a.on(subject))
	})
}

// take applies a step to the expected state.
func (q *Sequence) take(a action, name, detail string) Step {
	q.number++
	s := Step{Number: q.number, action: a, Target: name, Detail: detail, Before: q.State, After: q.clone(), Gentle: a.gentle && q.idle}
	q.State = s.After
	if a.change != nil {
		a.change(s.subject(), s)
	}
	if !a.breaks {
		s.Writes = q.writes(s.Before)
	}
	q.idle = a.waits || s.Gentle || q.random.IntN(100) < 60
	s.Waits = q.idle
	return s
}

// writes applies random writes of clients, each to another object, at versions that are served before and
// after the step. An object that keeps a version from being removed stays as it is until the policy changes.
func (q *Sequence) writes(before State) (all []Write) {
	for _, name := range slices.Sorted(maps.Keys(q.Subjects)) {
		s := q.Subjects[name]
		usable := slices.DeleteFunc(s.served(), func(version string) bool { return !slices.Contains(before.Subjects[name].served(), version) })
		if len(usable) == 0 {
			continue
		}
		for _, number := range q.random.Perm(objectNames)[:q.random.IntN(writesAtMost+1)] {
			w := Write{object{name, fmt.Sprintf("job-%02d", number), pick(q.random, usable)}, q.random.IntN(8) == 0, randomRecord(q.random)}
			was, exists := s.Objects[w.Name]
			if w.Delete && !exists || slices.ContainsFunc(versions, func(version string) bool { return s.blocker(version) == w.Name }) {
				continue
			}
			s.Objects[w.Name] = was.overwritten(w.Version, w.record)
			if w.Delete {
				delete(s.Objects, w.Name)
			}
			all = append(all, w)
		}
	}
	return all
}

func pick[T any](random *rand.Rand, from []T) T { return from[random.IntN(len(from))] }
