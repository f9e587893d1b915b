// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package plan_test

import (
	"encoding/json"
	"math/rand/v2"
	"slices"
	"strings"

	"github.com/google/go-cmp/cmp"

	"github.com/conversion-operator/conversion-operator/internal/plan"
	"github.com/conversion-operator/conversion-operator/internal/plan/observed"
)

// expectSameInAnyOrder decides again about the same, listed in another order:
// each decision of all stories does so.
func (w *world) expectSameInAnyOrder(decided plan.Plan) {
	w.t.Helper()
	w.shuffles++
	mixed := shuffled(w.observed, rand.New(rand.NewPCG(0, w.shuffles))) //nolint:gosec // orders, and no secrets
	again := plan.Make(mixed)
	if mixed.CRD != nil {
		*mixed.CRD = *w.observed.CRD // steps carry it unchanged
	}
	before, after := w.asText(decided), w.asText(again)
	if before != after {
		w.t.Errorf("the same was observed in another order, and something else was decided (-before +after):\n%s",
			cmp.Diff(strings.Split(before, "\n"), strings.Split(after, "\n")))
	}
}

// asText is a plan with its steps and their types, a line for each.
func (w *world) asText(decided plan.Plan) string {
	w.t.Helper()
	lines := []any{decided.RecheckAfter, decided.Status}
	for _, step := range decided.Steps {
		lines = append(lines, w.name(step), step)
	}
	var text strings.Builder
	encoder := json.NewEncoder(&text)
	for _, line := range lines {
		if err := encoder.Encode(line); err != nil {
			w.t.Fatal(err)
		}
	}
	return text.String()
}

// shuffled is the same in another order. What clients wrote keeps its order: users
// find their lists as they wrote them.
func shuffled(state observed.Cluster, random *rand.Rand) observed.Cluster {
	state.Leftovers = reordered(state.Leftovers, random)
	state.Revisions = reordered(state.Revisions, random)
	state.Pods = reordered(state.Pods, random)
	state.Ending = reordered(state.Ending, random)
	state.External.Endpoints = reordered(state.External.Endpoints, random)
	state.Fleets = reordered(state.Fleets, random)
	state.Runs = reordered(state.Runs, random)
	for i := range state.Pods {
		state.Pods[i].Revisions = reordered(state.Pods[i].Revisions, random)
	}
	if state.CRD != nil {
		state.CRD = state.CRD.DeepCopy()
		state.CRD.ManagedFields = reordered(state.CRD.ManagedFields, random)
		state.CRD.Status.Conditions = reordered(state.CRD.Status.Conditions, random)
	}
	return state
}

func reordered[T any](list []T, random *rand.Rand) []T {
	list = slices.Clone(list)
	random.Shuffle(len(list), func(i, j int) { list[i], list[j] = list[j], list[i] })
	return list
}
