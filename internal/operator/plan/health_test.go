// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package plan_test

import (
	"fmt"
	"path"
	"slices"
	"strings"
	"testing"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
	"github.com/conversion-operator/conversion-operator/internal/operator/plan/health"
	"github.com/conversion-operator/conversion-operator/internal/operator/plan/observed"
	"github.com/conversion-operator/conversion-operator/internal/operator/plan/step"
	"github.com/conversion-operator/conversion-operator/internal/test/expect"
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
	if got := w.observed.Policy.Status.ConversionFailures[0]; got.Object != "default/b" {
		t.Errorf("the example is %s", got.Object)
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
		w.activate(bothStoredNew)
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

// fail lets each pod tell that conversions from v1beta1 to v1 have failed, and now.
func (w *world) fail(cause v1alpha1.ConversionFailureCause, object string, count int64) {
	for i := range w.observed.Pods {
		pod := &w.observed.Pods[i]
		row := v1alpha1.ConversionFailure{From: "v1beta1", To: "v1", Cause: cause, LastTime: metav1.NewTime(w.observed.Now),
			Object: object, Message: "there is no room for it"}
		pod.Failures = slices.DeleteFunc(slices.Clone(pod.Failures), func(one observed.Failure) bool { return one.To == row.To && one.Cause == row.Cause })
		told := observed.Failure{ConversionFailure: row, Count: count}
		if cause == v1alpha1.CauseUnknownVersion {
			told.Ruleset, told.Since = path.Base(*w.observed.CRD.Spec.Conversion.Webhook.ClientConfig.Service.Path), w.observed.Now
		}
		pod.Failures = append(pod.Failures, told)
	}
}

// tellFailures tells what the status says of failed conversions.
func (w *world) tellFailures() {
	for _, row := range w.observed.Policy.Status.ConversionFailures {
		w.tell("  | %s → %s: %s until %s, %s", row.From, row.To, row.Cause, row.LastTime.Format(time.TimeOnly), row.Object)
	}
}

// versionAdded: conversions to a version that was just added fail until its rules are active.
func versionAdded(w *world) {
	w.say("Everything is active, and only the old version is served.")
	w.activate(onlyOld)
	w.say("The new version is added, and a client asks for it before its rules are active. No one has to act.")
	w.applyCRD(bothStoredOld)
	w.fail(v1alpha1.CauseUnknownVersion, "default/a", 3)
	w.converge()
	w.tellFailures()
	w.say("Another version is added, but pods do not become right with its rules.")
	w.Misbehave = "a canary came back wrong"
	w.applyCRD(strings.ReplaceAll(bothStoredOld+newServed, newServed+newServed, newServed+strings.Replace(newServed, "v1", "v2", 1)))
	w.fail(v1alpha1.CauseUnknownVersion, "default/a", 3)
	w.converge()
	w.tellFailures()
	w.say("A minute later, that is no transition any more.")
	w.later(time.Minute)
	w.tellFailures()
	w.say("They are right: what failed is history.")
	w.Misbehave = ""
	w.later(time.Minute)
	w.tellFailures()
}

func conversionsFail(w *world) {
	w.say("Everything is active.")
	w.activate(bothStoredOld)
	w.say("A client writes an object that cannot be converted.")
	w.fail("AnnotationsTooLarge", "default/big", 3)
	w.converge()
	w.tellFailures()
	w.say("It fails again and again, which is written seldom.")
	for range 4 {
		w.pass(2 * time.Minute)
		w.fail("AnnotationsTooLarge", "default/big", 1000)
		w.converge()
		w.tellFailures()
	}
	w.say("Something else goes wrong besides: that is written at once.")
	w.fail("Panic", "default/odd", 1)
	w.converge()
	w.tellFailures()
	w.say("The policy is paused, and no one would otherwise know that it goes on.")
	w.pause(true)
	w.pause(false)
	w.say("The objects are corrected. Some time later.")
	w.later(health.DefaultFailureWindow)
	w.tellFailures()
}

func sampledAgain(w *world) {
	w.say("Everything is active, and an hour passes.")
	w.observed.Policy.Spec.Migration.Mode = v1alpha1.MigrationOnTrigger
	w.observed.Policy.Spec.Verification.ResampleInterval = &metav1.Duration{Duration: time.Hour}
	w.resampled = observed.BackgroundCheck{Objects: 3}
	w.define(bothStoredOld)
	w.later(66 * time.Minute)
	w.tellSampled()
	w.say("Another hour later, an object does not come back as it was. Nothing is undone.")
	w.resampled = observed.BackgroundCheck{Objects: 1, Lost: true, Reason: v1alpha1.ReasonRoundTripFailed,
		Message: "object default/odd: .hostPort does not come back as it was from v1beta1 to v1 and back"}
	w.later(66 * time.Minute)
	w.say("Then it cannot be read at all, because its conversion fails.")
	w.resampled = observed.BackgroundCheck{Lost: true, Reason: v1alpha1.ReasonObjectsUnreadable, Message: "object default/odd cannot be read at v1: conversion webhook failed"}
	w.later(20 * time.Minute)
	w.say("Objects cannot be read for a reason that is not theirs: what was found stays.")
	w.resampled = observed.BackgroundCheck{Reason: v1alpha1.ReasonObjectsUnreadable, Message: "a timeout"}
	w.later(20 * time.Minute)
	w.say("Nothing is sampled during a migration, nor while the policy is paused.")
	w.observed.Policy.Spec.Migration.Trigger = "now"
	w.define(bothStoredNew)
	w.later(2 * time.Hour)
	w.observed.Policy.Spec.Paused = true
	w.completes(3)
	w.say("It goes on, while other policies take samples.")
	w.observed.Policy.Spec.Paused = false
	w.observed.ResamplersBusy = true
	w.converge()
	w.say("They have ended. The object is corrected.")
	w.observed.ResamplersBusy = false
	w.resampled = observed.BackgroundCheck{Objects: 3}
	w.converge()
	w.tellSampled()
	w.say("Samples are given up.")
	w.observed.Policy.Spec.Verification.Samples = new(int32)
	w.converge()
	w.tellSampled()
}

// tellSampled tells what the status says of samples.
func (w *world) tellSampled() {
	known := w.observed.Policy.Status.Verification
	says := "none are planned"
	if known.NextSampleTime != nil {
		says = "the next are taken at " + known.NextSampleTime.Format(time.TimeOnly)
	}
	w.tell("  | of samples: %s", says)
}

// huge is an object that does not fit at v1beta1, as it was seen now.
func (w *world) huge(name string) v1alpha1.OversizedObject {
	return v1alpha1.OversizedObject{Object: "default/" + name, Version: "v1beta1", FieldsOf: "v1", Fields: []string{".spec.blob"}, Bytes: 400_000, LastTime: metav1.NewTime(w.observed.Now)}
}

func (w *world) expectOversized(names ...string) {
	w.t.Helper()
	var got []string
	for _, row := range w.observed.Policy.Status.OversizedObjects {
		got = append(got, strings.TrimPrefix(row.Object, "default/"))
	}
	expect.Equal(w.t, "known", strings.Join(names, " "), strings.Join(got, " "))
	condition := apimeta.FindStatusCondition(w.observed.Policy.Status.Conditions, v1alpha1.OversizedObjectsCondition)
	expect.Equal(w.t, "there is a condition", len(names) > 0, condition != nil)
	if condition != nil && !strings.Contains(condition.Message, "object default/"+names[0]+" does not fit at v1beta1: .spec.blob, which only v1 has, needs 400000 of the") {
		w.t.Errorf("it says %s", condition.Message)
	}
}

// TestOversizedObjects are known from samples and converter pods until they were read
// again, whatever manager there is, and for a day where nothing is read.
func TestOversizedObjects(t *testing.T) {
	w := newWorld(t, policyYAML)
	w.observed.Policy.Spec.Migration.Mode = v1alpha1.MigrationOnTrigger
	w.samples.Oversized = []v1alpha1.OversizedObject{w.huge("sampled")}
	w.define(bothStoredNew)
	w.expectOversized("sampled")
	w.observed.Pods[0].Oversized = []v1alpha1.OversizedObject{w.huge("told")}
	w.observed.Pods[1].Oversized = []v1alpha1.OversizedObject{w.huge("told")}
	w.converge()
	w.expectOversized("sampled", "told")
	rest := w.snapshot()
	w.observed.Pods[0].Oversized = []v1alpha1.OversizedObject{w.huge("told")}
	w.carryOut(w.plan())
	w.observed.Pods[0].Oversized = w.observed.Pods[1].Oversized
	expect.Equal(t, "state after what was seen again", rest, w.snapshot())

	// Another manager, and pods that were started since, know what the status has.
	w.observed.Samples, w.observed.Pods[0].Oversized, w.observed.Pods[1].Oversized = nil, nil, nil
	w.converge()
	w.expectOversized("sampled", "told")

	w.observed.Policy.Spec.Verification.ResampleInterval = &metav1.Duration{Duration: 6 * time.Hour}
	asked := 0
	w.resampled = observed.BackgroundCheck{Objects: 3}
	for range 200 {
		w.observed.Now = w.observed.Now.Add(10 * time.Second)
		decided := w.plan()
		for _, s := range decided.Steps {
			if again, is := s.(step.TakeSamples); is && again.Again {
				asked++
				if len(again.Oversized) != 2 {
					t.Fatalf("to be read again are %+v", again.Oversized)
				}
				told := w.huge("told")
				w.resampled = observed.BackgroundCheck{Objects: 3, Whole: again.Oversized[:1], Oversized: []v1alpha1.OversizedObject{told}}
			}
		}
		w.carryOut(decided)
		if asked > 0 && len(w.observed.Policy.Status.OversizedObjects) == 1 {
			break
		}
	}
	w.expectOversized("told")

	w.observed.Resampled, w.observed.Policy.Spec.Verification.ResampleInterval = nil, &metav1.Duration{}
	w.later(23 * time.Hour)
	w.expectOversized("told")
	w.later(2 * time.Hour)
	w.expectOversized()
}

// TestOversizedObjectsOfNobody: where nothing is truncated, nothing is too large.
func TestOversizedObjectsOfNobody(t *testing.T) {
	for name, change := range map[string]func(*world){
		"dropped":  func(w *world) { w.observed.Policy.Spec.Converter.Declarative.Overflow = v1alpha1.OverflowDrop },
		"disabled": func(w *world) { w.observed.Settings.SizeAdmission = false },
	} {
		t.Run(name, func(t *testing.T) {
			w := active(t)
			w.observed.Pods[0].Oversized = []v1alpha1.OversizedObject{w.huge("told")}
			w.carryOut(w.plan())
			w.expectOversized("told")
			change(w)
			w.carryOut(w.plan())
			w.expectOversized()
		})
	}
}

// TestPromotionOfWhatHasNoRoom: nothing is truncated to a storage version with a scale,
// so that objects that have no room there could not be read.
func TestPromotionOfWhatHasNoRoom(t *testing.T) {
	w := active(t)
	w.observed.CRD.Spec.Versions[0].Subresources = &apiextensionsv1.CustomResourceSubresources{Scale: &apiextensionsv1.CustomResourceSubresourceScale{}}
	w.observed.Pods[0].Oversized = []v1alpha1.OversizedObject{w.huge("told")}
	w.observed.Policy.Spec.StorageVersion = "v1beta1"
	w.converge()
	expectCondition(t, w.observed.Policy.Status, v1alpha1.StorageMigratedCondition, "False", v1alpha1.ReasonPromotionRefused, "object default/told does not fit at v1beta1 with .spec.blob of v1")
}
