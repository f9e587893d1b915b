// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package plan_test

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
	"github.com/conversion-operator/conversion-operator/internal/operator/plan/observed"
)

func defaultFleet(w *world) {
	w.say("A policy asks for no pods of its own. There is no fleet yet.")
	w.define(bothStoredNew)
	w.say("The rules change.")
	w.useRules("/")
	w.say("API servers have had their time.")
	w.settleAPIServers()
	w.say("A client drops the conversion.")
	w.loseConversion("kubectl-replace")
	w.say("A client calls the Service of another fleet, and then another path.")
	w.change("kubectl-edit", callFleet("theirs"))
	w.converge()
	w.change("kubectl-edit", callPath("/convert/0123456789abcdef"))
	w.converge()
	w.say("The policy is paused, and its rules change.")
	w.observed.Policy.Spec.Paused = true
	w.useRules("@")
	w.say("A client drops the conversion, which is reported only.")
	w.loseConversion("kubectl-replace")
	w.say("It is resumed.")
	w.pause(false)
	w.settleAPIServers()
}

func fleetMoves(w *world) {
	w.CreateFleet("blue")
	w.CreateFleet("green")
	w.say("The policy has pods of its own.")
	w.move("")
	w.define(bothStoredNew)
	w.say("It moves to the fleet blue.")
	w.moveTo("blue")
	w.say("API servers have had their time: its own pods and Secrets are deleted.")
	w.settleAPIServers()
	w.say("It moves to the fleet green.")
	w.moveTo("green")
	w.settleAPIServers()
	w.say("It moves to pods of its own, with other rules.")
	w.move("")
	w.useRules("/")
	w.settleAPIServers()
	w.say("There and back before API servers have had their time, and to the third.")
	w.moveTo("blue")
	w.moveTo("")
	w.moveTo("green")
	w.settleAPIServers()
}

func fleetTrouble(w *world) {
	w.say("The policy names a fleet that does not exist.")
	w.move("blue")
	w.define(bothStoredNew)
	w.say("The fleet is created, and has no pods yet.")
	w.HoldBack = true
	w.CreateFleet("blue")
	w.converge()
	w.say("One pod is there.")
	w.HoldBack = false
	w.observed.Pods = append(w.observed.Pods, observed.Pod{Name: "blue-0", Fleet: "blue", Revisions: []string{}, Ready: true, Scheduled: true})
	w.converge()
	w.say("Another one comes, which answers wrongly.")
	w.Misbehave = "a canary came back wrong"
	w.observed.Pods = append(w.observed.Pods, observed.Pod{Name: "blue-1", Fleet: "blue", Revisions: w.StoredRulesets("blue"), Ready: true, Scheduled: true})
	w.converge()
	w.say("It answers well.")
	w.Misbehave = ""
	w.converge()
	w.say("The policy is to move to a fleet that does not exist: it stays where it is.")
	w.moveTo("green")
	w.say("That fleet is full.")
	w.CreateFleet("green")
	w.Fleets["green"].Others = 900 << 10
	w.converge()
	w.say("It has room again, and is being deleted.")
	w.Fleets["green"].Others, w.Fleets["green"].Deleted = 0, true
	w.converge()
	w.say("The policy is to stay, and its fleet is being deleted, too.")
	w.move("blue")
	w.Fleets["blue"].Deleted = true
	w.converge()
	w.say("It moves to the default fleet, which is created for it.")
	w.moveTo("default")
	w.settleAPIServers()
}

func fleetRules(w *world) {
	w.say("Everything is active.")
	w.define(bothStoredNew)
	w.say("The rules are broken by an edit, and a client drops the conversion.")
	w.useRules("")
	w.loseConversion("kubectl-replace")
	w.say("They are corrected, but the fleet has no room for them.")
	w.Fleets["default"].Others = 900 << 10
	w.useRules("/")
	w.say("Another policy leaves.")
	w.Fleets["default"].Others = 0
	w.converge()
	w.say("They change back, and again and again.")
	for _, separator := range []string{":", "#", "%", "!"} {
		w.useRules(separator)
	}
	w.settleAPIServers()
}

func fleetLeaving(w *world) {
	w.say("Everything is active.")
	w.define(bothStoredNew)
	w.say("The policy is deleted, which is blocked.")
	w.delete()
	w.converge()
	w.say("Only one version is left.")
	w.define(onlyNew)
	w.say("API servers have had their time: the fleet has no ruleset of the policy any more.")
	w.settleAPIServers()
}

func fleetOrphan(w *world) {
	w.say("Everything is active.")
	w.define(bothStoredNew)
	w.say("The policy is deleted, and orphans its rules.")
	w.delete()
	w.observed.Policy.Spec.DeletionPolicy = v1alpha1.DeletionOrphan
	w.converge()
	w.say("While the CustomResourceDefinition converts through the fleet, its ruleset stays.")
	w.tend(w.observed.Now)
	w.say("The conversion is dropped.")
	w.Drop("kubectl-replace")
	released := w.observed.Now
	w.observe()
	w.tend(released)
	w.say("API servers have had their time.")
	w.pass(w.observed.Settings.PropagationDelay)
	w.observe()
	w.tend(released)
	w.say("A policy of the same name is created again.")
	w.observed.Policy = newFleetWorld(w.t).observed.Policy
	w.observed.Policy.CreationTimestamp = metav1.Time{Time: w.observed.Now.Add(-time.Second)}
	w.converge()
}
