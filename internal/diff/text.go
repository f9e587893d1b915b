// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package diff

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
	"github.com/conversion-operator/conversion-operator/internal/terminal"
)

// Table configures the text form of a Report.
type Table struct {
	// Wide writes whole rules instead of their positions.
	Wide   bool
	Colors terminal.Colors
}

// WriteTables writes the changes of each policy.
func (r *Report) WriteTables(w io.Writer, table Table) error {
	for i, policy := range r.Policies {
		if i > 0 {
			fmt.Fprintln(w)
		}
		if err := table.write(w, policy); err != nil {
			return err
		}
	}
	return nil
}

func (t Table) write(w io.Writer, p Policy) error {
	fmt.Fprintf(w, "%s: %s\n", t.Colors.In(terminal.Bold, p.Name), t.title(p))
	for _, err := range p.Errors {
		fmt.Fprintf(w, "  %s\n", terminal.OneLine(err))
	}
	if len(p.VersionsAdded) > 0 {
		fmt.Fprintf(w, "  %s added: %s\n", terminal.Count(len(p.VersionsAdded), "version"), strings.Join(p.VersionsAdded, ", "))
	}
	if len(p.VersionsRemoved) > 0 {
		fmt.Fprintf(w, "  %s removed: %s\n", terminal.Count(len(p.VersionsRemoved), "version"), strings.Join(p.VersionsRemoved, ", "))
	}
	for _, restriction := range p.Restrictions {
		fmt.Fprintf(w, "  %s accepts fewer values: %s\n", restriction.Version, t.redIf(true, terminal.OneLine(restriction.String())))
	}
	if p.HubBefore != p.HubAfter {
		fmt.Fprintf(w, "  the hub was %s, and is %s\n", p.HubBefore, p.HubAfter)
	}
	if len(p.Directions) > 0 {
		fmt.Fprintln(w)
	}
	rows := [][]string{{"CONVERSION", "BEFORE", "AFTER"}}
	for _, d := range p.Directions {
		rows = append(rows, []string{d.From + " → " + d.To, string(d.Before), t.redIf(d.Worse, string(d.After))})
	}
	if err := terminal.WriteTable(w, rows); err != nil {
		return err
	}
	return t.writeFields(w, p)
}

func (t Table) writeFields(w io.Writer, p Policy) error {
	if len(p.Fields) > 0 {
		fmt.Fprintln(w)
	}
	rows := [][]string{{"FIELD", "IN", "BEFORE", "AFTER", "CONSEQUENCE"}}
	for _, field := range p.Fields {
		rows = append(rows, []string{
			field.Version + ":" + field.Path, field.Other, t.leafField(field.Before), t.leafField(field.After),
			t.redIf(field.Worse, field.Why),
		})
	}
	if err := terminal.WriteTable(w, rows); err != nil {
		return err
	}
	if len(p.Preserved) > 0 {
		fmt.Fprintln(w, "\nPreserved data")
	}
	for _, field := range p.Preserved {
		for _, sentence := range field.Sentences() {
			fmt.Fprintf(w, "  %s\n", terminal.OneLine(sentence))
		}
	}
	if len(p.Warnings) > 0 {
		fmt.Fprintln(w, "\nNew warnings")
	}
	for _, warning := range p.Warnings {
		fmt.Fprintf(w, "  %s\n", terminal.OneLine(warning))
	}
	return nil
}

func (t Table) title(p Policy) string {
	switch {
	case len(p.Errors) > 0:
		return t.redIf(true, "the rules are no longer valid")
	case p.New:
		return "a new policy"
	case p.Worse:
		return t.redIf(true, "something gets worse")
	case p.RulesetBefore == p.RulesetAfter:
		return "conversions do not change"
	}
	return "nothing gets worse"
}

func (t Table) redIf(worse bool, text string) string {
	if !worse {
		return text
	}
	return t.Colors.In(terminal.Red, text)
}

// leafField formats the owner of a leaf field, and its rule.
func (t Table) leafField(leaf *Leaf) string {
	if leaf == nil {
		return "-"
	}
	owner := strings.ToLower(string(leaf.Owner))
	switch {
	case leaf.RuleAt == "":
		return owner
	case t.Wide:
		return owner + ", " + string(leaf.Rule)
	}
	return owner + ", " + strings.TrimPrefix(leaf.RuleAt, "spec.converter.declarative.") + " " + kindOf(leaf.Rule)
}

// kindOf returns the kind of a rule.
func kindOf(text json.RawMessage) string {
	rule := &v1alpha1.Rule{}
	_ = json.Unmarshal(text, rule) // rules (leaf.go) wrote it
	return rule.Kind()
}
