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
)

// expectSameInAnyOrder decides once more about the same, listed in another order:
// each decision of all stories does so.
func (w *world) expectSameInAnyOrder(decided plan.Plan) {
	w.t.Helper()
	w.shuffles++
	mixed := shuffled(w.observed, rand.New(rand.NewPCG(0, w.shuffles))) //nolint:gosec // orders, and no secrets
	again := plan.Make(mixed)
	if mixed.CRD != nil {
		*mixed.CRD = *w.observed.CRD // steps carry it as it is
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
func shuffled(observed plan.Observed, random *rand.Rand) plan.Observed {
	observed.Leftovers = reordered(observed.Leftovers, random)
	observed.Revisions = reordered(observed.Revisions, random)
	observed.Pods = reordered(observed.Pods, random)
	observed.Ending = reordered(observed.Ending, random)
	observed.External.Endpoints = reordered(observed.External.Endpoints, random)
	observed.Runs = reordered(observed.Runs, random)
	for i := range observed.Pods {
		observed.Pods[i].Revisions = reordered(observed.Pods[i].Revisions, random)
	}
	if observed.CRD != nil {
		observed.CRD = observed.CRD.DeepCopy()
		observed.CRD.ManagedFields = reordered(observed.CRD.ManagedFields, random)
		observed.CRD.Status.Conditions = reordered(observed.CRD.Status.Conditions, random)
	}
	return observed
}

func reordered[T any](list []T, random *rand.Rand) []T {
	list = slices.Clone(list)
	random.Shuffle(len(list), func(i, j int) { list[i], list[j] = list[j], list[i] })
	return list
}
