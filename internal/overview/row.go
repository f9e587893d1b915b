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

// WriteTable writes a row for each policy.
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
		storage, stored, strategy = o.CRD.StorageVersion, strings.Join(o.CRD.StoredVersions, ","), o.CRD.Strategy
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
			pods = o.Webhook.Available
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
