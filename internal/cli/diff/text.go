// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package diff

import (
	"fmt"
	"io"
	"strings"

	"github.com/conversion-operator/conversion-operator/internal/cli/draft"
	"github.com/conversion-operator/conversion-operator/internal/engine/conversion/compile"
	"github.com/conversion-operator/conversion-operator/internal/operator/terminal"
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
	for _, loss := range p.Losses {
		fmt.Fprintf(w, "  %s\n", t.redIf(loss.Breaks(), terminal.OneLine(loss.String())))
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
	for _, spoke := range p.Spokes {
		if err := t.writeSpoke(w, &spoke, len(p.Errors) > 0); err != nil {
			return err
		}
	}
	return nil
}

// writeSpoke writes what becomes of the rules of a spoke, and the missing ones. Fields that change are in the
// table of fields, unless the spoke is new or there is no such table.
func (t Table) writeSpoke(w io.Writer, s *Spoke, withFields bool) error {
	withFields = withFields || s.IsNew()
	invalid := s.Invalid()
	if len(invalid)+len(s.Drafted)+len(s.Ambiguous) == 0 && !withFields {
		return nil
	}
	title := terminal.Count(len(s.Rules)-len(invalid), "rule") + " still valid"
	switch {
	case s.IsNew():
		title = "the policy has no rules for it"
	case len(invalid) > 0:
		title += fmt.Sprintf(", %d no longer valid", len(invalid))
	}
	fmt.Fprintf(w, "\nRules for %s: %s\n", t.Colors.In(terminal.Bold, s.Version), t.redIf(len(invalid) > 0, title))
	if withFields {
		writePlaces(w, "only preserved without a rule", s.Preserved)
		writePlaces(w, "removed from the schema", s.Removed)
	}
	for _, rule := range invalid {
		if rule.Replacement == nil {
			fmt.Fprintf(w, "  No longer valid, remove or correct it: %s %s\n", short(rule.At), rule.Rule.Kind())
			continue
		}
		paths := ""
		if compile.PathOf(rule.At) != rule.At {
			paths = ", here with the paths of this use"
		}
		fmt.Fprintf(w, "  No longer valid, replace it: %s %s%s\n", short(rule.At), rule.Rule.Kind(), paths)
		if err := draft.WriteRules(w, "  ", []draft.Rule{*rule.Replacement}, nil); err != nil {
			return err
		}
	}
	return writeDraft(w, s)
}

// writeDraft writes rules as YAML to paste into a policy, with the evidence as comments.
func writeDraft(w io.Writer, s *Spoke) error {
	indent := "  "
	switch {
	case len(s.Drafted) == 0:
	case s.IsNew():
		fmt.Fprintf(w, "  Drafted from the schemas. Add to spec.converter.declarative.spokes, and test:\n  - version: %s\n    rules:\n", s.Version)
		indent = "    "
	default:
		fmt.Fprintf(w, "  Drafted from the schemas. Add to %s.rules, and test:\n", s.At)
	}
	return draft.WriteRules(w, indent, s.Drafted, s.Ambiguous)
}

// maxPlaces bounds the fields of a list.
const maxPlaces = 20

func writePlaces(w io.Writer, title string, places []draft.Place) {
	for _, place := range places[:min(len(places), maxPlaces)] {
		fmt.Fprintf(w, "  %s: %s\n", title, terminal.OneLine(place.Version+" "+place.Path))
	}
	if len(places) > maxPlaces {
		fmt.Fprintf(w, "  %s: %d more; -o json lists all\n", title, len(places)-maxPlaces)
	}
}

// short returns the position of a rule without its beginning, which is always the same.
func short(at string) string { return strings.TrimPrefix(at, "spec.converter.declarative.") }

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
	return owner + ", " + short(leaf.RuleAt) + " " + leaf.kind
}
