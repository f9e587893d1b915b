// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package fleet_test

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
	"github.com/conversion-operator/conversion-operator/internal/operator/pki"
	"github.com/conversion-operator/conversion-operator/internal/operator/plan/fleet"
	"github.com/conversion-operator/conversion-operator/internal/operator/plan/observed"
	"github.com/conversion-operator/conversion-operator/internal/test/expect"
)

// serving is a fleet with three pods that converts for policies.
func serving(t *testing.T, policies ...string) *world {
	t.Helper()
	w := newWorld(t)
	w.certify(3000*time.Hour, 1000*time.Hour)
	w.startPods(3)
	for _, name := range policies {
		w.join(name)
	}
	w.rest()
	for _, p := range w.policies {
		expect.Equal(t, p.name+" converts", true, p.converts())
	}
	w.states = nil
	return w
}

// trusts is the number of authorities that a policy trusts.
func (p *policy) trusts() int { return bytes.Count(p.current(), []byte("BEGIN")) }

func (w *world) served() []byte { return w.certificate.Data[corev1.TLSCertKey] }

// served reports whether the Secret has a certificate of the first of these authorities.
func (w *world) servedBy(authorities []byte) bool {
	trusted, err := pki.ParseBundle(authorities)
	return err == nil && pki.CheckLeaf(observed.KeyPair(w.certificate), trusted[:1], "converter-fleet-blue.conversion-system.svc", w.now) == nil
}

// TestRotation: the next authority is served after all policies trust it for the propagation delay,
// and the previous one is trusted until every pod has proven the next.
func TestRotation(t *testing.T) {
	w := serving(t, "a", "b", "c")
	before := w.policies[0].current()
	w.rotate("now")
	w.look()
	w.look()
	for i, p := range w.policies {
		w.pass(time.Second)
		for range 3 {
			w.look()
		}
		if state := w.fleet.Status.Certificate.Rotation; !w.servedBy(before) || state != v1alpha1.RotationAddingCA {
			t.Fatalf("%d of 3 policies trust the next authority, and the rotation is %s", i, state)
		}
		w.reconcile(p)
		w.write(p)
		w.reconcile(p)
		expect.Equal(t, "authorities that "+p.name+" trusts", 2, p.trusts())
	}
	w.look()
	w.pass(w.settings.PropagationDelay - time.Second)
	w.look()
	expect.Equal(t, "the next authority is served before the propagation delay is over", false, !w.servedBy(before))
	w.pass(2 * time.Second)
	w.look()
	expect.Equal(t, "the next authority is served after the propagation delay", true, !w.servedBy(before))
	w.meet()
	for i := range w.pods {
		w.look()
		trusted := bytes.Count(w.certificate.Data[observed.CAKey], []byte("BEGIN"))
		expect.Equal(t, fmt.Sprintf("authorities when %d of 3 pods have proven the next", i), 2, trusted)
		w.load(w.pods[i])
		w.meet()
	}
	w.look()
	w.look()
	w.rest()
	for _, p := range w.policies {
		if p.trusts() != 1 || w.servedBy(before) {
			t.Errorf("%s trusts %d authorities at the end", p.name, p.trusts())
		}
	}
	want := []v1alpha1.RotationState{v1alpha1.RotationAddingCA, v1alpha1.RotationPropagating, v1alpha1.RotationVerifying, v1alpha1.RotationRemovingCA, v1alpha1.RotationIdle}
	expect.Equal(t, "last states", want, w.states[max(0, len(w.states)-len(want)):])
}

