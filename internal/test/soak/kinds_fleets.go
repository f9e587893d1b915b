// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"slices"
	"strings"
)

// Steps of fleets, and of policies that use them: api/docs/fleets.md. A suspended or abandoned
// policy writes no CRD and stores no ruleset, so that its fleet gets no step that needs that.

// fleet is the expected state of a ConverterFleet.
type fleet struct {
	Name     string
	Replicas int
}

var fleetNames = []string{"blue", "green"}

const (
	// replicasAtFirst is the default of spec.replicas of a fleet.
	replicasAtFirst = 3
	// replicasAtMost bounds the pods on the only node.
	replicasAtMost = 4
	// managersAtFirst is the number of manager pods after the installation.
	managersAtFirst = 2
)

// ownPods is the place of a policy that uses no fleet.
const ownPods = "pods of its own"

// places returns the places of a policy, each after a word.
func places(word string) []string {
	all := []string{word + " " + ownPods}
	for _, name := range fleetNames {
		all = append(all, word+" fleet "+name)
	}
	return all
}

// fleetAt returns the fleet of a place; empty for pods of its own.
func fleetAt(place string) string {
	if strings.HasSuffix(place, ownPods) {
		return ""
	}
	return place[strings.LastIndexByte(place, ' ')+1:]
}

func beginnings(s *subject) []string { return when(!s.Exists, places("in")...) }

func whereOwnPods(s *subject) []string { return when(s.active() && s.Fleet == "", "") }

// movable returns the other places.
func movable(s *subject) []string {
	return when(s.active(), slices.DeleteFunc(places("to"), func(place string) bool { return fleetAt(place) == s.Fleet })...)
}

func moved(s *subject, place string) {
	s.Fleet, s.Unsettled, s.Overwrites = fleetAt(place), true, 0
}

// users returns the subjects that use a fleet, also without a policy.
func (w *world) users(name string) []*subject {
	return slices.DeleteFunc(slices.Clone(w.Subjects), func(s *subject) bool { return !s.Exists || s.Fleet != name })
}

func (w *world) fleet(name string) *fleet {
	return w.Fleets[slices.IndexFunc(w.Fleets, func(f *fleet) bool { return f.Name == name })]
}

// fleets returns copies of all fleets.
func (w *world) fleets() []fleet {
	var all []fleet
	for _, f := range w.Fleets {
		all = append(all, *f)
	}
	return all
}

// usedByActive returns the fleets whose users all follow.
func usedByActive(w *world) []string {
	var all []string
	for _, f := range w.Fleets {
		users := w.users(f.Name)
		if len(users) > 0 && !slices.ContainsFunc(users, func(s *subject) bool { return !s.active() }) {
			all = append(all, f.Name)
		}
	}
	return all
}

// replaceable returns the fleets whose users can all move.
func replaceable(w *world) []string {
	return slices.DeleteFunc(usedByActive(w), func(name string) bool {
		return slices.ContainsFunc(w.users(name), func(s *subject) bool { return s.Unsettled })
	})
}

// fleetReplaced: the users have moved to the other fleet, and a new fleet has the name.
func fleetReplaced(w *world, name string) {
	for _, s := range w.users(name) {
		moved(s, "to fleet "+otherFleet(name))
	}
	w.fleet(name).Replicas = replicasAtFirst
}

func otherFleet(name string) string { return without(fleetNames, name)[0] }

// scalable returns other sizes of the fleets: "blue to 2".
func scalable(w *world) []string {
	var all []string
	for _, f := range w.Fleets {
		for replicas := 1; replicas <= replicasAtMost; replicas++ {
			if replicas != f.Replicas {
				all = append(all, fmt.Sprintf("%s to %d", f.Name, replicas))
			}
		}
	}
	return all
}

func readSize(detail string) (name string, size int) {
	_, _ = fmt.Sscanf(detail, "%s to %d", &name, &size)
	return name, size
}

func scaled(w *world, detail string) {
	name, replicas := readSize(detail)
	w.fleet(name).Replicas = replicas
}

// managerSizes returns other numbers of managers: "from 2 to 3". One of them leads.
func managerSizes(w *world) []string {
	var all []string
	for size := 1; size <= 3; size++ {
		if size != w.Managers {
			all = append(all, fmt.Sprintf("from %d to %d", w.Managers, size))
		}
	}
	return all
}

func readManagers(detail string) (size int) {
	_, _ = fmt.Sscanf(detail, "from %d to %d", new(int), &size)
	return size
}

func scaledManager(w *world, detail string) { w.Managers = readManagers(detail) }

// ofFleet returns a detail with the name of a fleet last, and fleetOf the name.
func ofFleet(what, name string) string { return what + " of " + name }

func cutFleet(detail string) (what, name string) {
	i := strings.LastIndex(detail, " of ")
	return detail[:i], detail[i+len(" of "):]
}

const (
	onePod    = "one"
	allButOne = "all but one"
)

// podsOfFleets leave one pod.
func podsOfFleets(w *world) []string {
	var all []string
	for _, f := range w.Fleets {
		if f.Replicas > 1 {
			all = append(all, ofFleet(onePod, f.Name))
		}
		if f.Replicas > 2 {
			all = append(all, ofFleet(allButOne, f.Name))
		}
	}
	return all
}

// Edits of the ConfigMaps of a fleet.
const (
	deleteRulesets = "deleting all"
	deleteRuleset  = "deleting one"
	damageRuleset  = "damaging one"
)

func rulesetEdits(w *world) []string {
	return eachOf(usedByActive(w), deleteRulesets, deleteRuleset, damageRuleset)
}

var fleetChildNames = []string{"Deployment", "Service", "serving certificate", "authority"}

func fleetChildren(w *world) []string { return eachOf(usedByActive(w), fleetChildNames...) }

func eachOf(fleets []string, whats ...string) []string {
	var all []string
	for _, name := range fleets {
		for _, what := range whats {
			all = append(all, ofFleet(what, name))
		}
	}
	return all
}

// unsettledIn: all users of a fleet have work to do. The detail ends with its name.
func unsettledIn(w *world, detail string) {
	for _, s := range w.users(detail[strings.LastIndexByte(detail, ' ')+1:]) {
		s.Unsettled = true
	}
}
