// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"fmt"
	"testing"
	"time"

	"github.com/conversion-operator/conversion-operator/internal/operator/plan"
	"github.com/conversion-operator/conversion-operator/internal/operator/plan/step"
)

// TestPaceOfBundleWrites: of a thousand policies that want another caBundle at the same time, five are
// written per second, each is reconciled twice, and other steps do not wait.
func TestPaceOfBundleWrites(t *testing.T) {
	const policies = 1000
	var writes bundleWrites
	start := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	wants := plan.Plan{Steps: []step.Step{step.RefreshPod{}, step.SwitchCRD{MayWait: true}, step.DeleteSecret{}}, RecheckAfter: time.Hour}
	due := map[time.Duration][]string{}
	for i := range policies {
		due[0] = append(due[0], fmt.Sprint(i))
	}
	written, reconciled, last := map[time.Duration]int{}, 0, time.Duration(0)
	for now := time.Duration(0); len(due) > 0; now += 100 * time.Millisecond {
		for _, policy := range due[now] {
			reconciled++
			decided := writes.pace(policy, wants, start.Add(now))
			switch len(decided.Steps) {
			case 3:
				written[now.Truncate(time.Second)]++
				last = now
			case 2:
				due[now+decided.RecheckAfter] = append(due[now+decided.RecheckAfter], policy)
			}
			if len(wants.Steps) != 3 {
				t.Fatal("it changes the plan that it was given")
			}
		}
		delete(due, now)
	}
	for second, count := range written {
		if count > int(time.Second/bundlePause) {
			t.Errorf("after %s, %d were written within a second", second, count)
		}
	}
	if want := (policies - 1) * bundlePause; last != want || reconciled > 2*policies {
		t.Errorf("the last was written after %s, want %s; there were %d reconciliations", last, want, reconciled)
	}
	if len(writes.turns) > 0 {
		t.Errorf("%d turns are left", len(writes.turns))
	}
}

// TestTurns: what cannot wait does not, a policy keeps its turn, and a turn that is not used expires.
func TestTurns(t *testing.T) {
	var writes bundleWrites
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	waits, urgent := plan.Plan{Steps: []step.Step{step.SwitchCRD{MayWait: true}}}, plan.Plan{Steps: []step.Step{step.SwitchCRD{}}}
	expect := func(what, policy string, decided plan.Plan, left time.Duration) {
		t.Helper()
		got := writes.pace(policy, decided, now)
		if is := len(got.Steps) == 1; is != (left == 0) || got.RecheckAfter != left {
			t.Errorf("%s: writes: %t, and again after %s; want %s", what, is, got.RecheckAfter, left)
		}
	}
	expect("the first", "a", waits, 0)
	expect("the second", "b", waits, bundlePause)
	expect("the third", "c", waits, 2*bundlePause)
	expect("the second, again", "b", waits, bundlePause)
	expect("one that cannot wait", "d", urgent, 0)
	now = now.Add(2 * bundlePause)
	expect("the third, at its turn", "c", waits, 0)
	now = now.Add(turnLasts)
	expect("another", "e", waits, 0)
	expect("the second, whose turn has expired", "b", waits, bundlePause)
	writes.forget("b")
	expect("a policy of the same name", "b", waits, 2*bundlePause)
}
