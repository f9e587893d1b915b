// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package plan_test

import (
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"

	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
	"github.com/conversion-operator/conversion-operator/internal/operator/plan"
	"github.com/conversion-operator/conversion-operator/internal/operator/plan/step"
	"github.com/conversion-operator/conversion-operator/internal/test/expect"
	"github.com/conversion-operator/conversion-operator/internal/test/golden"
)

// changes are by name what happens in a world, one at a time.
type changes map[string]func(*world)

// TestDecisions changes one thing in a world, and records what is decided: the conditions that differ
// from before, the steps, and when it looks again. Run with -update to write the golden files.
func TestDecisions(t *testing.T) {
	for name, group := range map[string]struct {
		start func(*testing.T) *world
		changes
	}{
		"gates":                  {active, gateChanges()},
		"image":                  {by(imageYAML), imageChanges},
		"service":                {by(serviceYAML), serviceChanges},
		"url":                    {by(urlYAML), changes{"nothing": func(*world) {}}},
		"none":                   {by(noneYAML), noneChanges},
		"beginning":              {by(""), beginnings()},
		"accounts":               {by(imageYAML), accountChanges()},
		"patches":                {active, patchChanges()},
		"pods-in-trouble":        {inTrouble, podTroubles()},
		"replacing":              {active, podChanges},
		"one-node":               {crowded, nodeChanges},
		"switch":                 {switching, switchChanges},
		"rules-change":           {changingRulesNow, ruleChanges},
		"drift":                  {active, foreignWrites},
		"drift-repair":           {dropped, repairChanges},
		"drift-contested":        {contested, contestChanges},
		"claims":                 {ofClaims, changes{"active": func(*world) {}, "deleted": (*world).delete}},
		"deletion":               {deleted, deletionChanges},
		"rights-left":            {withRights, leftRights},
		"upkeep":                 {renewalDue, upkeepChanges},
		"runs":                   {running, runChanges()},
		"runs-that-start":        {starting, startChanges},
		"certificates-of-others": {ofOthers, damagedCertificates()},
		"injected":               {ofOthers, injectedBundles()},
		"deadlocks":              {by(""), deadlocks()},
		"bootstrap":              {active, dependencies()},
		"fleet-lost-rulesets":    {sabotagedFleet, lossesInFleet},
		"fleet-move":             {moving, moveChanges},
		"fleet-stuck":            {stuckOnWayToFleet, lossesDuringAMove("")},
		"own-pods-stuck":         {stuckOnWayToOwnPods, lossesDuringAMove("default")},
	} {
		t.Run(name, func(t *testing.T) {
			var text strings.Builder
			for _, change := range slices.Sorted(maps.Keys(group.changes)) {
				t.Run(change, func(t *testing.T) {
					w := from(t, "decisions: "+name, group.start)
					text.WriteString("# " + change + "\n" + w.decide(group.changes[change]) + "\n")
				})
			}
			golden.Check(t, text.String(), "decisions", name+".txt")
		})
	}
}

// by is an active world with this policy, or a new one without a CustomResourceDefinition if it is empty.
func by(policy string) func(*testing.T) *world {
	return func(t *testing.T) *world {
		t.Helper()
		if policy == "" {
			return newWorld(t, policyYAML)
		}
		return activeBy(t, policy)
	}
}

// anyHash is that of a ruleset, an image, or the name of a run.
var anyHash = regexp.MustCompile(`\b[0-9a-f]{16}\b|-migrate-[0-9a-f]+`)

// decide tells what is decided after a change.
func (w *world) decide(change func(*world)) string {
	w.t.Helper()
	before, active := w.observed.Policy.Status.DeepCopy(), ""
	for _, revision := range before.ActiveRevisions {
		if revision.ReplacedTime == nil {
			active = revision.Revision
		}
	}
	w.log.Reset()
	change(w)
	decided := w.plan()
	w.tellChanges(before.Conditions, decided.Status.Conditions)
	if run := decided.Status.Migration; run != nil && run.Message != "" {
		w.tell("The migration waits: %s", run.Message)
	}
	if crd := decided.Status.CRD; crd != nil && crd.Writer != "" {
		w.tell("The CustomResourceDefinition is written by %s.", crd.Writer)
	}
	for _, event := range plan.Events(*before, decided.Status) {
		w.tell("  event %s%s", map[bool]string{true: "Warning "}[event.Warning], event.Reason)
	}
	w.tellSteps(decided.Steps)
	w.tellApplied(decided.Steps)
	if decided.RecheckAfter > 0 {
		w.tell("It looks again after %s.", decided.RecheckAfter)
	}
	text := w.log.String()
	for name, hash := range map[string]string{"(wanted)": w.wanted, "(active)": active} {
		if hash != "" && (name != "(wanted)" || w.wanted != active) {
			text = strings.ReplaceAll(text, hash, name)
		}
	}
	return anyHash.ReplaceAllString(text, "(hash)")
}

// tellChanges tells which conditions differ. The summaries repeat the message of a gate.
func (w *world) tellChanges(before, after []metav1.Condition) {
	said := map[string]bool{"": true}
	for _, is := range after {
		was := apimeta.FindStatusCondition(before, is.Type)
		summary := slices.Contains(summaries, is.Type)
		switch same := was != nil && was.Status == is.Status && was.Reason == is.Reason && was.Message == is.Message; {
		case same || is.Reason == v1alpha1.ReasonNotEvaluated || summary && is.Status == metav1.ConditionFalse && is.Type != v1alpha1.ReadyCondition:
		case summary && said[is.Message]:
			w.tell("%s=%s %s", is.Type, is.Status, is.Reason)
		default:
			w.tell("%s=%s %s: %s", is.Type, is.Status, is.Reason, is.Message)
			said[is.Message] = true
		}
	}
	for _, was := range before {
		if apimeta.FindStatusCondition(after, was.Type) == nil {
			w.tell("%s is gone", was.Type)
		}
	}
}

// tellApplied tells the kinds of objects that are applied.
func (w *world) tellApplied(steps []step.Step) {
	w.t.Helper()
	var kinds []string
	for _, s := range steps {
		if apply, is := s.(step.Apply); is {
			kind, _, _ := strings.Cut(step.Name(apply.Object), " ")
			kinds = append(kinds, kind)
		}
	}
	if len(kinds) > 0 {
		w.tell("It applies %s.", strings.Join(kinds, ", "))
	}
}

// readiness is what is said of Ready, Reconciling and Stalled.
func readiness(is []metav1.Condition) (said []string) {
	for _, name := range summaries {
		condition := apimeta.FindStatusCondition(is, name)
		said = append(said, strings.Join([]string{name, string(condition.Status), condition.Reason, condition.Message}, " "))
	}
	return said
}

// TestBlockedDeletion: readiness is that of a policy that stays.
func TestBlockedDeletion(t *testing.T) {
	for name, change := range deletionChanges {
		w := from(t, "decisions: deletion", deleted)
		change(w)
		decided := w.plan().Status.Conditions
		if !apimeta.IsStatusConditionTrue(decided, v1alpha1.DeletionBlockedCondition) {
			continue
		}
		w.observed.Policy.DeletionTimestamp = nil
		expect.Equal(t, name+": readiness, as that of a policy that stays", readiness(decided), readiness(w.plan().Status.Conditions))
	}
}
