// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package plan_test

import (
	"fmt"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
	"github.com/conversion-operator/conversion-operator/internal/migration/contract"
	"github.com/conversion-operator/conversion-operator/internal/plan/health"
	"github.com/conversion-operator/conversion-operator/internal/plan/observed"
)

// fail lets each pod tell that conversions from v1beta1 to v1 have failed, and now.
func (w *world) fail(cause v1alpha1.ConversionFailureCause, object string, count int64) {
	for i := range w.observed.Pods {
		pod := &w.observed.Pods[i]
		row := v1alpha1.ConversionFailure{From: "v1beta1", To: "v1", Cause: cause, Count: count, LastTime: metav1.NewTime(w.observed.Now),
			Object: object, Message: "there is no room for it"}
		pod.Failures = append(replaced(pod.Failures, row), row)
	}
}

func replaced(rows []v1alpha1.ConversionFailure, by v1alpha1.ConversionFailure) []v1alpha1.ConversionFailure {
	var others []v1alpha1.ConversionFailure
	for _, row := range rows {
		if row.To != by.To || row.Cause != by.Cause {
			others = append(others, row)
		}
	}
	return others
}

// tellFailures tells what the status says of failed conversions.
func (w *world) tellFailures() {
	for _, row := range w.observed.Policy.Status.ConversionFailures {
		w.tell("  | %s → %s: %s, %d times until %s, %s", row.From, row.To, row.Cause, row.Count, row.LastTime.Format(time.TimeOnly), row.Object)
	}
}

func conversionsFail(w *world) {
	w.say("Everything is active.")
	w.observed.Policy.Spec.Migration.Mode = v1alpha1.MigrationOnTrigger
	w.applyCRD(bothStoredOld)
	w.converge()
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
	w.say("The policy is suspended, and no one would otherwise know that it goes on.")
	w.observed.Policy.Spec.Suspend = true
	w.converge()
	w.observed.Policy.Spec.Suspend = false
	w.converge()
	w.say("The objects are corrected. Some time later.")
	w.pass(health.DefaultFailureWindow)
	w.converge()
	w.tellFailures()
}

func sampledAgain(w *world) {
	w.say("Everything is active, and an hour passes.")
	w.observed.Policy.Spec.Migration.Mode = v1alpha1.MigrationOnTrigger
	w.observed.Policy.Spec.Verification.ResampleInterval = &metav1.Duration{Duration: time.Hour}
	w.resampled = observed.BackgroundCheck{Objects: 3}
	w.applyCRD(bothStoredOld)
	w.converge()
	w.pass(66 * time.Minute)
	w.converge()
	w.tellSampled()
	w.say("Another hour later, an object does not come back as it was. Nothing is undone.")
	w.resampled = observed.BackgroundCheck{Objects: 1, Lost: true, Reason: v1alpha1.ReasonRoundTripFailed,
		Message: "object default/odd: .hostPort does not come back as it was from v1beta1 to v1 and back"}
	w.pass(66 * time.Minute)
	w.converge()
	w.say("Then it cannot be read at all, because its conversion fails.")
	w.resampled = observed.BackgroundCheck{Lost: true, Reason: v1alpha1.ReasonObjectUnreadable, Message: "object default/odd cannot be read at v1: conversion webhook failed"}
	w.pass(20 * time.Minute)
	w.converge()
	w.say("Objects cannot be read for a reason that is not theirs: what was found stays.")
	w.resampled = observed.BackgroundCheck{Reason: v1alpha1.ReasonSamplesUnreadable, Message: "a timeout"}
	w.pass(20 * time.Minute)
	w.converge()
	w.say("Nothing is sampled during a migration, nor while the policy is suspended.")
	w.observed.Policy.Spec.Migration.Trigger = "now"
	w.applyCRD(bothStoredNew)
	w.converge()
	w.pass(2 * time.Hour)
	w.converge()
	w.observed.Policy.Spec.Suspend = true
	w.record(contract.Record{State: contract.StateCompleted, Counters: contract.Counters{Total: 3, Rewritten: 3}})
	w.converge()
	w.say("It goes on, while other policies take samples.")
	w.observed.Policy.Spec.Suspend = false
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
	var says []string
	if known.Resampled != nil {
		says = append(says, fmt.Sprintf("%d came back at %s", *known.Resampled, known.ResampledTime.Format(time.TimeOnly)))
	}
	if known.NextSampleTime != nil {
		says = append(says, "the next are taken at "+known.NextSampleTime.Format(time.TimeOnly))
	}
	w.tell("  | of samples: %s", strings.Join(says, "; "))
}
