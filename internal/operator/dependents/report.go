// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package dependents

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/conversion-operator/conversion-operator/internal/operator/terminal"
)

// ReportFormat is raised when a reader of an older Report would misread it. New fields, and new
// dependencies, do not raise it.
const ReportFormat = 1

// Report is the result for one definition. Its JSON form is stable.
type Report struct {
	// Format is ReportFormat.
	Format int `json:"format"`
	// CRD is the name of the definition, and To the version that dependents should name.
	CRD string `json:"crd"`
	To  string `json:"to"`
	// Dependents, those that break first.
	Dependents []Dependent `json:"dependents"`
	// More is the number of further dependents, which the report does not name.
	More int `json:"more,omitempty"`
	// Repairs are the writes, in their order.
	Repairs []Repair `json:"repairs,omitempty"`
	// MoreRepairs is the number of further writes, which the report does not have.
	MoreRepairs int `json:"moreRepairs,omitempty"`
	// NotChecked is what the command could not read.
	NotChecked []NotChecked `json:"notChecked,omitempty"`
	// Skipped is what the command reads only with a flag.
	Skipped []string `json:"skipped,omitempty"`
	// Cost is the load on API servers.
	Cost Cost `json:"cost"`
}

// Repair is one write, or one that failed.
type Repair struct {
	Object Object `json:"object"`
	UID    string `json:"uid"`
	// Field was changed from Before to After.
	Field  string `json:"field"`
	Before string `json:"before"`
	After  string `json:"after"`
	// ResourceVersionBefore and ResourceVersionAfter are those of the object.
	ResourceVersionBefore string `json:"resourceVersionBefore"`
	ResourceVersionAfter  string `json:"resourceVersionAfter,omitempty"`
	// DryRun means that the API server accepted the write, and stored nothing.
	DryRun bool `json:"dryRun,omitempty"`
	// Failure says why there was no write.
	Failure string `json:"failure,omitempty"`
}

// NotChecked is something that the command could not read.
type NotChecked struct {
	What string `json:"what"`
	Why  string `json:"why"`
}

// Cost is the load on API servers.
type Cost struct {
	Requests int64 `json:"requests"`
	// Bytes of the answers, as sent.
	Bytes   int64 `json:"bytes"`
	Objects int64 `json:"objects"`
}

// Finish sorts a report.
func (r *Report) Finish() {
	Sort(r.Dependents)
	slices.SortFunc(r.NotChecked, func(a, b NotChecked) int { return cmp.Or(cmp.Compare(a.What, b.What), cmp.Compare(a.Why, b.Why)) })
}

// Repaired counts the writes that were made, and those that failed.
func (r *Report) Repaired() (done, failed int) {
	for _, repair := range r.Repairs {
		if repair.Failure == "" {
			done++
		} else {
			failed++
		}
	}
	return done, failed
}

// WriteTable writes the dependents, one a line, and then the repairs. Wide adds effects and cures.
func (r *Report) WriteTable(w io.Writer, wide bool) error {
	head := []string{"IMPACT", "DEPENDENCY", "VERSION", "OBJECT", "FIELD"}
	if wide {
		head = append(head, "LAST", "EFFECT", "CURE")
	}
	rows := [][]string{head}
	for _, d := range r.Dependents {
		row := []string{string(d.Impact), string(d.Dependency), terminal.OneLine(d.Version), terminal.OneLine(d.Place()), terminal.OrDash(terminal.OneLine(d.Field))}
		if wide {
			row = append(row, terminal.OrDash(d.Last), terminal.OneLine(d.Effect), terminal.OneLine(d.Cure))
		}
		rows = append(rows, row)
	}
	if len(rows) > 1 {
		if err := terminal.WriteTable(w, rows); err != nil {
			return err
		}
	}
	if len(r.Repairs) == 0 {
		return nil
	}
	rows = [][]string{{"REPAIR", "OBJECT", "FIELD", "CHANGE"}}
	for i := range r.Repairs {
		rows = append(rows, r.Repairs[i].row())
	}
	return terminal.WriteTable(w, rows)
}

func (r *Repair) row() []string {
	outcome, change := "done", r.Before+" → "+r.After
	if r.DryRun {
		outcome = "possible"
	}
	if r.Failure != "" {
		outcome, change = "failed", r.Failure
	}
	return []string{outcome, terminal.OneLine(r.Object.String()), r.Field, terminal.OneLine(change)}
}

// WriteSummary writes counts, and what the command could not read.
func (r *Report) WriteSummary(w io.Writer) error {
	var out strings.Builder
	fmt.Fprintf(&out, "%s of %s; %s read in %s, %d KiB\n", terminal.Count(len(r.Dependents)+r.More, "dependent"), r.CRD,
		terminal.Count(int(r.Cost.Objects), "object"), terminal.Count(int(r.Cost.Requests), "request"), r.Cost.Bytes>>10)
	if r.More > 0 {
		fmt.Fprintf(&out, "%s not shown\n", terminal.Count(r.More, "further dependent"))
	}
	for _, skipped := range r.Skipped {
		fmt.Fprintf(&out, "not read: %s\n", skipped)
	}
	for _, missed := range r.NotChecked {
		fmt.Fprintf(&out, "not checked: %s: %s\n", missed.What, terminal.OneLine(missed.Why))
	}
	_, err := io.WriteString(w, out.String())
	return err
}
