// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package overview

import (
	"fmt"
	"slices"
	"strings"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
	"github.com/conversion-operator/conversion-operator/internal/operator/terminal"
)

// migration writes the progress of the latest run, and its failures.
func (w *writer) migration(o *Overview) {
	run := o.Migration
	if run == nil && o.MigrationEvidence == nil && !o.MigrationSuspended {
		return
	}
	w.title("Migration")
	if o.MigrationSuspended {
		w.line("  suspended (spec.migration.suspend)")
	}
	if run != nil {
		w.run(o, run)
	}
	if e := o.MigrationEvidence; e != nil {
		proof := "there is no other version"
		if e.Source == v1alpha1.EvidenceMigration {
			proof = "a run processed all"
		}
		storage := ""
		if o.CRD != nil {
			storage = o.CRD.StorageVersion
		}
		w.line("  proven %s ago: every object is stored at %s; %s", ago(o.now.Sub(e.Time.Time)), storage, proof)
	}
}

func (w *writer) run(o *Overview, run *v1alpha1.MigrationStatus) {
	w.line("  run %s to %s: %s", run.Run, run.StorageVersion, w.stateOf(o, run))
	progress := fmt.Sprintf("  %s %d%%  %d of %d", bar(run, w.page.Colors), share(run), run.Done(), run.Known())
	if end := ends(run, o.now); end != "" {
		progress += "  " + end
	}
	w.line("%s", progress)
	w.line("  %s", countsOf(run))
	switch {
	case run.Message == "" || run.State == v1alpha1.MigrationRunning && o.MigrationSuspended:
	case run.State == v1alpha1.MigrationRunning:
		w.line("  stalled: %s", terminal.OneLine(run.Message))
	default:
		w.line("  %s", terminal.OneLine(run.Message))
	}
	for _, failure := range run.Failures {
		w.line("  %s %s: %s", w.page.Colors.In(terminal.Red, terminal.OrDash(string(failure.Reason))), failure.Object, terminal.OneLine(failure.Message))
		if failure.Command != "" {
			w.line("    %s", w.page.Colors.In(terminal.Cyan, failure.Command))
		}
	}
	if more := run.Failed - int64(len(run.Failures)); more > 0 {
		w.line("  and %d more: see ConfigMap %s", more, run.Record)
	}
	if run.NotPlaced > 0 {
		w.line("  %d migrated objects preserve values in annotations that have a place now: see ConfigMap %s", run.NotPlaced, run.Record)
	}
}

// stateOf describes the state of a run, and its duration.
func (w *writer) stateOf(o *Overview, run *v1alpha1.MigrationStatus) string {
	state := string(run.State)
	if run.Step != "" && run.State == v1alpha1.MigrationRunning {
		state = string(run.Step)
	}
	switch run.State {
	case v1alpha1.MigrationSucceeded:
		state = w.page.Colors.In(terminal.Green, state)
	case v1alpha1.MigrationFailed:
		state = w.page.Colors.In(terminal.Red, state)
	}
	switch {
	case run.StartTime == nil:
	case run.CompletionTime != nil:
		state += fmt.Sprintf(" after %s, %s ago", ago(run.CompletionTime.Sub(run.StartTime.Time)), ago(o.now.Sub(run.CompletionTime.Time)))
	default:
		state += ", for " + ago(o.now.Sub(run.StartTime.Time))
	}
	if run.Cause == v1alpha1.MigrationForPreservedData {
		state += "; because preserved data has a place now"
	}
	if run.RetryOf != "" {
		state += "; retries the failed objects of run " + run.RetryOf
	}
	return state
}

// countsOf lists the objects of a run by their results.
func countsOf(run *v1alpha1.MigrationStatus) string {
	return fmt.Sprintf("%d rewritten, %d unchanged, %d failed", run.Rewritten, run.Unchanged, run.Failed)
}

// failures writes the conversions that failed recently.
func (w *writer) failures(o *Overview) {
	if len(o.ConversionFailures) == 0 {
		return
	}
	w.title("Failing conversions")
	rows := [][]string{{"  FROM", "TO", "CAUSE", "LAST", "EXAMPLE", "MESSAGE"}}
	for _, row := range o.ConversionFailures {
		rows = append(rows, []string{"  " + row.From, row.To, string(row.Cause), ago(o.now.Sub(row.LastTime.Time)) + " ago",
			terminal.OrDash(row.Object), terminal.OneLine(row.Message)})
	}
	w.table(rows)
}

// oversized writes the objects that do not fit into a version.
func (w *writer) oversized(o *Overview) {
	if len(o.OversizedObjects) == 0 {
		return
	}
	w.title("Objects that are too large for a version")
	rows := [][]string{{"  OBJECT", "SHORTENED AT", "FIELDS OF", "BYTES", "FIELDS"}}
	for _, row := range o.OversizedObjects {
		rows = append(rows, []string{"  " + row.Object, row.Version, row.FieldsOf, fmt.Sprint(row.Bytes), terminal.OrDash(terminal.OneLine(strings.Join(row.Fields, ", ")))})
	}
	w.table(rows)
}

// failing returns the distinct causes of failed conversions.
func (o *Overview) failing() string {
	var causes []string
	for _, row := range o.ConversionFailures {
		if !slices.Contains(causes, string(row.Cause)) {
			causes = append(causes, string(row.Cause))
		}
	}
	return strings.Join(causes, ",")
}

// preserved writes how many objects hold preserved data, and the age of this count.
func (w *writer) preserved(o *Overview) {
	counted := o.PreservedData
	if counted == nil {
		return
	}
	w.title("Preserved data")
	w.line("  counted %s ago", ago(o.now.Sub(counted.Time.Time)))
	if counted.Outdated(o.Revision) {
		w.line("  %s", w.page.Colors.In(terminal.Yellow, "rules or schemas have changed since"))
	}
	if !counted.Complete {
		w.line("  %s", w.page.Colors.In(terminal.Yellow, "not all objects were counted"))
	}
	if len(counted.Versions) == 0 {
		w.line("  no object that was read has preserved values")
	}
	for i := range counted.Versions {
		w.preservedOf(&counted.Versions[i])
	}
}

func (w *writer) preservedOf(of *v1alpha1.PreservedVersion) {
	var fields []string
	for _, field := range of.Fields {
		fields = append(fields, fmt.Sprintf("%s (%d)", field.Path, field.Objects))
	}
	if of.MoreFields {
		fields = append(fields, "and others")
	}
	if of.Unreadable > 0 {
		fields = append(fields, fmt.Sprintf("text that cannot be read (%d)", of.Unreadable))
	}
	w.line("  of %s: %d objects: %s", of.Version, of.Objects, terminal.OneLine(strings.Join(fields, ", ")))
}