// TestOnePolicyHoldsUpARotation: while the CustomResourceDefinition of one policy does not trust the
// next authority, the previous one renews the certificate for all.
func TestOnePolicyHoldsUpARotation(t *testing.T) {
	cases := map[string]struct {
		change func(w *world, p *policy)
		blocks bool
	}{
		"paused":                                {func(_ *world, p *policy) { p.paused = true }, true},
		"not known yet":                         {func(_ *world, p *policy) { p.recorded = nil }, true},
		"another client has changed caBundle":   {func(w *world, p *policy) { w.overwrite(p, "theirs") }, false},
		"another client has removed caBundle":   {func(_ *world, p *policy) { p.paused, p.bundles[len(p.bundles)-1].text = true, []byte{} }, false},
		"another client has damaged caBundle":   {func(_ *world, p *policy) { p.paused, p.bundles[len(p.bundles)-1].text = true, []byte("x") }, false},
		"not known, and to convert from now on": {func(_ *world, p *policy) { p.recorded, p.bundles = nil, nil }, true},
		"gone, and its ruleset is left": {func(w *world, p *policy) {
			p.paused, w.orphaned = true, true
			w.policies = slices.DeleteFunc(w.policies, func(one *policy) bool { return one == p })
		}, true},
		"it is known, and does not convert here": {func(_ *world, p *policy) { p.paused, p.bundles = true, nil }, false},
	}
	for name, c := range cases {
		for _, rotates := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, rotates %t", name, rotates), func(t *testing.T) {
				w := serving(t, "a", "b", "c")
				b := w.policies[1]
				before := w.policies[0].current()
				c.change(w, b)
				others := slices.DeleteFunc(slices.Clone(w.policies), func(one *policy) bool { return one == b })
				if b.recorded != nil {
					w.reconcile(b)
				}
				if rotates {
					w.rotate("now")
				}
				issued := w.served()
				play := func() {
					for range 40 {
						w.pass(5 * time.Second)
						for _, pod := range w.pods {
							w.load(pod)
						}
						w.look()
						for _, p := range others {
							w.reconcile(p)
							w.write(p)
							w.reconcile(p)
							w.meetBy(p)
						}
					}
				}
				play()
				expect.Equal(t, fmt.Sprintf("the rotation is held up; states %v", w.states), rotates && c.blocks, rotates && w.servedBy(before))
				w.pass(700 * time.Hour)
				play()
				expect.Equal(t, "the certificate is still the former one", false, bytes.Equal(issued, w.served()))
				w.orphaned = false
				if !b.paused || len(b.bundles) > 0 && !w.foreign(b) {
					b.paused = false
					w.rest()
					w.pass(w.settings.PropagationDelay)
					w.rest()
					expect.Equal(t, fmt.Sprintf("the rotation does not go on; states %v", w.states), false, rotates && w.servedBy(before))
				}
			})
		}
	}
}

// overwrite lets another client change caBundle, which the policy only reports.
func (w *world) overwrite(p *policy, by string) {
	w.t.Helper()
	theirs, err := pki.NewAuthority(by, w.now, 9000*time.Hour)
	expect.NoError(w.t, err)
	p.paused, p.bundles = true, []bundle{{text: theirs.Certificate}}
}

// foreign reports that another client wrote caBundle, so that no pod is accepted.
func (w *world) foreign(p *policy) bool {
	return !slices.ContainsFunc(w.pods, func(pod *pod) bool { return w.accepts(p.current(), pod) })
}

// meetBy lets API servers verify every pod by the caBundle of one policy.
func (w *world) meetBy(p *policy) {
	w.t.Helper()
	for _, pod := range w.pods {
		if p.converts() && !w.accepts(p.current(), pod) {
			w.t.Fatalf("policy %s refuses %s; states %v", p.name, pod.Name, w.states)
		}
	}
}

// TestUnusedFleet: a fleet without policies rotates at once.
func TestUnusedFleet(t *testing.T) {
	w := serving(t)
	before := w.certificate.Data[observed.CAKey]
	w.rotate("now")
	w.rest()
	if w.servedBy(before) || bytes.Count(w.certificate.Data[observed.CAKey], []byte("BEGIN")) != 1 {
		t.Errorf("the authority was not replaced; states %v", w.states)
	}
}

