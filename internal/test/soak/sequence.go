// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package soak

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
)

// Step is one action or failure, and the writes of clients during it.
type Step struct {
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
	Writes  []Write
	// Before and After are the states of the subjects before and after the step, Fleets those of the
	// fleets after it.
	Before, After []Subject
	Fleets        []fleet
	// Gentle is set if no conversion may fail until nothing changes any more.
	Gentle bool
	// Waits is set if the next step waits until nothing changes any more.
	Waits bool
}

// Write is one operation of a client on an object.
type Write struct {
	Client                 int
	Subject, Name, Version string
	Do                     string
	// record replaces the record of the object.
	record
}

const (
	// putObject creates an object, or reads it and writes another record in its place.
	putObject = "put"
	// labelObject patches a label of an object. Several clients may do that at the same time.
	labelObject  = "label"
	deleteObject = "delete"
)

// doings are the operations of clients, by frequency.
var doings = []string{putObject, putObject, putObject, putObject, labelObject, labelObject, labelObject, deleteObject}

func (w Write) label() string { return fmt.Sprintf("client-%d", w.Client) }

func (w Write) String() string {
	return fmt.Sprintf("client %d %ss %s/%s at %s", w.Client, w.Do, w.Subject, w.Name, w.Version)
}

// String returns the step in one line.
func (s Step) String() string {
	line := strings.Join(strings.Fields(fmt.Sprintf("%s %s %s", s.Kind, s.Subject, s.Detail)), " ")
	if s.Seconds > 0 {
		line += fmt.Sprintf(" for %d s", s.Seconds)
	}
	if len(s.Writes) > 0 {
		var writes []string
		for _, w := range s.Writes {
			writes = append(writes, w.String())
		}
		line += "; meanwhile " + strings.Join(writes, ", ")
	}
	if version, blocker := s.blockedRemoval(); blocker != "" {
		line += "; " + version + " stays, as " + blocker + " has values of it"
	}
	if !s.Waits {
		line += "; without waiting"
	}
	return fmt.Sprintf("%3d  %s", s.Number, line)
}

func lines(steps []Step) string {
	var all strings.Builder
	for _, s := range steps {
		fmt.Fprintln(&all, s)
	}
	return all.String()
}

// blockedRemoval returns the version that this step is to remove, and the object that blocks the
// removal, if any.
func (s Step) blockedRemoval() (version, blocker string) {
	if s.Kind != retirement {
		return "", ""
	}
	version, _, _ = readRetirement(s.Detail)
	return version, in(s.After, s.Subject).Blocked[version]
}

// in returns a subject of a state.
func in(all []Subject, name string) Subject {
	return all[slices.IndexFunc(all, func(s Subject) bool { return s.Name == name })]
}

const (
	// hurriesAtMost is the number of consecutive steps without waiting.
	hurriesAtMost = 3
	// clientsAtMost is the number of concurrent clients, objectNames of objects of a subject.
	clientsAtMost, objectNames = 4, 24
)

// Sequence generates the steps of a seed.
type Sequence struct {
	random  *rand.Rand
	model   *model
	kinds   []kind
	number  int
	hurries int
}

// NewSequence returns the sequence of a seed.
func NewSequence(seed uint64) *Sequence { return newSequence(seed, kinds, subjectNames...) }

func newSequence(seed uint64, kinds []kind, subjects ...string) *Sequence {
	return &Sequence{random: rand.New(rand.NewPCG(seed, seed)), kinds: kinds, model: newModel(subjects...)} //nolint:gosec // it must be reproducible
}

// choice is a possible step.
type choice struct {
	kind    kind
	subject *Subject
	details []string
}

// Next returns the next step.
func (q *Sequence) Next() Step {
	chosen := q.choose()
	s := q.begin(chosen.kind.name)
	s.Detail = pick(q.random, chosen.details)
	q.apply(chosen, &s)
	if chosen.kind.timed {
		s.Seconds = 2 + q.random.IntN(8)
	}
	if !chosen.kind.noWrites {
		s.Writes = q.writes(s.Before)
	}
	for _, w := range s.Writes {
		q.model.subject(w.Subject).write(w)
	}
	s.Gentle = chosen.kind.gentle && q.model.Idle
	s.Waits = chosen.kind.waits || s.Gentle || q.hurries >= hurriesAtMost || q.random.IntN(100) < 60
	q.end(&s)
	return s
}

// Finish returns steps that remove every subject.
func (q *Sequence) Finish() []Step {
	var steps []Step
	for _, subject := range q.model.Subjects {
		for _, name := range []string{"adopt", "end"} {
			if !subject.Exists || name == "adopt" && subject.Policy != nil {
				continue
			}
			s := q.begin(name)
			q.apply(choice{kind: kindNamed(name), subject: subject}, &s)
			s.Waits = true
			q.end(&s)
			steps = append(steps, s)
		}
	}
	return steps
}

func (q *Sequence) begin(kind string) Step {
	q.number++
	return Step{Number: q.number, Kind: kind, Text: fmt.Sprintf("step %d", q.number), Before: q.model.subjects()}
}

