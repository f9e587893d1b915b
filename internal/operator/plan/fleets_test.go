// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package plan_test

import (
	"bytes"
	"maps"
	"path"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
	"github.com/conversion-operator/conversion-operator/internal/operator/pki"
	"github.com/conversion-operator/conversion-operator/internal/operator/plan"
	"github.com/conversion-operator/conversion-operator/internal/operator/plan/names"
	"github.com/conversion-operator/conversion-operator/internal/operator/plan/observed"
	"github.com/conversion-operator/conversion-operator/internal/operator/plan/step"
	"github.com/conversion-operator/conversion-operator/internal/test/expect"
)

// namedBy are the revisions that a decision points the CustomResourceDefinition at.
func namedBy(decided plan.Plan) (revisions []string) {
	for _, s := range decided.Steps {
		if to, is := s.(step.SwitchCRD); is {
			service := to.Conversion.Webhook.ClientConfig.Service
			revisions = append(revisions, names.RevisionIn(path.Base(*service.Path), names.FleetOf(service.Name)))
		}
	}
	return revisions
}

// moving is a world in which the CustomResourceDefinition is about to name a fleet.
func moving(t *testing.T) *world {
	t.Helper()
	w := dedicated(t, "blue")
	w.observed.Policy.Spec.Verification = v1alpha1.Verification{Samples: new(int32), APIServers: v1alpha1.VerifyNoAPIServer}
	w.move("blue")
	for range 3 { // stored, loaded, and API servers are to ask about sizes
		w.pass(time.Second)
		w.carryOut(w.plan())
	}
	w.pass(10 * time.Second)
	w.watch.sabotaged, w.HoldBack = true, true
	return w
}

// moveChanges: the CustomResourceDefinition names another place when every ready pod there has the ruleset
// and has proven it, and two pods at least are ready.
var moveChanges = changes{
	"all pods have it":     func(*world) {},
	"one pod lacks it":     func(w *world) { w.podOf("blue", 0).Revisions = []string{} },
	"one pod is not ready": func(w *world) { *w.podOf("blue", 0) = observed.Pod{Name: "blue-0", Fleet: "blue"} },
	"two pods are not ready": func(w *world) {
		*w.podOf("blue", 0) = observed.Pod{Name: "blue-0", Fleet: "blue"}
		*w.podOf("blue", 1) = observed.Pod{Name: "blue-1", Fleet: "blue"}
	},
	"one pod was not asked yet":   func(w *world) { w.podOf("blue", 0).Revisions = nil },
	"a pod of its own lacks it":   func(w *world) { w.podOf("", 0).Revisions = []string{} },
	"a pod answers wrongly":       func(w *world) { w.Misbehave = "a canary came back wrong" },
	"the fleet is deleted now":    func(w *world) { w.Fleets["blue"].Deleted = true },
	"its certificate is gone":     func(w *world) { w.Fleets["blue"].Certificate = nil },
	"it was removed from a shard": func(w *world) { w.loseRulesets("blue") },
}

// dedicated is a world whose policy is active with pods of its own, and fleets.
func dedicated(t *testing.T, fleets ...string) *world {
	t.Helper()
	w := newFleetWorld(t, fleets...)
	w.move("")
	w.define(bothStoredNew)
	if w.named() == "" {
		t.Fatalf("it is not active:\n%s", w.story())
	}
	return w
}

// loseRulesets removes the rulesets of the policy from the shards of a fleet.
func (w *world) loseRulesets(fleet string) {
	w.observed.Revisions = slices.DeleteFunc(w.observed.Revisions, func(stored observed.StoredRevision) bool { return stored.Fleet() == fleet })
}

// sabotagedFleet is a world whose policy is active in a fleet, in which clients may damage something.
func sabotagedFleet(t *testing.T) *world {
	t.Helper()
	w := inFleet(t)
	w.watch.sabotaged = true
	return w
}

