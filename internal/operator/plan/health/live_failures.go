// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package health

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
	"github.com/conversion-operator/conversion-operator/internal/operator/plan/gate"
	"github.com/conversion-operator/conversion-operator/internal/operator/plan/names"
	"github.com/conversion-operator/conversion-operator/internal/operator/plan/observed"
)

// Converter pods report which conversions failed in production. The operator reports them further
// while they continue, and no gate depends on them: users have to correct the object or the
// rules, and any client that reaches the port of a pod can forge a report.
//
// There may be a thousand failures a second, and every write of the status goes to etcd. A new kind
// of failure is written at once; counts and times of known ones at most once in half a window.

// DefaultFailureWindow is how long failed conversions are reported after the last one.
const DefaultFailureWindow = 10 * time.Minute

// rolloutTime is how long conversions may fail for the lack of a version that the next ruleset has. A
// version that is added to an active CustomResourceDefinition fails until its ruleset is verified, usually
// for a second.
const rolloutTime = time.Minute

// maxConversionFailures is the maximum number of kinds of failures in a status.
const maxConversionFailures = 10

// failureWindow is long enough for every pod to be probed again within half of it.
func (h *Health) failureWindow() time.Duration {
	return max(cmp.Or(h.Settings.FailureWindow, DefaultFailureWindow), 2*h.Settings.ProofLifetime)
}

// reportFailures reports failed conversions in status and condition.
func (h *Health) reportFailures() {
	status := &h.Status
	if status.ConversionFailures = h.failures(); len(status.ConversionFailures) == 0 {
		status.ConversionFailures = nil
		h.forget(v1alpha1.ConversionsFailingCondition)
		return
	}
	h.report(v1alpha1.ConversionsFailingCondition, gate.Abnormal(v1alpha1.ReasonConversionFailed, describeFailures(status.ConversionFailures)))
}

// failures are the reported ones that continue, and new ones.
func (h *Health) failures() []v1alpha1.ConversionFailure {
	if !h.converter.Active {
		return nil
	}
	seen := h.failuresOfPods()
	rows := h.failuresThatLast(seen)
	for _, row := range seen {
		if _, known := find(rows, row); !known && len(rows) < maxConversionFailures {
			rows = append(rows, row)
		}
	}
	for _, row := range rows {
		h.work.Recheck(row.LastTime.Add(h.failureWindow()).Sub(h.Now))
	}
	slices.SortFunc(rows, compareFailures)
	return rows
}

// failuresThatLast are the failures of the status within the window. They keep the
// times of the status unless one of them is behind by half a window.
func (h *Health) failuresThatLast(seen []v1alpha1.ConversionFailure) []v1alpha1.ConversionFailure {
	window, behind := h.failureWindow(), false
	var before, now []v1alpha1.ConversionFailure
	for _, row := range h.Policy.Status.ConversionFailures {
		latest := row
		if told, still := find(seen, row); still && told.LastTime.After(row.LastTime.Time) {
			latest = told
		}
		if h.Now.Sub(latest.LastTime.Time) >= window || h.outlived(latest) {
			continue
		}
		behind = behind || latest.LastTime.Sub(row.LastTime.Time) >= window/2
		before, now = append(before, row), append(now, latest)
	}
	if behind {
		return now
	}
	return before
}

// failuresOfPods adds up the reports of pods within the window. The example object stays while a
// pod names it.
func (h *Health) failuresOfPods() []v1alpha1.ConversionFailure {
	var sum []v1alpha1.ConversionFailure
	for _, pod := range h.Pods {
		for _, told := range pod.Failures {
			told.LastTime = told.LastTime.Rfc3339Copy()
			if h.Now.Sub(told.LastTime.Time) >= h.failureWindow() || h.passes(told) {
				continue
			}
			if at := indexOf(sum, told.ConversionFailure); at >= 0 {
				sum[at] = h.together(sum[at], told.ConversionFailure)
			} else {
				sum = append(sum, told.ConversionFailure)
			}
		}
	}
	return sum
}

