// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
)

const (
	// hurriesAtMost is the number of consecutive steps without waiting.
	hurriesAtMost = 3
	// clientsAtMost is the number of concurrent clients.
	clientsAtMost = 4
	// objectNames is the number of objects that a subject can have.
	objectNames = 24
)

// sequence generates the steps of a seed.
type sequence struct {
	random  *rand.Rand
	world   *world
	number  int
	hurries int
}

func newSequence(seed uint64) *sequence {
	return &sequence{random: rand.New(rand.NewPCG(seed, seed)), world: newWorld()} //nolint:gosec // it must be reproducible
}

// choice is a possible step.
type choice struct {
	kind    kind
	subject *subject
	details []string
}

// next returns the next step.
func (q *sequence) next() step {
	chosen := q.choose()
	s := q.begin(chosen.kind.name)
	s.Detail = pick(q.random, chosen.details)
	before := map[string]*subject{}
	for _, each := range q.world.Subjects {
		before[each.Name] = each.clone()
	}
	if chosen.subject != nil {
		s.Subject = chosen.subject.Name
		if chosen.kind.apply != nil {
			chosen.kind.apply(chosen.subject, s.Detail)
		}
	}
	if chosen.kind.applyTo != nil {
		chosen.kind.applyTo(q.world, s.Detail)
	}
	if chosen.kind.timed {
		s.Seconds = 2 + q.random.IntN(8)
	}
	s.Writes = q.writes(before, chosen.kind.noWrites)
	for _, w := range s.Writes {
		q.world.subject(w.Subject).write(w)
	}
	s.Gentle = chosen.kind.gentle && q.world.Idle
	s.Waits = chosen.kind.waits || s.Gentle || q.hurries >= hurriesAtMost || q.random.IntN(100) < 60
	q.hurries++
	if s.Waits {
		q.hurries = 0
	}
	q.world.Idle = false
	if s.Waits {
		q.world.becomeIdle()
	}
	s.After, s.Fleets = q.world.subjects(), q.world.fleets()
	return s
}

func (q *sequence) begin(kind string) step {
	q.number++
	return step{Number: q.number, Kind: kind, Text: fmt.Sprintf("step %d", q.number)}
}

// finish returns steps that remove every subject.
func (q *sequence) finish() []step {
	var steps []step
	for _, subject := range q.world.Subjects {
		var names []string
		switch {
		case !subject.Exists:
		case !subject.Policy:
			names = []string{"adopt", "end"}
		default:
			names = []string{"end"}
		}
		for _, name := range names {
			s := q.begin(name)
			kindNamed(name).apply(subject, "")
			s.Subject, s.Waits, s.After, s.Fleets = subject.Name, true, q.world.subjects(), q.world.fleets()
			steps = append(steps, s)
		}
	}
	return steps
}

// choose picks one of the possible steps at random, by weight.
func (q *sequence) choose() choice {
	var possible []choice
	sum := 0
	for _, k := range kinds {
		if k.whenIdle && !q.world.Idle {
			continue
		}
		for _, s := range q.affected(k) {
			if details := k.possible(q.world, s); len(details) > 0 {
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

// possible returns the variants that are possible now.
func (k kind) possible(w *world, s *subject) []string {
	if k.detailsIn != nil {
		return k.detailsIn(w)
	}
	return k.details(s)
}

// affected returns the subjects that a kind can apply to.
func (q *sequence) affected(k kind) []*subject {
	if k.cluster {
		return []*subject{nil}
	}
	return q.world.Subjects
}

// writes picks random writes of clients, at versions that are served before and after the step. At
// most one client puts or deletes an object, and any number of clients label it, unless it is
// deleted. An object that keeps a version from being removed is only labelled, so that the version
// stays until the policy changes.
func (q *sequence) writes(before map[string]*subject, nobody bool) []write {
	if nobody {
		return nil
	}
	var writes []write
	owned, named := map[string]bool{}, map[string]bool{}
	for client := range q.random.IntN(clientsAtMost + 1) {
		for range 1 + q.random.IntN(3) {
			w, possible := q.write(client, before)
			object := w.Subject + "/" + w.Name
			switch {
			case !possible, w.Do != labelObject && q.world.subject(w.Subject).blocksRemoval(w.Name):
				continue
			case w.Do == labelObject && owned[object+" deleted"], w.Do != labelObject && owned[object], w.Do == deleteObject && named[object]:
				continue
			case w.Do == labelObject:
				if named[object+w.Label] {
					continue
				}
				named[object+w.Label] = true
			default:
				owned[object] = true
			}
			named[object] = true
			owned[object+" deleted"] = w.Do == deleteObject
			writes = append(writes, w)
		}
	}
	return writes
}

func (q *sequence) write(client int, before map[string]*subject) (write, bool) {
	s := pick(q.random, q.world.Subjects)
	was := before[s.Name]
	usable := slices.DeleteFunc(slices.Clone(s.Served), func(version string) bool { return !slices.Contains(was.Served, version) })
	if len(usable) == 0 {
		return write{}, false
	}
	w := write{Client: client, Subject: s.Name, Version: pick(q.random, usable), Label: fmt.Sprintf("client-%d", client)}
	w.Name = fmt.Sprintf("job-%02d", q.random.IntN(objectNames))
	w.Do = pick(q.random, doings)
	if w.Do == putObject {
		w.Record = q.record(w.Version)
	}
	return w, true
}

// doings are the operations of clients, by frequency.
var doings = []writeKind{putObject, putObject, putObject, putObject, labelObject, labelObject, labelObject, deleteObject}

// record returns a random record that a client writes at a version.
func (q *sequence) record(version string) record { return randomRecord(q.random, version == joined) }

// randomRecord returns a random record. If some may have a host alone, only v1 can express them.
func randomRecord(random *rand.Rand, hostAlone bool) record {
	r := record{HostPort: fmt.Sprintf("host-%d.example.com:%d", random.IntN(100), 1+random.IntN(65535))}
	if hostAlone && random.IntN(5) == 0 {
		r.HostPort = fmt.Sprintf("host-%d.example.com", random.IntN(100))
	}
	r.Replicas = random.Int64N(4)
	if random.IntN(2) == 0 {
		r.Note = fmt.Sprintf("note %d: ü, \"quotes\" and / slashes ~", random.IntN(1000))
	}
	for range random.IntN(3) {
		r.Tags = append(r.Tags, fmt.Sprintf("tag-%d", random.IntN(10)))
	}
	if random.IntN(2) == 0 {
		r.Timeout = 1<<53 + 1 + random.Int64N(1000) // more than a float64 can tell apart
	}
	return r
}

func pick[T any](random *rand.Rand, from []T) T { return from[random.IntN(len(from))] }

// sortedKeys returns the sorted keys of a map.
func sortedKeys[V any](of map[string]V) []string { return slices.Sorted(maps.Keys(of)) }
