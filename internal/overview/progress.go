// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package overview

import (
	"fmt"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/duration"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
	"github.com/conversion-operator/conversion-operator/internal/terminal"
)

// barWidth is the number of characters of a progress bar, without its ends.
const barWidth = 30

// done returns the number of objects that a run has processed.
func done(run *v1alpha1.MigrationStatus) int64 {
	return run.Rewritten + run.Current + run.Gone + run.Failed
}

// share returns the progress of a run in percent. Objects created during the run are not
// in its initial total.
func share(run *v1alpha1.MigrationStatus) int {
	const all = 100
	switch total := max(run.Total, done(run)); {
	case run.State == v1alpha1.MigrationSucceeded:
		return all
	case total == 0:
		return 0
	default:
		return int(done(run) * all / total)
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

// speed returns the rate of a run, and its expected end; empty if it
// has ended, or if unknown.
func speed(run *v1alpha1.MigrationStatus, now time.Time) string {
	if run.State != v1alpha1.MigrationRunning {
		return ""
	}
	var parts []string
	if run.RatePerSecond > 0 {
		parts = append(parts, fmt.Sprintf("%d/s", run.RatePerSecond))
	}
	if end := run.EstimatedCompletion; end != nil {
		parts = append(parts, "ETA "+eta(run, now)+" ("+end.UTC().Format(time.TimeOnly)+" UTC)")
	}
	return strings.Join(parts, ", ")
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
