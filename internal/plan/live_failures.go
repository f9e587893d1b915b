// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
)

// Converter pods tell which conversions failed in production. That is reported for as
// long as it goes on, and changes nothing else: the gates are about what the operator
// does, and an object that cannot be converted is for people to correct. What a pod
// tells may have been made up by whoever reaches its port, so nothing depends on it.
//
// A kind may fail a thousand times in a second, and the status is written to etcd: a
// kind of failure that is new is written at once, and counts and times of those that
// are known once in half a window at most.

// DefaultFailureWindow is how long failed conversions are reported after the last one.
const DefaultFailureWindow = 10 * time.Minute

// maxConversionFailures is how many kinds of failed conversions a status has.
const maxConversionFailures = 10

// failureWindow is long enough for pods to be asked again within half of it.
func (s *state) failureWindow() time.Duration {
	return max(cmp.Or(s.Settings.FailureWindow, DefaultFailureWindow), 2*s.Settings.ProofLifetime)
}

// noteFailures reports failed conversions in status and condition.
func (s *state) noteFailures() {
	status := &s.plan.Status
	if status.ConversionFailures = s.failures(); len(status.ConversionFailures) == 0 {
		status.ConversionFailures = nil
		apimeta.RemoveStatusCondition(&status.Conditions, v1alpha1.ConversionsFailingCondition)
		return
	}
	s.report(v1alpha1.ConversionsFailingCondition, outcome{status: metav1.ConditionTrue, reason: v1alpha1.ReasonConversionFailed,
		message: describeFailures(status.ConversionFailures)})
}

// failures are those to report: what was reported before and goes on, and what is new.
func (s *state) failures() []v1alpha1.ConversionFailure {
	if !s.armed {
		return nil
	}
	seen := s.failuresOfPods()
	rows := s.failuresThatLast(seen)
	for _, row := range seen {
		if _, known := find(rows, row); !known && len(rows) < maxConversionFailures {
			rows = append(rows, row)
		}
	}
	for _, row := range rows {
		s.recheck(row.LastTime.Add(s.failureWindow()).Sub(s.Now))
	}
	slices.SortFunc(rows, compareFailures)
	return rows
}

// failuresThatLast are those of the status within the window, as they are there; or all
// as they are now, where one of them is behind by half a window.
func (s *state) failuresThatLast(seen []v1alpha1.ConversionFailure) []v1alpha1.ConversionFailure {
	window, behind := s.failureWindow(), false
	var before, now []v1alpha1.ConversionFailure
	for _, row := range s.Policy.Status.ConversionFailures {
		latest := row
		if told, still := find(seen, row); still && told.LastTime.After(row.LastTime.Time) {
			latest = told
		}
		if s.Now.Sub(latest.LastTime.Time) >= window {
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

// failuresOfPods adds up what pods tell, within the window. The example stays as long
// as a pod names it.
func (s *state) failuresOfPods() []v1alpha1.ConversionFailure {
	var sum []v1alpha1.ConversionFailure
	for _, pod := range s.Pods {
		for _, told := range pod.Failures {
			told.LastTime = told.LastTime.Rfc3339Copy()
			if s.Now.Sub(told.LastTime.Time) >= s.failureWindow() {
				continue
			}
			if at := indexOf(sum, told); at >= 0 {
				sum[at] = s.together(sum[at], told)
			} else {
				sum = append(sum, told)
			}
		}
	}
	return sum
}

// together is a kind of failure that two pods tell of.
func (s *state) together(a, b v1alpha1.ConversionFailure) v1alpha1.ConversionFailure {
	known, _ := find(s.Policy.Status.ConversionFailures, a)
	count, last := a.Count+b.Count, a.LastTime
	if b.LastTime.After(last.Time) {
		last = b.LastTime
	}
	if a.Object != known.Object && (b.Object == known.Object || b.Object < a.Object) {
		a = b
	}
	a.Count, a.LastTime = count, last
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

// describeFailures names the first, without counts and times: a condition is to
// change when something happened.
func describeFailures(rows []v1alpha1.ConversionFailure) string {
	row := rows[0]
	says := fmt.Sprintf("conversions from %s to %s fail: %s", row.From, row.To, row.Cause)
	if row.Object != "" {
		says += ", for example of object " + row.Object
	}
	says += ": " + cut(row.Message) + "; lists of the kind fail with it: " + cureOf(row.Cause)
	if len(rows) > 1 {
		says += "; status.conversionFailures has the others"
	}
	return says
}

// cures say what to do, by causes.
var cures = map[string]string{
	"Shortened":           "write the object at the version that has the large fields, or make them smaller",
	"OverBudget":          "make the object's lists, maps and texts smaller, or the expressions cheaper",
	"AnnotationsTooLarge": "shorten the object's annotations, or the fields that the other version lacks",
	"InvalidJSON":         "check what stands between API servers and the converter, and the log of the converter pods",
	"Panic":               "see the log of the converter pods, and report the bug",
	"TooSlow":             "check the CPU limit of the converter pods, spec.workload.resources, and how large the object is",
	"UnknownVersion":      "add the version to the policy's spokes, or remove it from the CustomResourceDefinition",
	"WrongKind":           "check that only this CustomResourceDefinition names the converter",
}

func cureOf(cause string) string {
	return cmp.Or(cures[cause], "correct the object or the rules, and see the log of the converter pods")
}
