// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
	"github.com/conversion-operator/conversion-operator/internal/plan"
	"github.com/conversion-operator/conversion-operator/internal/webhook/probe"
)

// fickle is an image's converter that may change its mind.
type fickle struct {
	asked   atomic.Int32
	fails   atomic.Bool
	warning atomic.Pointer[string]
}

func (f *fickle) own(context.Context, probe.OwnTarget) ([]string, error) {
	f.asked.Add(1)
	if f.fails.Load() {
		return nil, errors.New("no")
	}
	if warning := f.warning.Load(); warning != nil {
		return []string{*warning}, nil
	}
	return nil, nil
}

// patrolled lets three pods of two policies be proven, and asked again.
func patrolled(t *testing.T, test func(p *Prover, f *fickle, prove func(about topic, pod types.UID) *plan.Proof)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		f, p := &fickle{}, NewProver(5*time.Minute)
		p.Own = f.own
		prove := func(about topic, pod types.UID) *plan.Proof {
			return p.take(t.Context(), p.ofOwn(plan.Pod{UID: pod}, probe.OwnTarget{}, about)(nil))
		}
		about := topic{policy: "one", lasts: p.lifetime}
		prove(about, "1")
		prove(about, "2")
		prove(topic{policy: "two", lasts: p.lifetime}, "3")
		go func() { _ = p.patrol(t.Context()) }()
		test(p, f, prove)
	})
}

// TestPatrol: who was proven is asked again at the end of a proof's life, and nobody
// hears of it while nothing changes.
func TestPatrol(t *testing.T) {
	patrolled(t, func(_ *Prover, f *fickle, _ func(topic, types.UID) *plan.Proof) {
		for _, want := range []int32{3, 6, 9} {
			if got := f.asked.Load(); got != want {
				t.Errorf("asked %d times, want %d", got, want)
			}
			<-time.After(5*time.Minute + time.Second)
			synctest.Wait()
		}
	})
}

// TestPatrolFails: a pod that fails makes all pods of its policy be asked anew, and
// the policy be looked at. Those of others are taken for proven as before.
func TestPatrolFails(t *testing.T) {
	patrolled(t, func(p *Prover, f *fickle, _ func(topic, types.UID) *plan.Proof) {
		p.keep("two", nil)
		f.fails.Store(true)
		if doubted := (<-p.doubted).Object.GetName(); doubted != "one" {
			t.Errorf("policy %s is looked at", doubted)
		}
		p.mu.Lock()
		defer p.mu.Unlock()
		if len(p.proven) != 0 {
			t.Errorf("%d pods are taken for proven", len(p.proven))
		}
	})
}

// TestPatrolWarns: what is to be said of a pod may change.
func TestPatrolWarns(t *testing.T) {
	patrolled(t, func(p *Prover, f *fickle, prove func(topic, types.UID) *plan.Proof) {
		p.keep("one", nil)
		f.warning.Store(new(".spec.note is gone"))
		if doubted := (<-p.doubted).Object.GetName(); doubted != "two" {
			t.Errorf("policy %s is looked at", doubted)
		}
		if got := prove(topic{policy: "two", lasts: p.lifetime}, "3"); got.Warning != ".spec.note is gone" {
			t.Errorf("proof is %v", got)
		}
	})
}

// TestPatrolDuringAMigration: pods are asked ten times as often from the next look
// at their policy on.
func TestPatrolDuringAMigration(t *testing.T) {
	patrolled(t, func(p *Prover, f *fickle, prove func(topic, types.UID) *plan.Proof) {
		p.keep("two", nil)
		about := p.about(&plan.Observed{Policy: &v1alpha1.ConversionPolicy{ObjectMeta: metav1.ObjectMeta{Name: "one"}},
			Certificate: &corev1.Secret{}, Runs: []plan.Run{{Job: &batchv1.Job{}}}})
		prove(about, "1")
		if got := f.asked.Load(); got != 3 {
			t.Errorf("asked %d times although it is proven, want 3", got)
		}
		<-time.After(61 * time.Second)
		synctest.Wait()
		if got := f.asked.Load(); got != 5 {
			t.Errorf("asked %d times, want 5: once each half minute", got)
		}
	})
}

// TestForgetting: pods that are gone are not asked again.
func TestForgetting(t *testing.T) {
	patrolled(t, func(p *Prover, f *fickle, _ func(topic, types.UID) *plan.Proof) {
		p.keep("one", []plan.Pod{{UID: "2"}})
		<-time.After(5*time.Minute + time.Second)
		synctest.Wait()
		if got := f.asked.Load(); got != 5 {
			t.Errorf("asked %d times, want 5: pod 2, and that of another policy", got)
		}
	})
}
