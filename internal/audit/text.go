// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package audit

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"unicode"
)

// Table says how a report is written for people.
type Table struct {
	// Wide adds how sure a finding is, its fields and its cure.
	Wide bool
	// Color marks severities for terminals.
	Color bool
}

// The colors all have the same length, so that columns stay where they are.
const (
	reset  = "\x1b[0m"
	plain  = "\x1b[39m"
	red    = "\x1b[31m"
	yellow = "\x1b[33m"
	cyan   = "\x1b[36m"
)

var colors = map[Severity]string{SeverityError: red, SeverityWarning: yellow, SeverityNote: cyan}

// WriteTable writes the findings, one a line. Nothing is written of none.
func (r *Report) WriteTable(w io.Writer, table Table) error {
	if len(r.Findings) == 0 {
		return nil
	}
	out := tabwriter.NewWriter(w, 0, 0, 3, ' ', 0)
	head := []string{table.paint("SEVERITY", plain), "DEFINITION", "FINDING", "VERSION", "EVIDENCE"}
	if table.Wide {
		head = []string{table.paint("SEVERITY", plain), "SURE", "DEFINITION", "FINDING", "VERSION", "EVIDENCE", "FIELDS", "CURE"}
	}
	fmt.Fprintln(out, strings.Join(head, "\t"))
	for _, finding := range r.Findings {
		fmt.Fprintln(out, strings.Join(table.row(finding), "\t"))
	}
	return out.Flush()
}

func (t Table) row(f Finding) []string {
	severity := t.paint(string(f.Severity), colors[f.Severity])
	if !t.Wide {
		return []string{severity, f.CRD, string(f.ID), orDash(f.Version), oneLine(f.Evidence)}
	}
	return []string{severity, string(f.Confidence), f.CRD, string(f.ID), orDash(f.Version), oneLine(f.Evidence), orDash(strings.Join(f.Fields, ",")), oneLine(f.Cure)}
}

func (t Table) paint(text, color string) string {
	if !t.Color {
		return text
	}
	return color + text + reset
}

func orDash(text string) string {
	if text == "" {
		return "-"
	}
	return text
}

// oneLine keeps what a server says in its row, and from moving the cursor.
func oneLine(text string) string {
	printable := strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) || unicode.IsSpace(r) {
			return r
		}
		return -1
	}, text)
	return strings.Join(strings.Fields(printable), " ")
}

// WriteSummary says in a few lines what was looked at, and what could not be.
func (r *Report) WriteSummary(w io.Writer) error {
	var out strings.Builder
	fmt.Fprintf(&out, "%s: %s, %s, %s", count(r.Definitions, "definition"),
		count(r.Count(SeverityError), "error"), count(r.Count(SeverityWarning), "warning"), count(r.Count(SeverityNote), "note"))
	if r.Milder > 0 {
		fmt.Fprintf(&out, "; %d milder not shown: --severity=note", r.Milder)
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
		return n.What + ": " + oneLine(n.Why)
	}
	return n.What + " of " + n.CRD + ": " + oneLine(n.Why)
}

func count(n int, what string) string {
	if n != 1 {
		what += "s"
	}
	return fmt.Sprintf("%d %s", n, what)
}
