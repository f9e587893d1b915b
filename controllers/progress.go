// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"math"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
	"github.com/conversion-operator/conversion-operator/internal/migration"
	"github.com/conversion-operator/conversion-operator/internal/plan"
)

// progressOf reads a run's record. One that cannot be read, or is another run's,
// proves nothing: it ends the run as one that could not go on.
func progressOf(run, text string) *plan.Progress {
	record, err := migration.ParseRecord([]byte(text))
	if err != nil {
		return &plan.Progress{Finished: true, Aborted: err.Error()}
	}
	if record.Run != run {
		return &plan.Progress{Finished: true, Aborted: "the record is of run " + record.Run}
	}
	progress := &plan.Progress{
		Finished: record.Finished(), Complete: record.Complete(),
		Step: steps[record.State], Waiting: record.Waiting,
		Total: record.Total, Rewritten: record.Rewritten, Current: record.Current, Gone: record.Gone, Failed: record.Failed,
		Verified: record.Verified, ByFallback: record.ByFallback,
		// A run that does one object in some seconds does not stand still.
		RatePerSecond:       int64(math.Ceil(record.RatePerSecond)),
		EstimatedCompletion: record.EstimatedCompletion,
		Started:             record.StartTime,
	}
	if record.BarrierKind != "" {
		progress.Barrier = &v1alpha1.MigrationBarrier{Kind: v1alpha1.BarrierKind(record.BarrierKind), APIServers: int32(record.APIServers)} //nolint:gosec // no cluster has as many
	}
	if record.State == migration.StateAborted {
		progress.Aborted = record.Message
	}
	if record.Ruleset != "" {
		progress.Held = &plan.Held{Ruleset: record.Ruleset, Since: record.CountedFrom().Time}
		if record.Preserved != nil {
			progress.Held.Holdings = *record.Preserved
		}
	}
	progress.Placed, progress.NotPlaced, progress.Refused = record.Placed, record.Unplaced, failuresOf(record.Refused)
	progress.Predicted, progress.Failures = failuresOf(record.Predicted), failuresOf(record.Failures)
	return progress
}

// failuresOf are as many as a status names.
func failuresOf(recorded []migration.Failure) []v1alpha1.MigrationFailure {
	var failures []v1alpha1.MigrationFailure
	for _, f := range recorded[:min(len(recorded), maxNames)] {
		failures = append(failures, v1alpha1.MigrationFailure{Object: f.Object, Reason: string(f.Reason), Message: f.Message, Command: f.Command})
	}
	return failures
}

// steps are what a run is at by the states of its record. One that has ended is
// at none.
var steps = map[migration.State]v1alpha1.MigrationStep{
	migration.StatePreflight: v1alpha1.MigrationTrying,
	migration.StateSettling:  v1alpha1.MigrationSettling,
	migration.StateRunning:   v1alpha1.MigrationRewriting,
	migration.StateAuditing:  v1alpha1.MigrationAuditing,
	migration.StateVerifying: v1alpha1.MigrationVerifying,
}
