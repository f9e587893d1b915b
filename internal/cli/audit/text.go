// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package audit

import (
	"fmt"
	"io"
	"strings"

	"github.com/conversion-operator/conversion-operator/internal/operator/terminal"
)

// Table configures the text form of a report.
type Table struct {
	// Wide adds the confidence of a finding, its fields and its cure.
	Wide bool
	// Color marks severities for terminals.
	Color bool
}

var colors = map[Severity]terminal.Color{SeverityError: terminal.Red, SeverityWarning: terminal.Yellow, SeverityNote: terminal.Cyan}

// WriteTable writes the findings, one a line, and nothing if there are none.
func (r *Report) WriteTable(w io.Writer, table Table) error {
	head := []string{"SEVERITY", "DEFINITION", "FINDING", "VERSION", "EVIDENCE"}
	if table.Wide {
		head = []string{"SEVERITY", "SURE", "DEFINITION", "FINDING", "VERSION", "EVIDENCE", "FIELDS", "CURE"}
	}
	rows := [][]string{head}
	for _, finding := range r.Findings {
		rows = append(rows, table.row(finding))
	}
	return terminal.WriteTable(w, rows)
}

func (t Table) row(f Finding) []string {
	severity := terminal.Colors(t.Color).In(colors[f.Severity], string(f.Severity))
	if !t.Wide {
		return []string{severity, f.CRD, string(f.ID), terminal.OrDash(f.Version), terminal.OneLine(f.Evidence)}
	}
	return []string{severity, string(f.Confidence), f.CRD, string(f.ID), terminal.OrDash(f.Version), terminal.OneLine(f.Evidence), terminal.OrDash(strings.Join(f.Fields, ",")), terminal.OneLine(f.Cure)}
}

// WriteSummary writes the counts of a report, and what the audit could not check.
func (r *Report) WriteSummary(w io.Writer) error {
	var out strings.Builder
	fmt.Fprintf(&out, "%s: %s, %s, %s", terminal.Count(r.Definitions, "definition"),
		terminal.Count(r.Count(SeverityError), "error"), terminal.Count(r.Count(SeverityWarning), "warning"), terminal.Count(r.Count(SeverityNote), "note"))
	if r.Milder > 0 {
		fmt.Fprintf(&out, "; %d less severe not shown: --severity=note", r.Milder)
	}
	out.WriteString("\n")
	const most = 5
	for i, missed := range r.NotChecked {
		if i == most {
			fmt.Fprintf(&out, "not checked: %d more, see -o json\n", len(r.NotChecked)-most)
			break
		}
		fmt.Fprintf(&out, "not checked: %s\n", missed)
	}
	_, err := io.WriteString(w, out.String())
	return err
}

func (n NotChecked) String() string {
	if n.CRD == "" {
		return n.What + ": " + terminal.OneLine(n.Why)
	}
	return n.What + " of " + n.CRD + ": " + terminal.OneLine(n.Why)
}
