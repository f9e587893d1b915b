// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package migration

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
	"github.com/conversion-operator/conversion-operator/internal/migration/contract"
	"github.com/conversion-operator/conversion-operator/internal/test/expect"
)

// dice is a random source that workers and the goroutine that saves share.
type dice struct {
	mu   sync.Mutex
	rand *rand.Rand
}

func newDice(seed uint64) *dice { return &dice{rand: rand.New(rand.NewPCG(seed, seed))} }

// roll returns true once in n times.
func (d *dice) roll(n int) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.rand.IntN(n) == 0
}

func (d *dice) trouble(errs ...error) error {
	if !d.roll(4) {
		return nil
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	return errs[d.rand.IntN(len(errs))]
}

// interfere writes or deletes an object like another client. A write that an API server began at
// the old version may end late, at v1beta1, but before a second patch.
func (d *dice) interfere(api *fakeAPI, key string) {
	switch {
	case d.roll(3):
		api.remove(key)
	case d.roll(2):
		api.recreate(key, "v1")
	case d.roll(2) && slices.Index(api.patched, key) == len(api.patched)-1:
		api.write(key, "v1beta1")
	default:
		api.write(key, "v1")
	}
}

// misbehaviour is the API server and the other clients of one run, by a seed.
type misbehaviour struct {
	*dice
	seed  uint64
	api   *fakeAPI
	store *fakeStore
	// faults are the permanent errors of some objects.
	faults map[string]error
	// change is the number of patches after which the definition changes; pods are those after
	// which a pod is killed.
	change  int
	changed int
	pods    []int
	kill    context.CancelFunc
}

func misbehave(seed uint64) *misbehaviour {
	m := &misbehaviour{dice: newDice(seed), seed: seed, api: newFakeAPI(60), store: &fakeStore{}, faults: map[string]error{}}
	m.api.broken = map[string]string{}
	for i := range 60 {
		key := objectKey(i)
		if seed%3 == 0 || !m.roll(15) {
			continue
		}
		if m.roll(4) {
			m.api.broken[key] = "v1 "
			continue
		}
		m.faults[key] = m.fault()
	}
	if m.roll(5) {
		m.change = 1 + m.number(100)
	}
	for range m.number(4) {
		m.pods = append(m.pods, m.number(150))
	}
	m.api.onList, m.api.onPatch, m.api.onPath, m.api.onDryRun = m.onList, m.onPatch, m.onPath, m.onPatchOnce
	m.api.afterPatch = func(string) error { return m.trouble(gatewayTimeout(), unreachable()) }
	m.api.onDefinitionRead = func() error { return m.trouble(unavailable(), unreachable(), overloaded(1)) }
	m.store.onSave = func() error { return m.trouble(unavailable(), unreachable()) }
	return m
}

func (m *misbehaviour) number(n int) int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.rand.IntN(n)
}

// trouble is less frequent for half of the seeds, so that some runs complete.
func (m *misbehaviour) trouble(errs ...error) error {
	if m.seed%2 == 0 && !m.roll(4) {
		return nil
	}
	return m.dice.trouble(errs...)
}

// fault returns a permanent error of an object, of any kind.
func (m *misbehaviour) fault() error {
	terminating := apierrors.NewForbidden(testResource.GroupResource(), "a", errors.New("the namespace is being terminated"))
	terminating.ErrStatus.Details = &metav1.StatusDetails{Causes: []metav1.StatusCause{{Type: corev1.NamespaceTerminatingCause}}}
	faults := []error{invalid("a"), forbidden("a"), tooLarge(), unconvertible(), terminating, converterUnavailable(), webhookUnavailable(), noDryRun(), conflict("a")}
	return faults[m.number(len(faults))]
}

func (m *misbehaviour) onList(metav1.ListOptions) error {
	if m.roll(10) {
		m.api.expire()
	}
	if m.roll(30) {
		return expiredError("")
	}
	return m.trouble(unavailable(), unreachable(), overloaded(1), gatewayTimeout(), converterUnavailable())
}

