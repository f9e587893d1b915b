// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package verify

import (
	"cmp"
	"slices"

	"github.com/conversion-operator/conversion-operator/internal/engine/preserved"
)

const (
	// maxFindings and maxPreserved limit a report, for any number of objects.
	maxFindings  = 100
	maxPreserved = 200
	// maxValue limits the text of a value, in bytes.
	maxValue = 200
)

// tally counts equal findings together.
type tally struct {
	findings map[findingKey]*Finding
	more     int
	fields   map[fieldKey]*PreservedField
	// preserved are by version and path.
	preserved map[[2]string]*Preserved
}

type findingKey struct {
	kind           Kind
	from, to, path string
	// message distinguishes failures, which have no path.
	message string
	// preserved is the version of a preserved value.
	preserved string
}

type fieldKey struct{ from, to, path string }

func newTally() tally {
	return tally{findings: map[findingKey]*Finding{}, fields: map[fieldKey]*PreservedField{}, preserved: map[[2]string]*Preserved{}}
}

// record counts a finding. Findings that differ only in the indexes of their paths are
// counted together; those without a path, by their message.
func (t *tally) record(kind Kind, from, to string, example Example) {
	key := findingKey{kind: kind, from: from, to: to, path: withoutIndexes(example.Path), preserved: example.Preserved}
	if key.path == "" {
		key.message = example.Message
	}
	if known := t.findings[key]; known != nil {
		known.Objects++
		return
	}
	if len(t.findings) >= maxFindings {
		t.more++
		return
	}
	t.findings[key] = &Finding{
		Severity: severities[kind], Kind: kind, From: from, To: to, Path: key.path, Objects: 1, Example: example,
	}
}

// addPreservedFields counts what annotations preserve of one object.
func (t *tally) addPreservedFields(from, to string, parts []preservedPart) {
	for _, part := range parts {
		key := fieldKey{from, to, part.Path}
		if t.fields[key] == nil {
			if len(t.fields) >= maxPreserved {
				continue
			}
			t.fields[key] = &PreservedField{From: from, To: to, Path: part.Path}
		}
		t.fields[key].Objects++
		t.fields[key].MaxBytes = max(t.fields[key].MaxBytes, part.Bytes)
	}
}

// addFate counts what happens to a preserved value of one object.
func (t *tally) addFate(version, path string, fate preserved.Fate) {
	key := [2]string{version, path}
	if t.preserved[key] == nil {
		if len(t.preserved) >= maxPreserved {
			return
		}
		t.preserved[key] = &Preserved{Version: version, Path: path}
	}
	t.preserved[key].Add(fate)
}

func (t *tally) sortedPreserved() []Preserved {
	var sorted []Preserved
	for _, one := range t.preserved {
		sorted = append(sorted, *one)
	}
	slices.SortFunc(sorted, func(a, b Preserved) int {
		return cmp.Or(cmp.Compare(a.Version, b.Version), cmp.Compare(a.Path, b.Path))
	})
	return sorted
}

// sortedFindings returns the findings with others: errors before warnings and notes, and then by the number
// of objects.
func (t *tally) sortedFindings(others ...Finding) []Finding {
	sorted := append([]Finding{}, others...)
	for _, finding := range t.findings {
		sorted = append(sorted, *finding)
	}
	slices.SortFunc(sorted, func(a, b Finding) int {
		return cmp.Or(
			cmp.Compare(ranks[a.Severity], ranks[b.Severity]), cmp.Compare(b.Objects, a.Objects), cmp.Compare(a.Kind, b.Kind),
			cmp.Compare(a.From, b.From), cmp.Compare(a.To, b.To), cmp.Compare(a.Path, b.Path),
			cmp.Compare(a.Example.Message, b.Example.Message), cmp.Compare(a.Example.Preserved, b.Example.Preserved))
	})
	return sorted
}

func (t *tally) sortedPreservedFields() []PreservedField {
	sorted := []PreservedField{}
	for _, kept := range t.fields {
		sorted = append(sorted, *kept)
	}
	slices.SortFunc(sorted, func(a, b PreservedField) int {
		return cmp.Or(cmp.Compare(a.From, b.From), cmp.Compare(a.To, b.To), cmp.Compare(a.Path, b.Path))
	})
	return sorted
}

// exampleOf returns the first of the differences, and their number.
func exampleOf(object string, found []Difference) Example {
	return Example{
		Object: object, Path: found[0].Path, Before: shorten(found[0].Before), After: shorten(found[0].After), Fields: len(found),
	}
}

// shorten returns a value cut to a readable length, nil if there is none.
func shorten(text string) *string {
	if text == "" {
		return nil
	}
	if len(text) > maxValue {
		text = text[:maxValue] + "…"
	}
	return &text
}
