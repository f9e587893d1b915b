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

// Report is what was found in a cluster, or in files. Its JSON form is stable.
type Report struct {
	// Format is ReportFormat.
	Format int `json:"format"`
	// Definitions that were looked at.
	Definitions int `json:"definitions"`
	// Findings, the worst first, then by definition, kind and version.
	Findings []Finding `json:"findings"`
	// Milder findings were made, and left out.
	Milder int `json:"milder,omitempty"`
	// NotChecked is what could not be looked at. Nothing is said of that.
	NotChecked []NotChecked `json:"notChecked,omitempty"`
}

// NotChecked is something that could not be looked at.
type NotChecked struct {
	// CRD is empty where it is about all.
	CRD string `json:"crd,omitempty"`
	// What was to be looked at, and why it could not be.
	What string `json:"what"`
	Why  string `json:"why"`
}

// NewReport sorts what was found, and leaves out what is milder than a threshold.
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

// Count is the number of findings of a severity.
func (r *Report) Count(severity Severity) int {
	n := 0
	for _, finding := range r.Findings {
		if finding.Severity == severity {
			n++
		}
	}
	return n
}
