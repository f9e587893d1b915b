// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package plan_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
	"github.com/conversion-operator/conversion-operator/internal/plan/health"
)

// TestFailuresAreWrittenSeldom: with something that fails all the time, the status
// changes at most once in half a window, and the condition's message never.
func TestFailuresAreWrittenSeldom(t *testing.T) {
	w := active(t)
	changes, said := 0, ""
	for minute := range int64(60) {
		w.fail("Panic", "default/a", 100*minute)
		w.pass(time.Minute)
		decided := w.plan()
		is := decided.Status
		if fmt.Sprint(is.ConversionFailures) != fmt.Sprint(w.observed.Policy.Status.ConversionFailures) {
			changes++
		}
		failing := apimeta.FindStatusCondition(is.Conditions, v1alpha1.ConversionsFailingCondition)
		if said != "" && failing.Message != said {
			t.Fatalf("the message has become %q", failing.Message)
		}
		said = failing.Message
		w.carryOut(decided)
	}
	if most := int(time.Hour/(health.DefaultFailureWindow/2)) + 1; changes > most || changes < most/2 {
		t.Errorf("the status changed %d times in an hour, want %d at most", changes, most)
	}
}

// TestFailuresAreFew: a status has room for ten, and those stay that are known.
func TestFailuresAreFew(t *testing.T) {
	w := active(t)
	w.fail("Zebra", "default/first", 1)
	w.converge()
	for i := range 30 {
		w.fail(v1alpha1.ConversionFailureCause("Cause"+string(rune('A'+i))), "default/a", 1)
	}
	w.converge()
	rows := w.observed.Policy.Status.ConversionFailures
	if len(rows) != 10 || rows[9].Cause != "Zebra" {
		t.Errorf("%d rows: %+v", len(rows), rows)
	}
}

// TestTheExampleStays while any pod names it.
func TestTheExampleStays(t *testing.T) {
	w := active(t)
	w.fail("Panic", "default/b", 1)
	w.converge()
	w.pass(health.DefaultFailureWindow * 3 / 4)
	w.fail("Panic", "default/b", 1)
	w.observed.Pods[0].Failures[0].Object = "default/a"
	w.converge()
	if got := w.observed.Policy.Status.ConversionFailures[0]; got.Object != "default/b" || got.Count != 2 {
		t.Errorf("the example is %s, of %d", got.Object, got.Count)
	}
}

// TestFailuresOfNobody: what fails before the activation, or in pods of a converter
// that no client calls, is no failure in production.
func TestFailuresOfNobody(t *testing.T) {
	w := active(t)
	w.fail("Panic", "default/a", 1)
	w.observed.CRD.Spec.Conversion = nil
	w.observed.Policy.Status.ActivatedCRD = ""
	if is := w.plan().Status; is.ConversionFailures != nil || apimeta.FindStatusCondition(is.Conditions, v1alpha1.ConversionsFailingCondition) != nil {
		t.Errorf("failures of no one: %+v", is.ConversionFailures)
	}
}

// TestEveryCauseHasACure, and none that is not known is without words.
func TestEveryCauseHasACure(t *testing.T) {
	for _, cause := range []string{"AnnotationsTooLarge", "OverBudget", "Truncated", "InvalidJSON", "Panic", "TooSlow", "UnknownVersion", "WrongKind", "Other", "Unheard"} {
		w := active(t)
		w.fail(v1alpha1.ConversionFailureCause(cause), "", 1)
		w.converge()
		failing := apimeta.FindStatusCondition(w.observed.Policy.Status.Conditions, v1alpha1.ConversionsFailingCondition)
		if failing == nil || !strings.Contains(failing.Message, "fail: "+cause+": there is no room for it; lists of the kind fail with it: ") {
			t.Errorf("of %s it says %v", cause, failing)
		}
	}
}

// TestSamplesAreSpread: policies that are made together do not take samples together,
// and a shorter interval counts at once.
func TestSamplesAreSpread(t *testing.T) {
	seen := map[string]bool{}
	var w *world
	for i := range 20 {
		w = newWorld(t, policyYAML)
		w.observed.Policy.UID = types.UID(fmt.Sprint("uid-", i))
		w.observed.Policy.Spec.Migration.Mode = v1alpha1.MigrationOnTrigger
		w.applyCRD(bothStoredNew)
		w.converge()
		w.observed.Policy.Spec.Verification.ResampleInterval = &metav1.Duration{Duration: 6 * time.Hour}
		next := w.plan().Status.Verification.NextSampleTime
		if next == nil || next.Before(&metav1.Time{Time: w.observed.Now.Add(-time.Second)}) || next.After(w.observed.Now.Add(6*time.Hour)) {
			t.Fatalf("the next samples are taken at %v, and it is %s", next, w.observed.Now)
		}
		seen[next.Truncate(10*time.Minute).String()] = true
	}
	if len(seen) < 10 {
		t.Errorf("20 policies take samples at %d times", len(seen))
	}
	w.converge()
	w.observed.Policy.Status.Verification.NextSampleTime = &metav1.Time{Time: w.observed.Now.Add(6 * time.Hour)}
	w.observed.Policy.Spec.Verification.ResampleInterval.Duration = 10 * time.Minute
	if next := w.plan().Status.Verification.NextSampleTime; next.After(w.observed.Now.Add(11 * time.Minute)) {
		t.Errorf("the next samples are taken at %s, and it is %s", next, w.observed.Now)
	}
}
