// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package audit

import (
	"cmp"
	"slices"
)

// ReportFormat is raised when a reader of an older Report would misread it. New
// fields, and new kinds of findings, do not raise it.
const ReportFormat = 1

// Report is the result for a cluster, or for files. Its JSON form is stable.
type Report struct {
	// Format is ReportFormat.
	Format int `json:"format"`
	// Definitions is the number of examined definitions.
	Definitions int `json:"definitions"`
	// Findings, the worst first, then by definition, kind and version.
	Findings []Finding `json:"findings"`
	// Milder is the number of less severe findings that were left out.
	Milder int `json:"milder,omitempty"`
	// NotChecked is what the audit could not check, and has no findings for.
	NotChecked []NotChecked `json:"notChecked,omitempty"`
}

// NotChecked is something that the audit could not check.
type NotChecked struct {
	// CRD is empty if it concerns all.
	CRD string `json:"crd,omitempty"`
	// What could not be checked, and why.
	What string `json:"what"`
	Why  string `json:"why"`
}

// NewReport sorts findings, and leaves out those below a threshold.
func NewReport(definitions int, findings []Finding, notChecked []NotChecked, threshold Severity) *Report {
	report := &Report{Format: ReportFormat, Definitions: definitions, Findings: []Finding{}, NotChecked: slices.Clone(notChecked)}
	for _, finding := range findings {
		if finding.Severity.AtLeast(threshold) {
			report.Findings = append(report.Findings, finding)
		} else {
			report.Milder++
		}
	}
	slices.SortStableFunc(report.Findings, func(a, b Finding) int {
		return cmp.Or(cmp.Compare(slices.Index(Severities, a.Severity), slices.Index(Severities, b.Severity)),
			cmp.Compare(a.CRD, b.CRD), cmp.Compare(a.ID, b.ID), cmp.Compare(a.Version, b.Version), cmp.Compare(a.Evidence, b.Evidence))
	})
	slices.SortFunc(report.NotChecked, func(a, b NotChecked) int {
		return cmp.Or(cmp.Compare(a.CRD, b.CRD), cmp.Compare(a.What, b.What), cmp.Compare(a.Why, b.Why))
	})
	return report
}

// Count returns the number of findings of a severity.
func (r *Report) Count(severity Severity) int {
	n := 0
	for _, finding := range r.Findings {
		if finding.Severity == severity {
			n++
		}
	}
	return n
}