// lossesInFleet: another client damages or deletes what API servers request from a fleet.
var lossesInFleet = changes{
	"nothing, and pods on one node": (*world).crowd,
	"deleted":                       func(w *world) { w.loseRulesets("default") },
	"damaged": func(w *world) {
		for i := range w.observed.Revisions {
			w.observed.Revisions[i].Readable = false
		}
	},
	"deleted, and the conversion is dropped": func(w *world) { w.loseRulesets("default"); w.Drop("kubectl-replace") },
	"deleted, and pods are gone":             func(w *world) { w.loseRulesets("default"); w.observed.Pods = nil },
	"deleted, and the fleet is being deleted": func(w *world) {
		w.loseRulesets("default")
		w.Fleets["default"].Deleted = true
	},
	"deleted, and the policy is to move to a fleet that does not exist": func(w *world) { w.loseRulesets("default"); w.move("blue") },
	"deleted, and the policy is to have pods of its own":                func(w *world) { w.loseRulesets("default"); w.move("") },
	"deleted, and the policy is being deleted":                          func(w *world) { w.loseRulesets("default"); w.delete() },
	"deleted, and paused":     func(w *world) { w.loseRulesets("default"); w.observed.Policy.Spec.Paused = true },
	"deleted, with the fleet": func(w *world) { w.loseRulesets("default"); w.move("blue"); delete(w.Fleets, "default") },
	"nothing":                 func(*world) {},
}

// TestLostRulesetDoesNotHinderAMove: pods of the policy alone start although the shard of its fleet
// has lost the active ruleset.
func TestLostRulesetDoesNotHinderAMove(t *testing.T) {
	w := inFleet(t)
	w.watch.sabotaged = true
	w.changeRules("/")
	w.move("")
	w.loseRulesets("default")
	w.converge()
	if named := w.named(); named == "" || strings.HasSuffix(named, ".default") {
		t.Errorf("the CustomResourceDefinition names %s:\n%s", named, w.story())
	}
}

// TestRoom: a ruleset goes into the first shard that has room for it.
func TestRoom(t *testing.T) {
	w := inFleet(t, "blue")
	for full, want := range map[int]string{0: names.Shard("blue", 0), 1: names.Shard("blue", 1), names.Shards - 1: names.Shard("blue", names.Shards-1)} {
		w.move("blue")
		w.plan()
		state := *w.observed
		for i := range state.Fleets {
			for number := range full {
				state.Fleets[i].Shards[number] = 900<<10 - 1
			}
			for number := full; number < names.Shards; number++ {
				state.Fleets[i].Shards[number] = 0
			}
		}
		for _, s := range plan.Make(state).Steps {
			if store, is := s.(step.StoreRulesets); is && store.Add[0].ConfigMap != want {
				t.Errorf("with %d full shards it is stored in %s, want %s", full, store.Add[0].ConfigMap, want)
			}
		}
	}
}

// TestRoomForTwo: rulesets that are stored at the same time do not fill a shard beyond its limit.
func TestRoomForTwo(t *testing.T) {
	w := inFleet(t, "blue")
	w.moveTo("blue")
	w.watch.sabotaged = true
	w.loseRulesets("blue")
	w.changeRules("/")
	w.plan()
	state := *w.observed
	for i := range state.Fleets {
		state.Fleets[i].Shards = [names.Shards]int{900<<10 - 600}
	}
	var shards []string
	for _, s := range plan.Make(state).Steps {
		if store, is := s.(step.StoreRulesets); is {
			for _, add := range store.Add {
				shards = append(shards, add.ConfigMap)
				if size := len(add.Stored); size > 600 || size <= 300 {
					t.Errorf("a ruleset has %d bytes: two of them must need more room than there is, and one must not", size)
				}
			}
		}
	}
	expect.Equal(t, "shards they are stored in", []string{names.Shard("blue", 0), names.Shard("blue", 1)}, shards)
}

// TestDriftDuringAMove: another client drops the conversion while a policy cannot move to the place
// that it wants. The pods that were active answer, and so it is restored at once.
func TestDriftDuringAMove(t *testing.T) {
	cases := map[string]func(*testing.T) *world{
		"to a fleet that does not exist": func(t *testing.T) *world {
			t.Helper()
			w := dedicated(t)
			w.move("blue")
			return w
		},
		"to a fleet whose pods do not start": func(t *testing.T) *world {
			t.Helper()
			w := dedicated(t)
			w.HoldBack = true
			w.CreateFleet("blue")
			w.move("blue")
			return w
		},
		"from one fleet to another that does not exist": func(t *testing.T) *world {
			t.Helper()
			w := inFleet(t)
			w.move("blue")
			return w
		},
		"from a fleet to pods that do not start": func(t *testing.T) *world {
			t.Helper()
			w := inFleet(t)
			w.HoldBack = true
			w.move("")
			return w
		},
	}
	for name, start := range cases {
		t.Run(name, func(t *testing.T) {
			w := start(t)
			w.converge()
			before, bundle := w.named(), w.observed.CRD.Spec.Conversion.Webhook.ClientConfig.CABundle
			w.Drop("kubectl-replace")
			expect.Equal(t, "what the CustomResourceDefinition is to name", []string{before}, namedBy(w.plan()))
			w.converge()
			expect.Equal(t, "caBundle", bundle, w.observed.CRD.Spec.Conversion.Webhook.ClientConfig.CABundle)
		})
	}
}