func (q *Sequence) apply(chosen choice, s *Step) {
	if chosen.subject != nil {
		s.Subject = chosen.subject.Name
	}
	if chosen.kind.policy {
		chosen.subject.Overwrites = 0
	}
	if chosen.kind.apply != nil {
		chosen.kind.apply(q.model, chosen.subject, *s)
	}
}

func (q *Sequence) end(s *Step) {
	q.hurries++
	q.model.Idle = false
	if s.Waits {
		q.hurries = 0
		q.model.becomeIdle()
	}
	s.After, s.Fleets = q.model.subjects(), slices.Clone(q.model.Fleets)
}

// choose picks one of the possible steps at random, by weight.
func (q *Sequence) choose() choice {
	var possible []choice
	sum := 0
	for _, k := range q.kinds {
		if k.whenIdle && !q.model.Idle {
			continue
		}
		affected := q.model.Subjects
		if k.cluster {
			affected = []*Subject{nil}
		}
		for _, s := range affected {
			details := []string{""}
			if k.details != nil {
				details = k.details(q.model, s)
			}
			if len(details) > 0 {
				possible = append(possible, choice{k, s, details})
				sum += k.weight
			}
		}
	}
	drawn := q.random.IntN(sum)
	for _, each := range possible {
		if drawn -= each.kind.weight; drawn < 0 {
			return each
		}
	}
	return possible[len(possible)-1]
}

// writes picks random writes of clients, at versions that are served before and after the step. Of each
// object, at most one client puts or deletes it, and each client labels it at most once, unless it is
// deleted. An object that keeps a version from being removed is only labelled, so that the version stays
// until the policy changes. Only objects that exist before the step are labelled or deleted.
func (q *Sequence) writes(before []Subject) []Write {
	var writes []Write
	owned, labelled := map[string]string{}, map[string]bool{}
	for client := range q.random.IntN(clientsAtMost + 1) {
		for range 1 + q.random.IntN(3) {
			w, possible := q.write(client, before)
			object := w.Subject + "/" + w.Name
			label := object + " " + w.label()
			switch {
			case !possible, owned[object] == deleteObject:
				continue
			case w.Do == labelObject && labelled[label], w.Do != labelObject && owned[object] != "", w.Do == deleteObject && labelled[object]:
				continue
			case w.Do == labelObject:
				labelled[object], labelled[label] = true, true
			default:
				owned[object] = w.Do
			}
			writes = append(writes, w)
		}
	}
	return writes
}

func (q *Sequence) write(client int, before []Subject) (Write, bool) {
	s := pick(q.random, q.model.Subjects)
	was := in(before, s.Name)
	usable := slices.DeleteFunc(slices.Clone(s.Served), func(version string) bool { return !slices.Contains(was.Served, version) })
	if len(usable) == 0 {
		return Write{}, false
	}
	w := Write{Client: client, Subject: s.Name, Version: pick(q.random, usable), Do: pick(q.random, doings)}
	w.Name = fmt.Sprintf("job-%02d", q.random.IntN(objectNames))
	if w.Do == putObject {
		w.record = randomRecord(q.random)
	}
	_, exists := s.Objects[w.Name]
	return w, (exists || w.Do == putObject) && (w.Do == labelObject || !s.blocksRemoval(w.Name))
}

func randomRecord(random *rand.Rand) record {
	r := record{HostPort: fmt.Sprintf("host-%d.example.com:%d", random.IntN(100), 1+random.IntN(65535)), Replicas: random.Int64N(4), Own: map[string]any{}}
	if random.IntN(2) == 0 {
		r.Own[joined] = fmt.Sprintf("note %d: ü, \"quotes\" and / slashes ~", random.IntN(1000))
	}
	var tags []any
	for range random.IntN(3) {
		tags = append(tags, fmt.Sprintf("tag-%d", random.IntN(10)))
	}
	if len(tags) > 0 {
		r.Own[hub] = tags
	}
	if random.IntN(2) == 0 {
		r.Own[nested] = 1<<53 + 1 + random.Int64N(1000) // more than a float64 can tell apart
	}
	return r
}

func pick[T any](random *rand.Rand, from []T) T { return from[random.IntN(len(from))] }

// NewPlannedSequence returns the sequence of a seed for the planner's world: one subject with pods of its
// own, no failures, no end and no abandonment of a policy, and no removal with what it discards.
func NewPlannedSequence(seed uint64) *Sequence {
	var planned []kind
	for _, k := range kinds {
		if k.cluster && k.name != "write" || k.name == "end" || k.name == "abandon policy" {
			continue
		}
		if details := k.details; details != nil {
			k.details = func(m *model, s *Subject) []string {
				return slices.DeleteFunc(slices.Clone(details(m, s)), func(detail string) bool {
					return strings.Contains(detail, " fleet ") || strings.Contains(detail, " to Remove")
				})
			}
		}
		planned = append(planned, k)
	}
	return newSequence(seed, planned, "a")
}
