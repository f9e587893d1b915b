// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
	"github.com/conversion-operator/conversion-operator/internal/operator/plan"
	"github.com/conversion-operator/conversion-operator/internal/operator/plan/observed"
	"github.com/conversion-operator/conversion-operator/internal/test/expect"
	"github.com/conversion-operator/conversion-operator/internal/webhook/probe"
)

// asking runs test with a Prober whose pod responds with answer.
func asking(t *testing.T, lasts time.Duration, answer func(context.Context) (probe.Result, error), test func(p *Prober, ask func() (*observed.Proof, time.Duration))) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		ctx, stop := context.WithCancel(t.Context())
		p := NewProber(time.Hour)
		p.background = newBackground(ctx)
		p.probe = func(ctx context.Context, _ probe.Target) (probe.Result, error) { return answer(ctx) }
		test(p, func() (*observed.Proof, time.Duration) {
			began := time.Now()
			pod := observed.Pod{Name: "pod", UID: "pod"}
			pending := p.proofOf(&pod, plan.Trust{CABundle: []byte("A")},
				p.rulesetRequests(pod, probe.Target{}, probeScope{policy: "one", leaf: []byte("leaf"), lasts: lasts}))
			expect.Equal(t, "a reconciliation waited", 0, time.Since(began))
			return pod.Proof, pending
		})
		stop()
	})
}

func fails(reason probe.Reason) (probe.Result, error) {
	return probe.Result{}, &probe.Error{Reason: reason, Message: "no"}
}

// woken reports whether the policy is woken within a time.
func woken(p *Prober, within time.Duration) bool {
	select {
	case <-p.background.woken:
		return true
	case <-time.After(within):
		return false
	}
}

// TestProbeRunsInBackground: reconciliations use the previous answer while a pod is probed. Only a
// different answer wakes the policy.
func TestProbeRunsInBackground(t *testing.T) {
	probes, reason := 0, probe.ReasonUnreachable
	slowly := func(context.Context) (probe.Result, error) {
		probes++
		<-time.After(4500 * time.Millisecond)
		return fails(reason)
	}
	timeout := &observed.Proof{Reason: v1alpha1.ReasonUnreachable, Message: "no"}
	asking(t, time.Hour, slowly, func(p *Prober, ask func() (*observed.Proof, time.Duration)) {
		for _, left := range []time.Duration{firstProbeWait, 400 * time.Millisecond, 0} {
			if proof, pending := ask(); proof != nil || pending != left {
				t.Errorf("proof %v, pending for %s, want %s", proof, pending, left)
			}
			<-time.After(600 * time.Millisecond)
		}
		expect.Equal(t, "the answer wakes the policy", true, woken(p, 5*time.Second))
		for range 2 { // the answer, and then the same while the next probe is under way
			if proof, pending := ask(); pending != 0 || !cmp.Equal(timeout, proof) {
				t.Errorf("proof %v, pending for %s", proof, pending)
			}
		}
		expect.Equal(t, "the same answer wakes the policy", false, woken(p, 10*time.Second))
		reason = probe.ReasonTLSVerificationFailed
		ask()
		expect.Equal(t, "another answer wakes the policy", true, woken(p, 10*time.Second))
		if proof, _ := ask(); proof == nil || proof.Reason != v1alpha1.ReasonTLSVerificationFailed {
			t.Errorf("proof is %v", proof)
		}
		expect.Equal(t, "probes", 3, probes)
	})
}

// TestProvenPodIsNotProbed again before its proof expires.
func TestProvenPodIsNotProbed(t *testing.T) {
	probes := 0
	well := func(context.Context) (probe.Result, error) { probes++; return probe.Result{}, nil }
	asking(t, time.Hour, well, func(p *Prober, ask func() (*observed.Proof, time.Duration)) {
		ask()
		for woken(p, time.Second) {
			if proof, pending := ask(); proof == nil || proof.Reason != "" || pending != 0 {
				t.Errorf("proof %v, pending for %s", proof, pending)
			}
		}
		expect.Equal(t, "probes", 1, probes)
		p.forget("one")
		if proof, pending := ask(); proof != nil || pending == 0 {
			t.Errorf("forgotten, and the proof is %v, pending for %s", proof, pending)
		}
		woken(p, time.Second)
	})
}

// TestExpiredAnswers: an old answer is not used.
func TestExpiredAnswers(t *testing.T) {
	well := func(context.Context) (probe.Result, error) { return probe.Result{}, nil }
	asking(t, 0, well, func(p *Prober, ask func() (*observed.Proof, time.Duration)) {
		ask()
		woken(p, time.Second)
		ask()
		<-time.After(answerAge + time.Second)
		if proof, pending := ask(); proof != nil || pending == 0 {
			t.Errorf("proof %v, pending for %s", proof, pending)
		}
		expect.Equal(t, "the answer wakes the policy, which waits for it", true, woken(p, time.Second))
	})
}

// TestProbeOfDeletedPolicy: the probe is cancelled, and wakes nothing.
func TestProbeOfDeletedPolicy(t *testing.T) {
	hangs := func(ctx context.Context) (probe.Result, error) {
		<-ctx.Done()
		return fails(probe.ReasonUnreachable)
	}
	asking(t, time.Hour, hangs, func(p *Prober, ask func() (*observed.Proof, time.Duration)) {
		ask()
		p.forget("one")
		p.background.end("one")
		began := time.Now()
		p.background.running.Wait()
		expect.Equal(t, "the probe goes on for", 0, time.Since(began))
		expect.Equal(t, "a policy that is gone is woken", false, woken(p, time.Minute))
	})
}