// passes reports that a ruleset lacks a version that a later one has, which converts already, or will
// within rolloutTime.
func (h *Health) passes(told observed.Failure) bool {
	active := h.converter.Named()
	switch {
	case told.Ruleset == "" || active == "":
		return false
	case told.Ruleset != names.RevisionOf(active).Hash:
		return true
	}
	return h.converter.Wanted != active && !h.work.Due(told.Since.Add(rolloutTime).Sub(h.Now))
}

// outlived reports that the ruleset that lacked a version was replaced since.
func (h *Health) outlived(row v1alpha1.ConversionFailure) bool {
	return row.Cause == v1alpha1.CauseUnknownVersion && slices.ContainsFunc(h.converter.Status.Active, func(active v1alpha1.ActiveRevision) bool {
		return active.ReplacedTime != nil && !row.LastTime.After(active.ReplacedTime.Time)
	})
}

// together merges the reports of two pods about the same kind of failure.
func (h *Health) together(a, b v1alpha1.ConversionFailure) v1alpha1.ConversionFailure {
	known, _ := find(h.Policy.Status.ConversionFailures, a)
	last := a.LastTime
	if b.LastTime.After(last.Time) {
		last = b.LastTime
	}
	if a.Object != known.Object && (b.Object == known.Object || b.Object < a.Object) {
		a = b
	}
	a.LastTime = last
	return a
}

func find(rows []v1alpha1.ConversionFailure, like v1alpha1.ConversionFailure) (v1alpha1.ConversionFailure, bool) {
	at := indexOf(rows, like)
	if at < 0 {
		return v1alpha1.ConversionFailure{}, false
	}
	return rows[at], true
}

func indexOf(rows []v1alpha1.ConversionFailure, like v1alpha1.ConversionFailure) int {
	return slices.IndexFunc(rows, func(row v1alpha1.ConversionFailure) bool { return compareFailures(row, like) == 0 })
}

// compareFailures orders kinds of failures.
func compareFailures(a, b v1alpha1.ConversionFailure) int {
	return cmp.Or(cmp.Compare(a.From, b.From), cmp.Compare(a.To, b.To), cmp.Compare(a.Cause, b.Cause))
}

// describeFailures describes the first failure, without counts and times, so that the condition
// changes only with the failures.
func describeFailures(rows []v1alpha1.ConversionFailure) string {
	row := rows[0]
	says := fmt.Sprintf("conversions from %s to %s fail: %s", row.From, row.To, row.Cause)
	if row.Object != "" {
		says += ", for example of object " + row.Object
	}
	says += ": " + gate.Cut(row.Message) + "; lists of the kind fail with it: " + cureOf(row.Cause)
	if len(rows) > 1 {
		says += "; see status.conversionFailures for others"
	}
	return says
}

// cures say what to do, by causes.
var cures = map[v1alpha1.ConversionFailureCause]string{
	v1alpha1.CauseTruncated:           "write the object at the version that has the large fields, or reduce them",
	v1alpha1.CauseOverBudget:          "reduce the object's lists, maps and strings, or the cost of the expressions",
	v1alpha1.CauseAnnotationsTooLarge: "reduce the object's annotations, or the fields that the other version lacks",
	v1alpha1.CauseInvalidJSON:         "check proxies between API servers and the converter, and the log of the converter pods",
	v1alpha1.CausePanic:               "see the log of the converter pods, and report the bug",
	v1alpha1.CauseTooSlow:             "check the CPU limit of the converter pods, the resources of the workload, and the size of the object",
	v1alpha1.CauseUnknownVersion:      "add the version to the policy's spokes, or remove it from the CustomResourceDefinition",
	v1alpha1.CauseWrongKind:           "check that only this CustomResourceDefinition names the converter",
}

func cureOf(cause v1alpha1.ConversionFailureCause) string {
	return cmp.Or(cures[cause], "correct the object or the rules, and see the log of the converter pods")
}