// TestBundleOfFleet: when the authorities of the fleet change, only caBundle changes, once; and not
// while the policy is paused or migrates, unless the certificate is refused or expires soon.
func TestBundleOfFleet(t *testing.T) {
	cases := map[string]struct {
		change func(*world)
		want   bool
	}{
		"":             {func(*world) {}, true},
		"broken rules": {func(w *world) { w.changeRules("") }, true},
		"paused":       {func(w *world) { w.observed.Policy.Spec.Paused = true }, false},
		"migrates":     {(*world).startMigration, false},
		"migrates, and it expires soon": {func(w *world) {
			w.startMigration()
			w.pass(4500 * time.Hour)
		}, true},
		"being deleted": {func(w *world) { w.delete() }, true},
		"is to move to a fleet that does not exist": {func(w *world) { w.move("blue") }, true},
		"is to have pods that do not start": {func(w *world) {
			w.HoldBack = true
			w.move("")
		}, true},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			w := inFleet(t)
			c.change(w)
			w.converge()
			before := w.observed.CRD.DeepCopy()
			there := w.Fleets["default"]
			next := w.pair(pki.NewAuthority("next", w.observed.Now, 10000*time.Hour))
			there.Certificate = there.Certificate.DeepCopy()
			there.Certificate.Data[observed.CAKey] = slices.Concat(there.Certificate.Data[observed.CAKey], next.Certificate)
			for _, s := range w.plan().Steps {
				if to, is := s.(step.SwitchCRD); is && to.MayWait == (len(w.observed.Runs) > 0) {
					t.Errorf("the write may wait for others: %t", to.MayWait)
				}
			}
			w.converge()
			after := w.observed.CRD
			if got := after.Generation - before.Generation; (got == 1) != c.want || got > 1 {
				t.Fatalf("the CustomResourceDefinition was written %d times:\n%s", got, w.story())
			}
			if !c.want {
				return
			}
			expect.Equal(t, "authorities trusted", there.Certificate.Data[observed.CAKey], after.Spec.Conversion.Webhook.ClientConfig.CABundle)
			after.Spec.Conversion.Webhook.ClientConfig.CABundle = before.Spec.Conversion.Webhook.ClientConfig.CABundle
			expect.Equal(t, "what it calls", called(before.Spec.Conversion.Webhook.ClientConfig), called(after.Spec.Conversion.Webhook.ClientConfig))
		})
	}
}

// TestRefusedBundle: a caBundle by which API servers accept no pod is written at once.
func TestRefusedBundle(t *testing.T) {
	w := inFleet(t)
	w.Fleets["default"].Certificate = w.IssueForFleet("default")
	w.observe()
	for _, s := range w.plan().Steps {
		if to, is := s.(step.SwitchCRD); is && !to.MayWait {
			return
		}
	}
	t.Errorf("steps are %v", w.plan().Steps)
}

// startMigration lets a migration run.
func (w *world) startMigration() {
	w.trigger("now")
	if len(w.observed.Runs) != 1 {
		w.t.Fatalf("no migration runs:\n%s", w.story())
	}
}

// TestOwnCertificateDuringAMove: while a policy cannot move to a fleet, the certificate of its own
// pods does not expire.
func TestOwnCertificateDuringAMove(t *testing.T) {
	w := dedicated(t)
	w.moveTo("blue")
	certificate := func() *corev1.Secret { return w.observed.OwnCertificate }
	before := certificate().Data[corev1.TLSCertKey]
	for range 100 {
		w.pass(24 * time.Hour)
		w.carryOut(w.plan())
	}
	expect.Equal(t, "the certificate is still the former one", false, bytes.Equal(before, certificate().Data[corev1.TLSCertKey]))
	trusted, err := pki.ParseBundle(w.observed.CRD.Spec.Conversion.Webhook.ClientConfig.CABundle)
	expect.NoError(t, err)
	if err := pki.CheckLeaf(observed.KeyPair(certificate()), trusted, names.ServerName(crontabs, w.observed.Settings.Namespace), w.observed.Now); err != nil {
		t.Errorf("API servers refuse it: %v", err)
	}
}