func (m *misbehaviour) onPatch(key string) error {
	patches := len(m.api.patched)
	if m.change > 0 && patches >= m.change && m.changed == 0 {
		m.api.definition.Generation++
		m.changed = patches
	}
	if slices.Contains(m.pods, patches) {
		m.kill()
		return context.Canceled
	}
	if m.roll(10) {
		m.interfere(m.api, key)
	}
	return m.onPatchOnce(key)
}

func (m *misbehaviour) onPatchOnce(key string) error {
	if m.api.broken[key] != "" {
		return unconvertible()
	}
	if err := m.faults[key]; err != nil {
		return err
	}
	return m.trouble(unavailable(), unreachable(), overloaded(1), badGateway(), webhookUnavailable(), converterUnavailable())
}

// onPath refuses half of the patches of fallbacks.
func (m *misbehaviour) onPath(patch Patch) error {
	if m.roll(2) {
		return apierrors.NewNotFound(testResource.GroupResource(), patch.Name)
	}
	return nil
}

func (m *misbehaviour) engine() *Engine {
	engine := newTestEngine(m.api, m.store)
	engine.Concurrency, engine.PageSize, engine.Preflight = 4, 16, 5
	engine.Verify = []v1alpha1.MigrationVerification{v1alpha1.MigrationVerifyNone, v1alpha1.MigrationVerifySample, v1alpha1.MigrationVerifyFull}[m.seed%3]
	engine.OldVersions = []string{"v1beta1"}
	if m.seed%4 < 2 {
		engine.Fallback = []v1alpha1.MigrationFallback{v1alpha1.MigrationFallbackStatus, v1alpha1.MigrationFallbackOldVersion}
	}
	// With this step, every patch needs a new read of the definition.
	engine.Clock = steppingClock(300 * time.Millisecond)
	return engine
}

// run restarts the pod like a Job, until the run has ended.
func (m *misbehaviour) run(t *testing.T) contract.Record {
	t.Helper()
	for range 200 {
		ctx, cancel := context.WithCancel(t.Context())
		m.kill = cancel
		record, err := m.engine().Run(ctx)
		cancel()
		if err == nil {
			m.store.records(t)
			return record
		}
	}
	t.Fatal("the run never ended")
	return contract.Record{}
}

// Whatever the API server and other clients do, and whenever pods are killed: the record is true.
func TestRecordIsTrue(t *testing.T) {
	ends := map[string]int{}
	for seed := range uint64(150) {
		t.Run(fmt.Sprintf("seed %d", seed), func(t *testing.T) {
			m := misbehave(seed)
			record := m.run(t)
			ends[fmt.Sprintf("%s, complete %t", record.State, record.Complete())]++
			m.check(t, record)
		})
	}
	for _, end := range []string{"Completed, complete true", "Completed, complete false", "Aborted, complete false"} {
		if ends[end] == 0 {
			t.Errorf("no run ended %s: there are too few or too many errors: %v", end, ends)
		}
	}
}

func (m *misbehaviour) check(t *testing.T, record contract.Record) {
	t.Helper()
	if after := len(m.api.patched) - m.changed; m.changed > 0 && after > 4 {
		t.Errorf("%d patches were sent after the definition changed, with 4 in flight", after)
	}
	failures, err := FailuresOf(m.store.data)
	expect.NoError(t, err)
	expect.Equal(t, "objects listed as failed", record.Failed, int64(len(failures)))
	if record.State != contract.StateCompleted {
		return
	}
	if record.Done() != record.Total || record.ByFallback > record.Rewritten+record.Current || record.Verified > record.Total {
		t.Errorf("counters are %+v, %d verified", record.Counters, record.Verified)
	}
	if m.changed > 0 {
		t.Errorf("completed, and the definition changed at patch %d", m.changed)
	}
	listed := map[string]bool{}
	for _, f := range failures {
		if listed[f.Object] || f.Reason == "" || f.Command == "" {
			t.Errorf("failure is %+v", f)
		}
		listed[f.Object] = true
	}
	for _, key := range m.api.oldKeys() {
		expect.Equal(t, key+" is old and not listed as failed", false, !listed[key])
	}
}