// TestInterleavings: whatever the order in which policies are reconciled, join, leave and are
// paused, and in which pods load certificates and restart, every API server can verify every pod.
func TestInterleavings(t *testing.T) {
	for seed := range uint64(12) {
		t.Run(strconv.FormatUint(seed, 10), func(t *testing.T) {
			t.Parallel()
			w := serving(t, "a", "b", "c")
			random := rand.New(rand.NewPCG(1, seed)) //nolint:gosec // orders, and no secrets
			for range 1000 {
				w.act(random)
				w.meet()
			}
		})
	}
}

// act lets one of the actors do something.
func (w *world) act(random *rand.Rand) {
	w.t.Helper()
	one := func() *policy {
		if len(w.policies) == 0 {
			return w.join("first")
		}
		return w.policies[random.IntN(len(w.policies))]
	}
	switch chance := random.IntN(1000); {
	case chance < 350:
		w.done = "the fleet decided"
		w.look()
	case chance < 550:
		p := one()
		w.done = p.name + " was reconciled"
		w.reconcile(p)
	case chance < 750:
		p := one()
		w.done = p.name + " wrote"
		w.write(p)
	case chance < 850:
		w.done = "a pod loaded what it mounts"
		w.load(w.pods[random.IntN(len(w.pods))])
	case chance < 880:
		w.done = "a pod was replaced"
		w.pods = slices.Delete(w.pods, 0, 1)
		w.startPods(1)
		w.load(w.pods[len(w.pods)-1])
	case chance < 890:
		w.created++
		w.done = "a policy joined"
		if len(w.policies) < 6 {
			w.join("p" + strconv.Itoa(w.created))
		}
	case chance < 900:
		p := one()
		w.done = p.name + " left"
		if p.left.IsZero() {
			w.leave(p)
		}
	case chance < 905:
		p := one()
		w.done = p.name + " was paused or resumed"
		p.paused = !p.paused
	case chance < 910:
		w.done = "the manager was restarted"
		for _, p := range w.policies {
			p.recorded = nil
		}
	case chance < 920:
		w.done = "another authority was asked for"
		w.rotate(strconv.Itoa(random.IntN(1000)))
	default:
		w.done = "time passed"
		w.pass(time.Duration(random.IntN(20)) * time.Second)
		w.catchUp()
	}
}

// play lets the fleet decide, all pods load certificates, and all policies that are not paused
// write, as often as it takes until nothing changes.
func (w *world) play() {
	w.t.Helper()
	for range 8 {
		w.look()
		for _, pod := range w.pods {
			w.load(pod)
		}
		for _, p := range w.policies {
			w.reconcile(p)
			w.write(p)
			w.reconcile(p)
		}
		w.pass(time.Second)
	}
}

// blocked is the message of RotationBlocked; empty if there is no such condition.
func (w *world) blocked() string {
	condition := apimeta.FindStatusCondition(w.fleet.Status.Conditions, v1alpha1.RotationBlockedCondition)
	if condition == nil {
		return ""
	}
	return condition.Message
}