// TestOrphanedInAFleet: rulesets stay.
func TestOrphanedInAFleet(t *testing.T) {
	w := inFleet(t)
	w.observed.Policy.Spec.DeletionPolicy = v1alpha1.DeletionOrphan
	w.delete()
	expect.Equal(t, "steps", []string{"RemoveFinalizer"}, kinds(w.plan().Steps))
	for name, authority := range map[string]bool{"": false, "a former authority is left": true} {
		if authority {
			w.observed.Authority = w.theirs("former")
		}
		if decided, needed := w.orphan(w.observed.Now.Add(-time.Hour)); !needed || len(decided.Steps) > 0 {
			t.Errorf("%s: needed: %t, steps %v", name, needed, kinds(decided.Steps))
		}
	}
}

// TestOtherConvertersAndFleets: a policy changes from a fleet to another kind of converter, and back.
// Its rulesets leave the fleet after API servers have seen that.
func TestOtherConvertersAndFleets(t *testing.T) {
	for name, policy := range map[string]string{"image": imageYAML, "service": serviceYAML, "none": noneYAML} {
		t.Run(name, func(t *testing.T) {
			w := newFleetWorld(t)
			w.applyCRD(equalVersions)
			withoutRules(w)
			w.converge()
			rules := w.observed.Policy.Spec.Converter
			w.observed.External = observed.External{Endpoints: []observed.Pod{{Name: "10.0.0.1:9443", Ready: true, Scheduled: true, Proof: &observed.Proof{}}}}
			w.convertBy(policy)
			w.converge()
			if w.named() != "" && name != "image" || len(w.StoredRulesets("default")) != 1 {
				t.Fatalf("the CustomResourceDefinition names %q, and the fleet has %v:\n%s", w.named(), w.StoredRulesets("default"), w.story())
			}
			w.settleAPIServers()
			expect.Equal(t, "what the fleet still has", []string{}, w.StoredRulesets("default"))
			w.observed.Policy.Spec.Converter = rules
			w.observed.Policy.Generation++
			w.converge()
			w.settleAPIServers()
			if !strings.HasSuffix(w.named(), ".default") {
				t.Errorf("the CustomResourceDefinition names %q:\n%s", w.named(), w.story())
			}
			for _, stored := range w.observed.Revisions {
				expect.Equal(t, stored.Hash+" is left", false, stored.Fleet() == "")
			}
		})
	}
}

// stuck is a world in which a policy cannot move, because pods there answer wrongly.
func stuck(w *world) *world {
	w.t.Helper()
	w.Misbehave = "a canary came back wrong"
	w.converge()
	w.watch.sabotaged = true
	return w
}

func stuckOnWayToFleet(t *testing.T) *world {
	t.Helper()
	w := dedicated(t, "blue")
	w.move("blue")
	return stuck(w)
}

func stuckOnWayToOwnPods(t *testing.T) *world {
	t.Helper()
	w := inFleet(t)
	w.changeRules("/")
	w.move("")
	return stuck(w)
}

// lossesDuringAMove: the ruleset that API servers request is no longer stored. Pods of the place that the policy
// leaves may have it in memory. The manager that has just started did not ask them, and deletes nothing and
// points the CustomResourceDefinition nowhere else, as the manager before it, which had asked them.
func lossesDuringAMove(from string) changes {
	all := changes{"nothing is lost": func(*world) {}, "it is deleted": func(w *world) { w.loseRulesets(from) }, "it is damaged": func(w *world) {
		for i := range w.observed.Revisions {
			if stored := &w.observed.Revisions[i]; stored.Fleet() == from {
				stored.Readable = false
			}
		}
	}}
	for name, change := range maps.Clone(all) {
		all[name+", and the manager starts"] = func(w *world) {
			change(w)
			for i := range w.observed.Pods {
				if pod := &w.observed.Pods[i]; pod.Fleet == from {
					pod.Revisions = nil
				}
			}
		}
	}
	return all
}
