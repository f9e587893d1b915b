// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package report

import (
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
)

// event is an event that the status records.
type event struct {
	At   metav1.Time
	Text string
}

// historyOf returns the events of a status, the oldest first.
func historyOf(of *v1alpha1.ConversionPolicyStatus) []event {
	var h history
	h.conversion(of)
	h.migration(of)
	for _, version := range of.Retirement {
		h.add(version.DeprecatedTime, "Version `%s` was deprecated", version.Version)
		h.add(version.UnservedTime, "Version `%s` was no longer served", version.Version)
		h.add(version.CleanedTime, "No object named version `%s` in its managed fields", version.Version)
		h.add(version.RemovedTime, "Version `%s` was removed from the CustomResourceDefinition", version.Version)
	}
	slices.SortStableFunc(h, func(a, b event) int { return a.At.Compare(b.At.Time) })
	return h
}

type history []event

// add records an event that has a time.
func (h *history) add(at *metav1.Time, format string, args ...any) {
	if !at.IsZero() {
		*h = append(*h, event{*at, fmt.Sprintf(format, args...)})
	}
}

func (h *history) conversion(of *v1alpha1.ConversionPolicyStatus) {
	if window := of.UnconvertedWindow; window != nil {
		h.add(&window.Since, "Several versions were served without a conversion")
		h.add(window.Until, "The CustomResourceDefinition converted objects")
	}
	for _, active := range of.ActiveRevisions {
		h.add(active.ReplacedTime, "The CustomResourceDefinition stopped using ruleset `%s`", active.Revision)
	}
	h.drift("spec.conversion", of.Drift)
	h.drift("spec.versions", of.VersionsDrift)
	h.add(of.ConversionRemovedTime, "The CustomResourceDefinition stopped converting through this policy")
}

func (h *history) drift(field string, drift *v1alpha1.DriftStatus) {
	if drift == nil {
		return
	}
	writer := "Another client"
	if drift.LastManager != "" {
		writer = "`" + drift.LastManager + "`"
	}
	h.add(&drift.LastTime, "%s wrote `%s` of the CustomResourceDefinition: %s", writer, field, drift.Answer)
}

func (h *history) migration(of *v1alpha1.ConversionPolicyStatus) {
	if promoted := of.Promotion; promoted != nil {
		h.add(&promoted.Time, "Version `%s` was the storage version", promoted.Version)
	}
	if run := of.Migration; run != nil {
		h.add(run.StartTime, "Migration `%s` to `%s` started", run.Run, run.StorageVersion)
		h.add(run.CompletionTime, "Migration `%s` ended: %s, %s", run.Run, run.State, run.Progress)
	}
	if proof := of.MigrationEvidence; proof != nil {
		h.add(&proof.Time, "Every stored object was proven to be in version `%s`", proof.StorageVersion)
	}
}