// TestRotationBlocked: after a while, the fleet names the policies that hold up its rotation, and why,
// until they no longer do.
func TestRotationBlocked(t *testing.T) {
	policyWith := func(change func(*v1alpha1.ConversionPolicy)) *v1alpha1.ConversionPolicy {
		object := &v1alpha1.ConversionPolicy{}
		change(object)
		return object
	}
	for name, c := range map[string]struct {
		object *v1alpha1.ConversionPolicy
		want   string
	}{
		"paused":         {policyWith(func(p *v1alpha1.ConversionPolicy) { p.Spec.Paused = true }), "b (spec.paused is true: set it to false)"},
		"gone":           {nil, "b (the policy no longer exists: create it again)"},
		"unknown causes": {policyWith(func(*v1alpha1.ConversionPolicy) {}), "authority: b"},
		"stalled": {policyWith(func(p *v1alpha1.ConversionPolicy) {
			p.Status.Conditions = []metav1.Condition{{Type: v1alpha1.StalledCondition, Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonDrifted}}
		}), "b (Drifted: see its condition Stalled)"},
		"migrates": {policyWith(func(p *v1alpha1.ConversionPolicy) {
			p.Status.Conditions = []metav1.Condition{{Type: v1alpha1.StorageMigratedCondition, Status: metav1.ConditionFalse, Reason: v1alpha1.ReasonMigrating}}
		}), "b (Migrating: see its condition StorageMigrated)"},
	} {
		t.Run(name, func(t *testing.T) {
			w := serving(t, "a", "b", "c")
			b := w.policies[1]
			for _, p := range w.policies {
				p.object = &v1alpha1.ConversionPolicy{}
			}
			b.paused, b.object = true, c.object
			w.rotate("now")
			w.play()
			expect.Equal(t, "it is reported at once", "", w.blocked())
			decided := fleet.Make(w.observe())
			if left := decided.RecheckAfter; left <= 0 || left > 15*time.Minute {
				t.Errorf("it is reconciled again after %s", left)
			}
			w.pass(15 * time.Minute)
			w.play()
			if says := w.blocked(); !strings.Contains(says, "do not trust the next authority") || !strings.HasSuffix(says, strings.TrimPrefix(c.want, "authority")) || strings.Contains(says, "a,") || strings.Contains(says, "c ") {
				t.Errorf("RotationBlocked says %q, want %q", says, c.want)
			}
			b.paused = false
			w.play()
			w.pass(w.settings.PropagationDelay)
			w.play()
			expect.Equal(t, "it is still reported", "", w.blocked())

			b.paused = true
			w.rotate("again")
			for range 2 {
				b.paused = !b.paused // it trusts the next authority, and writes nothing after that
				w.play()
				w.pass(w.settings.PropagationDelay)
			}
			w.play()
			w.pass(15 * time.Minute)
			w.play()
			if says := w.blocked(); c.object != nil && !strings.Contains(says, "still trust the previous authority") {
				t.Errorf("RotationBlocked says %q; the rotation is %s", says, w.fleet.Status.Certificate.Rotation)
			}
		})
	}
}

// TestHeldUpUntilTheAuthorityExpires: a policy never writes caBundle. The previous authority renews the
// certificate for as long as it can. The other policies are served without an interruption after that.
func TestHeldUpUntilTheAuthorityExpires(t *testing.T) {
	w := serving(t, "a", "b", "c")
	a, b := w.policies[0], w.policies[1]
	b.paused = true
	before, issued := a.current(), w.served()
	previous, err := pki.ParseBundle(before)
	expect.NoError(t, err)
	ends := previous.NotAfter()
	w.rotate("now")
	w.play()
	writes := 0
	for w.now.Before(ends.Add(time.Hour)) {
		left := ends.Sub(w.now)
		by := min(200*time.Hour, max(left/2, 10*time.Minute))
		w.pass(by)
		w.play()
		for _, pod := range w.pods {
			if w.certificate != nil && !bytes.Equal(pod.serves.Certificate, w.served()) {
				t.Fatalf("%s does not serve the certificate", pod.Name)
			}
		}
		w.accepted = map[string]bool{}
		w.meetBy(a)
		w.meetBy(w.policies[2])
		left = ends.Sub(w.now)
		if held := w.servedBy(before); left > 2*time.Hour && !held || left < 30*time.Minute && held {
			t.Fatalf("%s before the previous authority expires, it has issued the certificate: %t", left, held)
		}
		if !bytes.Equal(issued, w.served()) {
			issued, writes = w.served(), writes+1
		}
	}
	if writes < 2 || writes > 10 {
		t.Errorf("%d certificates were issued", writes)
	}
	expect.Equal(t, "the rotation is complete", true, w.isComplete())
	b.paused = false
	w.play()
	w.meetBy(b)
}

// isComplete reports that the rotation is complete, and only the next authority is left.
func (w *world) isComplete() bool {
	return w.fleet.Status.Certificate.Rotation == v1alpha1.RotationIdle && w.servedBy(w.certificate.Data[observed.CAKey]) &&
		bytes.Count(w.certificate.Data[observed.CAKey], []byte("BEGIN")) == 1 && len(w.authority.Data[corev1.TLSCertKey]) > 0
}
