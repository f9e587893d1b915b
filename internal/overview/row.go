// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package overview

import (
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/conversion-operator/conversion-operator/internal/terminal"
)

// WriteTable writes a table with a row for each policy.
func WriteTable(w io.Writer, all []*Overview, page Page) error {
	head := []string{"NAME", "READY", "REASON", "STORAGE", "STORED", "MIGRATED", "ETA", "REMOVABLE"}
	if page.Wide {
		head = append(head, "CONVERTER", "STRATEGY", "PODS", "CERTIFICATE", "RATE", "FAILING", "MESSAGE")
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
	migrated, rate := "", ""
	if run := o.Migration; run != nil {
		migrated = run.Progress
		if run.RatePerSecond > 0 {
			rate = fmt.Sprintf("%d/s", run.RatePerSecond)
		}
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
		row = append(row, o.ConverterKind, strategy, pods, certificate, rate, o.failing(), terminal.OneLine(o.Message))
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
		line += fmt.Sprintf(", %s %d of %d (%d%%), %d failed", state, done(run), max(run.Total, done(run)), share(run), run.Failed)
		if speed := speed(run, o.now); speed != "" {
			line += ", " + speed
		}
	}
	if o.Message != "" {
		line += ": " + terminal.OneLine(o.Message)
	}
	return line
}
