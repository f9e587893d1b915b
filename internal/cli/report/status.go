// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package report

import (
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
)

// status is the status of a policy in a cluster.
type status struct {
	*v1alpha1.ConversionPolicyStatus
	Conditions []condition
	// Ready is that condition, or nil.
	Ready   *condition
	Run     *run
	History []event
}

// condition is a condition of the status, with a tone.
type condition struct {
	metav1.Condition
	Tone string
}

// run is the latest migration.
type run struct {
	*v1alpha1.MigrationStatus
	Tone string
	// Parts are the objects of the run by their result; the remaining ones come last.
	Parts []part
}

// part is a part of all objects of a run.
type part struct {
	Name, Class string
	Objects     int64
	// X and Width are its position in a bar of 1000.
	X, Width int64
}

// statusOf returns nil if the operator has not written a status yet.
func statusOf(of *v1alpha1.ConversionPolicyStatus) *status {
	if len(of.Conditions) == 0 {
		return nil
	}
	s := &status{ConversionPolicyStatus: of, History: historyOf(of)}
	for _, c := range of.Conditions {
		s.Conditions = append(s.Conditions, condition{c, toneOf(c)})
		if c.Type == v1alpha1.ReadyCondition {
			s.Ready = &condition{c, toneOf(c)}
		}
	}
	if of.Migration != nil {
		s.Run = runOf(of.Migration)
	}
	return s
}

// toneOf returns the tone of a condition: for most of them True is good, for some
// True is bad.
func toneOf(c metav1.Condition) string {
	switch {
	case c.Status == metav1.ConditionUnknown:
		return "plain"
	case c.Type == v1alpha1.ReconcilingCondition:
		return map[metav1.ConditionStatus]string{metav1.ConditionTrue: "plain", metav1.ConditionFalse: "good"}[c.Status]
	case c.Type == v1alpha1.StalledCondition || slices.Contains(v1alpha1.Abnormal, c.Type):
		return map[metav1.ConditionStatus]string{metav1.ConditionTrue: "bad", metav1.ConditionFalse: "good"}[c.Status]
	case c.Status == metav1.ConditionTrue:
		return "good"
	}
	return "bad"
}

func runOf(of *v1alpha1.MigrationStatus) *run {
	r := &run{MigrationStatus: of, Tone: "plain"}
	switch of.State {
	case v1alpha1.MigrationSucceeded:
		r.Tone = "good"
	case v1alpha1.MigrationFailed:
		r.Tone = "bad"
	}
	whole := max(of.Known(), 1)
	x := int64(0)
	for _, p := range []part{
		{Name: "rewritten", Class: "rewritten", Objects: of.Rewritten}, {Name: "unchanged", Class: "unchanged", Objects: of.Unchanged},
		{Name: "failed", Class: "failed", Objects: of.Failed},
		{Name: "remaining", Class: "left", Objects: of.Known() - of.Done()},
	} {
		p.X, p.Width = x*1000/whole, (x+p.Objects)*1000/whole-x*1000/whole
		x += p.Objects
		r.Parts = append(r.Parts, p)
	}
	return r
}

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
	if run := of.Migration; run != nil {
		h.add(run.StartTime, "Migration `%s` to `%s` started", run.Run, run.StorageVersion)
		h.add(run.CompletionTime, "Migration `%s` ended: %s, %s", run.Run, run.State, run.Progress)
	}
	if proof := of.MigrationEvidence; proof != nil {
		h.add(&proof.Time, "Every stored object was proven to be in the storage version")
	}
}
