// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package migration

import (
	"fmt"
	"slices"
	"strings"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
	"github.com/conversion-operator/conversion-operator/internal/plan/gate"
)

// Events returns the events of migrations between two states of a policy, in order.
func Events(before, after v1alpha1.ConversionPolicyStatus) []gate.Event {
	last, next := before.Migration, after.Migration
	if next == nil {
		return nil
	}
	var events []gate.Event
	if last == nil || last.Run != next.Run || last.State != v1alpha1.MigrationRunning && next.State == v1alpha1.MigrationRunning {
		events = append(events, ofRun(next, v1alpha1.ReasonMigrationStarted, what(next)+"; its record is ConfigMap "+next.Record.String(), false))
		last = &v1alpha1.MigrationStatus{State: v1alpha1.MigrationRunning}
	}
	if last.State == v1alpha1.MigrationRunning {
		events = append(events, whileRunning(last, next)...)
	}
	if pruned := missingFrom(before.CRD, after.CRD); next.State == v1alpha1.MigrationSucceeded && last.State != next.State && len(pruned) > 0 {
		events = append(events, ofRun(next, v1alpha1.ReasonStoredVersionsPruned, fmt.Sprintf(
			"status.storedVersions names %s alone: removed %s after run %s", next.StorageVersion, strings.Join(pruned, ", "), next.Run), false))
	}
	return events
}

func ofRun(run *v1alpha1.MigrationStatus, reason, note string, warning bool) gate.Event {
	return gate.Event{Reason: reason, Action: "Migrate", Note: note, Warning: warning, CRD: run.CRDUID}
}

// whileRunning returns the events of a run that was under way.
func whileRunning(last, next *v1alpha1.MigrationStatus) []gate.Event {
	counts := fmt.Sprintf("run %s: %s", next.Run, counts(next))
	one := func(reason, note string, warning bool) []gate.Event {
		return []gate.Event{ofRun(next, reason, note, warning)}
	}
	switch next.State {
	case v1alpha1.MigrationSucceeded:
		return one(v1alpha1.ReasonMigrationCompleted, counts+": all objects are stored at "+next.StorageVersion, false)
	case v1alpha1.MigrationSuperseded:
		return one(v1alpha1.ReasonMigrationSuperseded, counts+"; the CustomResourceDefinition changed, which invalidates the run", true)
	case v1alpha1.MigrationCancelled:
		return one(v1alpha1.ReasonMigrationCancelled, counts+"; cancelled without pruning", false)
	case v1alpha1.MigrationFailed:
		return one(failureReason(next), counts+explainMessage(next)+"; status.storedVersions was not pruned", true)
	}
	switch was, is := last.Step == v1alpha1.MigrationSuspended, next.Step == v1alpha1.MigrationSuspended; {
	case is && !was:
		return one(v1alpha1.ReasonMigrationSuspended, counts+"; it is suspended", false)
	case was && !is:
		return one(v1alpha1.ReasonMigrationResumed, counts+"; it goes on", false)
	}
	return nil
}

func failureReason(run *v1alpha1.MigrationStatus) string {
	if run.Failed > 0 {
		return v1alpha1.ReasonObjectsFailed
	}
	return v1alpha1.ReasonMigrationFailed
}

func explainMessage(run *v1alpha1.MigrationStatus) string {
	switch {
	case run.Message != "":
		return "; " + run.Message
	case len(run.Failures) > 0:
		return "; for example " + run.Failures[0].Object + ": " + gate.Cut(run.Failures[0].Message)
	}
	return ""
}

// counts formats the progress of a run.
func counts(run *v1alpha1.MigrationStatus) string {
	text := fmt.Sprintf("%d of %d objects, %d rewritten, %d current, %d gone, %d failed",
		done(run), max(done(run), run.Total), run.Rewritten, run.Current, run.Gone, run.Failed)
	if run.Verified > 0 {
		text += fmt.Sprintf(", %d verified", run.Verified)
	}
	return text
}

// missingFrom returns the stored versions that are no longer listed.
func missingFrom(before, after *v1alpha1.CRDStatus) []string {
	if before == nil || after == nil || before.UID != after.UID {
		return nil
	}
	return slices.DeleteFunc(slices.Clone(before.StoredVersions), func(version string) bool {
		return slices.Contains(after.StoredVersions, version)
	})
}
