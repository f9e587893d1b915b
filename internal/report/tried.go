// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package report

import (
	"slices"

	"github.com/conversion-operator/conversion-operator/internal/verify"
)

// tried is the result of tested objects.
type tried struct {
	*verify.Report
	Errors, Carried, Notes []finding
}

// finding is a finding of verify, as text.
type finding struct {
	verify.Finding
	Summary, Example string
}

func triedOf(found *verify.Report, hideValues bool) *tried {
	t := &tried{Report: found}
	for _, f := range found.Findings {
		if hideValues {
			f.Example.Before, f.Example.After, f.Example.Message = nil, nil, ""
		}
		entry := finding{Finding: f, Summary: f.Summary(), Example: f.Example.Object}
		if !hideValues {
			entry.Example = f.ExampleText()
		}
		switch f.Severity {
		case verify.SeverityError:
			t.Errors = append(t.Errors, entry)
		case verify.SeverityWarning:
			t.Carried = append(t.Carried, entry)
		default:
			t.Notes = append(t.Notes, entry)
		}
	}
	return t
}

// Bad reports whether a direction lost something, or has objects that cannot be converted.
func (t *tried) Bad(d verify.Direction) bool { return d.Lost+d.Failed+d.Invalid > 0 }

// MostPreserved is the size of the largest annotation, in bytes.
func (t *tried) MostPreserved() int {
	if len(t.Directions) == 0 {
		return 0
	}
	return slices.MaxFunc(t.Directions, func(a, b verify.Direction) int { return a.MaxPreservedBytes - b.MaxPreservedBytes }).MaxPreservedBytes
}
