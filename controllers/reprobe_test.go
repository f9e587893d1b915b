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
	"github.com/conversion-operator/conversion-operator/internal/operator/plan/observed"
	"github.com/conversion-operator/conversion-operator/internal/test/expect"
	"github.com/conversion-operator/conversion-operator/internal/webhook/probe"
)

// ownConverter is the converter of an image whose answers may change.
type ownConverter struct {
	asked   atomic.Int32
	fails   atomic.Bool
	warning atomic.Pointer[string]
}

func (f *ownConverter) own(context.Context, probe.OwnTarget) ([]string, error) {
	f.asked.Add(1)
	if f.fails.Load() {
		return nil, errors.New("no")
	}
	if warning := f.warning.Load(); warning != nil {
		return []string{*warning}, nil
	}
	return nil, nil
}

// reprobed proves three pods of two policies, and starts re-probing.
func reprobed(t *testing.T, test func(p *Prober, f *ownConverter, prove func(about probeScope, pod types.UID) *observed.Proof)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		f, p := &ownConverter{}, NewProber(5*time.Minute)
		p.background = newBackground(t.Context())
		p.own = f.own
		prove := func(about probeScope, pod types.UID) *observed.Proof {
			return p.prove(t.Context(), p.ownRequests(observed.Pod{UID: pod}, probe.OwnTarget{}, about)(nil))
		}
		about := probeScope{policy: "one", lasts: p.lifetime}
		prove(about, "1")
		prove(about, "2")
		prove(probeScope{policy: "two", lasts: p.lifetime}, "3")
		go func() { _ = p.reprobe(t.Context()) }()
		test(p, f, prove)
	})
}

// TestReprobe: a pod is probed again at the end of the lifetime of its proof. Equal answers wake
// no policy.
func TestReprobe(t *testing.T) {
	reprobed(t, func(_ *Prober, f *ownConverter, _ func(probeScope, types.UID) *observed.Proof) {
		for _, want := range []int32{3, 6, 9} {
			expect.Equal(t, "asked", want, f.asked.Load())
			<-time.After(5*time.Minute + time.Second)
			synctest.Wait()
		}
	})
}

// TestReprobeFails: a failed pod wakes its policy, and the proofs of all its pods are dropped.
func TestReprobeFails(t *testing.T) {
	reprobed(t, func(p *Prober, f *ownConverter, _ func(probeScope, types.UID) *observed.Proof) {
		p.retainPods("two", nil)
		f.fails.Store(true)
		expect.Equal(t, "woken", "one", (<-p.background.woken).Object.GetName())
		p.mu.Lock()
		defer p.mu.Unlock()
		expect.Equal(t, "pods are taken for proven", 0, len(p.proven))
	})
}

// TestReprobeWarns: a changed warning wakes the policy.
func TestReprobeWarns(t *testing.T) {
	reprobed(t, func(p *Prober, f *ownConverter, prove func(probeScope, types.UID) *observed.Proof) {
		p.retainPods("one", nil)
		f.warning.Store(new(".spec.note is gone"))
		expect.Equal(t, "woken", "two", (<-p.background.woken).Object.GetName())
		expect.Equal(t, "warning", ".spec.note is gone", prove(probeScope{policy: "two", lasts: p.lifetime}, "3").Warning)
	})
}

// TestReprobeDuringAMigration: from the next reconciliation on, pods are probed ten times as
// often.
func TestReprobeDuringAMigration(t *testing.T) {
	reprobed(t, func(p *Prober, f *ownConverter, prove func(probeScope, types.UID) *observed.Proof) {
		p.retainPods("two", nil)
		about := p.scopeOf(&observed.Cluster{Policy: &v1alpha1.ConversionPolicy{ObjectMeta: metav1.ObjectMeta{Name: "one"}},
			Certificate: &corev1.Secret{}, Runs: []observed.Run{{Job: &batchv1.Job{}}}})
		prove(about, "1")
		expect.Equal(t, "asked, although it is proven,", 3, f.asked.Load())
		<-time.After(61 * time.Second)
		synctest.Wait()
		expect.Equal(t, "asked, once each half minute,", 5, f.asked.Load())
	})
}

// TestForgetPods: deleted pods are not probed again.
func TestForgetPods(t *testing.T) {
	reprobed(t, func(p *Prober, f *ownConverter, _ func(probeScope, types.UID) *observed.Proof) {
		p.retainPods("one", []observed.Pod{{UID: "2"}})
		<-time.After(5*time.Minute + time.Second)
		synctest.Wait()
		expect.Equal(t, "asked of pod 2, and that of another policy,", 5, f.asked.Load())
	})
}
