// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package fleet_test

import (
	"bytes"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
	"github.com/conversion-operator/conversion-operator/internal/pki"
	"github.com/conversion-operator/conversion-operator/internal/plan/fleet"
	"github.com/conversion-operator/conversion-operator/internal/plan/observed"
)

// play lets the fleet decide, all pods load certificates, and all policies that are not suspended
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
		"suspended":      {policyWith(func(p *v1alpha1.ConversionPolicy) { p.Spec.Suspend = true }), "b (spec.suspend is true: set it to false)"},
		"gone":           {nil, "b (the policy no longer exists: create it again)"},
		"unknown causes": {policyWith(func(*v1alpha1.ConversionPolicy) {}), "authority: b"},
		"stalled": {policyWith(func(p *v1alpha1.ConversionPolicy) {
			p.Status.Conditions = []metav1.Condition{{Type: v1alpha1.StalledCondition, Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonConversionDrifted}}
		}), "b (ConversionDrifted: see its condition Stalled)"},
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
			b.suspended, b.object = true, c.object
			w.rotate("now")
			w.play()
			if w.blocked() != "" {
				t.Errorf("it is reported at once: %s", w.blocked())
			}
			decided := fleet.Make(w.observe())
			if left := decided.RecheckAfter; left <= 0 || left > 15*time.Minute {
				t.Errorf("it is reconciled again after %s", left)
			}
			w.pass(15 * time.Minute)
			w.play()
			if says := w.blocked(); !strings.Contains(says, "do not trust the next authority") || !strings.HasSuffix(says, strings.TrimPrefix(c.want, "authority")) || strings.Contains(says, "a,") || strings.Contains(says, "c ") {
				t.Errorf("RotationBlocked says %q, want %q", says, c.want)
			}
			b.suspended = false
			w.play()
			w.pass(w.settings.PropagationDelay)
			w.play()
			if w.blocked() != "" {
				t.Errorf("it is still reported: %s", w.blocked())
			}

			b.suspended = true
			w.rotate("again")
			for range 2 {
				b.suspended = !b.suspended // it trusts the next authority, and writes nothing after that
				w.play()
				w.pass(w.settings.PropagationDelay)
			}
			w.play()
			w.pass(15 * time.Minute)
			w.play()
			if says := w.blocked(); c.object != nil && !strings.Contains(says, "still trust the previous authority") {
				t.Errorf("RotationBlocked says %q; the rotation is %s", says, w.fleet.Status.Rotation.State)
			}
		})
	}
}

// TestHeldUpUntilTheAuthorityExpires: a policy never writes caBundle. The previous authority renews the
// certificate for as long as it can. The other policies are served without an interruption after that.
func TestHeldUpUntilTheAuthorityExpires(t *testing.T) {
	w := serving(t, "a", "b", "c")
	a, b := w.policies[0], w.policies[1]
	b.suspended = true
	before, issued := a.current(), w.served()
	previous, err := pki.ParseBundle(before)
	if err != nil {
		t.Fatal(err)
	}
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
	if !w.isComplete() {
		t.Errorf("the rotation is not complete: %s", w.fleet.Status.Rotation.State)
	}
	b.suspended = false
	w.play()
	w.meetBy(b)
}

// isComplete reports that the rotation is complete, and only the next authority is left.
func (w *world) isComplete() bool {
	return w.fleet.Status.Rotation.State == v1alpha1.RotationIdle && w.servedBy(w.certificate.Data[observed.CAKey]) &&
		bytes.Count(w.certificate.Data[observed.CAKey], []byte("BEGIN")) == 1 && len(w.authority.Data[corev1.TLSCertKey]) > 0
}
