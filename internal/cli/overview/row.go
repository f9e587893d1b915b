// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package overview

import (
	"fmt"
	"io"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/duration"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
	"github.com/conversion-operator/conversion-operator/internal/operator/terminal"
)

// WriteTable writes a table with a row for each policy.
func WriteTable(w io.Writer, all []*Overview, page Page) error {
	head := []string{"NAME", "READY", "REASON", "STORAGE", "STORED", "MIGRATED", "ETA", "REMOVABLE"}
	if page.Wide {
		head = append(head, "CONVERTER", "STRATEGY", "PODS", "CERTIFICATE", "FAILING", "MESSAGE")
	}
	rows := [][]string{head}
	for _, o := range all {
		rows = append(rows, o.row(page))
	}
	return terminal.WriteTable(w, rows)
}

func (o *Overview) row(page Page) []string {
	marks := &writer{page: page}
	storage, stored, strategy := "", "", ""
	if o.CRD != nil {
		storage, stored, strategy = o.CRD.StorageVersion, strings.Join(o.CRD.StoredVersions, ","), string(o.CRD.Strategy)
	}
	migrated := ""
	if run := o.Migration; run != nil {
		migrated = run.Progress
	}
	row := []string{o.Name, marks.mark(o.Ready, o.Stalled), o.Reason, storage, stored, migrated, eta(o.Migration, o.now), o.Removable}
	if page.Wide {
		pods, certificate := "", ""
		if o.Webhook != nil {
			pods = fmt.Sprintf("%d/%d", o.Webhook.Ready, o.Webhook.Desired)
		}
		if o.Certificate != nil {
			certificate = o.Certificate.NotAfter.UTC().Format(time.DateOnly)
		}
		row = append(row, string(o.ConverterType), strategy, pods, certificate, o.failing(), terminal.OneLine(o.Message))
	}
	for i := range row {
		row[i] = terminal.OrDash(row[i])
	}
	return row
}

// Line describes the progress in one line without a time, for logs.
func (o *Overview) Line() string {
	line := fmt.Sprintf("%s: Ready=%s %s", o.Name, o.Ready, o.Reason)
	if run := o.Migration; run != nil && o.MigrationEvidence == nil && o.Reason != notSeen {
		state := string(run.State)
		if run.Step != "" {
			state = string(run.Step)
		}
		line += fmt.Sprintf(", %s %d of %d (%d%%), %d failed", state, run.Done(), run.Known(), share(run), run.Failed)
		if end := ends(run, o.now); end != "" {
			line += ", " + end
		}
	}
	if o.Message != "" {
		line += ": " + terminal.OneLine(o.Message)
	}
	return line
}

// barWidth is the number of characters of a progress bar, without its ends.
const barWidth = 30

// share returns the progress of a run in percent.
func share(run *v1alpha1.MigrationStatus) int {
	const all = 100
	switch total := run.Known(); {
	case run.State == v1alpha1.MigrationSucceeded:
		return all
	case total == 0:
		return 0
	default:
		return int(run.Done() * all / total)
	}
}

// bar draws the progress of a run.
func bar(run *v1alpha1.MigrationStatus, colors terminal.Colors) string {
	const all = 100
	filled := share(run) * barWidth / all
	color := terminal.Cyan
	switch {
	case run.Failed > 0:
		color = terminal.Red
	case run.State == v1alpha1.MigrationSucceeded:
		color = terminal.Green
	}
	return "[" + colors.In(color, strings.Repeat("#", filled)) + strings.Repeat("-", barWidth-filled) + "]"
}

// ends returns when a run is expected to end; empty if it has ended, or if unknown.
func ends(run *v1alpha1.MigrationStatus, now time.Time) string {
	if run.State != v1alpha1.MigrationRunning || run.EstimatedCompletion == nil {
		return ""
	}
	return "ETA " + eta(run, now) + " (" + run.EstimatedCompletion.UTC().Format(time.TimeOnly) + " UTC)"
}

// eta returns how long a run still takes at its rate, empty if unknown.
func eta(run *v1alpha1.MigrationStatus, now time.Time) string {
	if run == nil || run.State != v1alpha1.MigrationRunning || run.EstimatedCompletion == nil {
		return ""
	}
	return ago(max(run.EstimatedCompletion.Sub(now), 0))
}

// ago writes a duration like kubectl.
func ago(d time.Duration) string { return duration.HumanDuration(d) }
