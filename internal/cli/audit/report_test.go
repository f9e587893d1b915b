// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package audit

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"github.com/conversion-operator/conversion-operator/internal/test/expect"
	"github.com/conversion-operator/conversion-operator/internal/test/golden"
)

// sample has unsorted findings of all severities, and entries that were not checked.
func sample(threshold Severity) *Report {
	return NewReport(3, []Finding{
		{ID: ConversionUnproven, Severity: SeverityNote, Confidence: Certain, CRD: "b.example.com", Evidence: "there is no object", Cure: "create one"},
		{ID: StoredVersionOld, Severity: SeverityWarning, Confidence: Certain, CRD: "b.example.com", Version: "v1", Evidence: "it is listed", Cure: "migrate"},
		{ID: NoneLosesFields, Severity: SeverityError, Confidence: Certain, CRD: "c.example.com", Version: "v2", Evidence: "two fields", Fields: []string{".a", ".b"}, Cure: "convert"},
		{ID: PrunedAfterFailure, Severity: SeverityWarning, Confidence: Likely, CRD: "a.example.com", Evidence: "a server says:\n\tmore <than> \x1b[2Jone line", Cure: "migrate"},
		{ID: StoredVersionOld, Severity: SeverityWarning, Confidence: Certain, CRD: "b.example.com", Version: "v0", Evidence: "it is listed", Cure: "migrate"},
	}, []NotChecked{{"c.example.com", "objects at v1", "forbidden"}, {"", "ConversionPolicies", "forbidden"}}, threshold)
}

func TestReport(t *testing.T) {
	write := func(table Table) func(*Report, *bytes.Buffer) error {
		return func(r *Report, out *bytes.Buffer) error { return r.WriteTable(out, table) }
	}
	for name, test := range map[string]struct {
		threshold Severity
		write     func(*Report, *bytes.Buffer) error
	}{
		"table.txt":        {SeverityNote, write(Table{})},
		"table-errors.txt": {SeverityError, write(Table{})},
		"wide.txt":         {SeverityNote, write(Table{Wide: true})},
		"color.txt":        {SeverityNote, write(Table{Color: true})},
		"summary.txt":      {SeverityWarning, func(r *Report, out *bytes.Buffer) error { return r.WriteSummary(out) }},
		"report.json": {SeverityWarning, func(r *Report, out *bytes.Buffer) error {
			encoder := json.NewEncoder(out)
			encoder.SetIndent("", "  ")
			return encoder.Encode(r)
		}},
	} {
		t.Run(name, func(t *testing.T) {
			out := &bytes.Buffer{}
			expect.NoError(t, test.write(sample(test.threshold), out))
			golden.Check(t, out.String(), name)
		})
	}
}

func TestNothingFound(t *testing.T) {
	var table, summary bytes.Buffer
	report := NewReport(1, nil, nil, SeverityNote)
	expect.NoError(t, report.WriteTable(&table, Table{}))
	expect.NoError(t, report.WriteSummary(&summary))
	expect.Equal(t, "table", "", table.String())
	expect.Equal(t, "summary", "1 definition: 0 errors, 0 warnings, 0 notes\n", summary.String())
}

// TestManyNotChecked has more entries than a summary lists.
func TestManyNotChecked(t *testing.T) {
	var missed []NotChecked
	for range 300 {
		missed = append(missed, NotChecked{What: "objects", Why: "forbidden"})
	}
	var summary bytes.Buffer
	expect.NoError(t, NewReport(300, nil, missed, SeverityNote).WriteSummary(&summary))
	if lines := strings.Count(summary.String(), "\n"); lines != 7 || !strings.HasSuffix(summary.String(), "not checked: 295 more, see -o json\n") {
		t.Errorf("summary is\n%s", summary.String())
	}
}
