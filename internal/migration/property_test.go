// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package migration

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
	"github.com/conversion-operator/conversion-operator/internal/migration/contract"
	"github.com/conversion-operator/conversion-operator/internal/test/expect"
)

// misbehaviour is all that an API server and others do to one run, by a seed.
type misbehaviour struct {
	*dice
	seed  uint64
	api   *fakeAPI
	store *fakeStore
	// faults are what some objects are refused with for good.
	faults map[string]error
	// change is the number of patches after which the definition changes, pods those
	// after which a pod is killed.
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
	m.api.onList, m.api.onPatch, m.api.onPath, m.api.onTry = m.onList, m.onPatch, m.onPath, m.onPatchOnce
	m.api.afterPatch = func(string) error { return m.trouble(gatewayTimeout(), unreachable()) }
	m.api.onLook = func() error { return m.trouble(unavailable(), unreachable(), overloaded(1)) }
	m.store.onSave = func() error { return m.trouble(unavailable(), unreachable()) }
	return m
}

func (m *misbehaviour) number(n int) int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.rand.IntN(n)
}

// trouble is rarer under half of the seeds, so that some runs are complete.
func (m *misbehaviour) trouble(errs ...error) error {
	if m.seed%2 == 0 && !m.roll(4) {
		return nil
	}
	return m.dice.trouble(errs...)
}

// fault is a refusal of one object, as many kinds as there are.
func (m *misbehaviour) fault() error {
	terminating := apierrors.NewForbidden(testResource.GroupResource(), "a", errors.New("the namespace is being terminated"))
	terminating.ErrStatus.Details = &metav1.StatusDetails{Causes: []metav1.StatusCause{{Type: corev1.NamespaceTerminatingCause}}}
	faults := []error{invalid("a"), forbidden("a"), tooLarge(), unconvertible(), terminating, converterAway(), webhookAway(), noDryRun(), conflict("a")}
	return faults[m.number(len(faults))]
}

func (m *misbehaviour) onList(metav1.ListOptions) error {
	if m.roll(10) {
		m.api.expire()
	}
	if m.roll(30) {
		return expiredError("")
	}
	return m.trouble(unavailable(), unreachable(), overloaded(1), gatewayTimeout(), converterAway())
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
	return m.trouble(unavailable(), unreachable(), overloaded(1), badGateway(), webhookAway(), converterAway())
}

// onPath refuses half of what is tried on another path.
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
	// Every patch is sent on a new look at the definition.
	engine.Clock = steppingClock(300 * time.Millisecond)
	return engine
}

// run restarts the pod as a Job does, until the run has ended.
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

// However the API server misbehaves, no matter who writes meanwhile, and whenever pods
// are killed: what a run says of its objects is true.
func TestWhatARunSaysIsTrue(t *testing.T) {
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
			t.Errorf("no run ended %s: the trouble is too little or too much: %v", end, ends)
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
	if int64(len(failures)) != record.Failed {
		t.Errorf("%d objects failed, %d are listed", record.Failed, len(failures))
	}
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
		if !listed[key] {
			t.Errorf("%s is old and not listed as failed", key)
		}
	}
}
