// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/conversion-operator/conversion-operator/internal/engine/conversion"
	"github.com/conversion-operator/conversion-operator/internal/engine/conversion/compile"
	"github.com/conversion-operator/conversion-operator/internal/operator/terminal"
)

// Table configures the text form of a Report.
type Table struct {
	// Wide writes whole values, also those of sources, and whole positions of rules.
	Wide   bool
	Colors terminal.Colors
}

// maxValue limits a value in a table that is not wide, in characters.
const maxValue = 40

// WriteTables writes the objects, with a table for each step.
func (r *Report) WriteTables(w io.Writer, table Table) error {
	for i, object := range r.Objects {
		if i > 0 {
			fmt.Fprintln(w)
		}
		fmt.Fprintf(w, "%s\n", table.Colors.In(terminal.Bold, object.Name+": "+object.From+" → "+object.To))
		for _, step := range object.Steps {
			if len(object.Steps) > 1 {
				fmt.Fprintf(w, "\n%s → %s\n", step.From, step.To)
			}
			if err := table.write(w, step, r.Policy); err != nil {
				return err
			}
		}
	}
	return nil
}

func (t Table) write(w io.Writer, step Step, resource string) error {
	if len(step.Fields) > 0 {
		fmt.Fprintln(w)
	}
	rows := [][]string{{"FIELD OF " + step.To, "VALUE", "", "FROM " + step.From, "RULE", "VERDICT"}}
	for _, field := range step.Fields {
		rows = append(rows, []string{
			field.Path, t.value(field.Value), t.how(field.How), t.sources(field), t.rule(field.Rule, field.RuleText), t.verdict(field.Owner),
		})
	}
	if err := terminal.WriteTable(w, rows); err != nil {
		return err
	}
	if err := t.writePreserved(w, step.Preserved, "Preserved in the annotation "+conversion.AnnotationName(resource, step.From), step.From); err != nil {
		return err
	}
	if err := t.writePreserved(w, step.Carried, "Stays in the annotation "+conversion.AnnotationName(resource, step.To), step.To); err != nil {
		return err
	}
	return t.writePreserved(w, step.Dropped, "Dropped", step.From)
}

func (t Table) writePreserved(w io.Writer, all []Preserved, title, version string) error {
	if len(all) == 0 {
		return nil
	}
	fmt.Fprintf(w, "\n%s\n", title)
	rows := [][]string{{"FIELD OF " + version, "VALUE", "WHY", "RULE"}}
	for _, one := range all {
		rows = append(rows, []string{one.Path, t.value(one.Value), one.Why, t.rule(one.Rule, "")})
	}
	return terminal.WriteTable(w, rows)
}

// value writes a value on one line, and cuts it if the table is not wide.
func (t Table) value(value []byte) string {
	text := []rune(terminal.OneLine(string(value)))
	if !t.Wide && len(text) > maxValue {
		return string(text[:maxValue-1]) + "…"
	}
	return terminal.OrDash(string(text))
}

func (t Table) how(how Origin) string {
	color := terminal.Plain
	switch how {
	case Restored, Filled:
		color = terminal.Yellow
	case Absent:
		color = terminal.Dim
	}
	return t.Colors.In(color, strings.ToLower(string(how)))
}

func (t Table) verdict(owner compile.Owner) string {
	color := map[compile.Owner]terminal.Color{
		compile.OwnerExact: terminal.Green, compile.OwnerPreserved: terminal.Yellow, compile.OwnerDropped: terminal.Red,
	}[owner]
	return t.Colors.In(color, string(owner))
}

func (t Table) sources(field Field) string {
	var sources []string
	for _, source := range field.Sources {
		text := source.Path
		if t.Wide && source.Value != nil {
			text += "=" + terminal.OneLine(string(source.Value))
		}
		sources = append(sources, text)
	}
	if len(sources) == 0 && field.How == Restored {
		return "the annotation"
	}
	return terminal.OrDash(strings.Join(sources, ", "))
}

// rule writes the position and the text of a rule, without the prefix that all positions share.
func (t Table) rule(at, text string) string {
	if at == "" {
		return "-"
	}
	if !t.Wide {
		at = strings.TrimPrefix(at, "spec.converter.declarative.")
	}
	return strings.TrimSpace(at + " " + text)
}

// Only removes everything from the report that is not at a path, below it or above it, and
// reports whether anything is left. The path has the format of a policy or of kubectl.
func (r *Report) Only(text string) bool {
	if !strings.HasPrefix(text, ".") && !strings.HasPrefix(text, "[") {
		text = "." + text
	}
	wanted, found := parse(text), false
	matches := func(at string) bool {
		path := parse(at)
		return path.matches(wanted) || wanted.matches(path)
	}
	for i := range r.Objects {
		for j := range r.Objects[i].Steps {
			step := &r.Objects[i].Steps[j]
			step.Fields = slices.DeleteFunc(step.Fields, func(field Field) bool {
				return !matches(field.Path) && !slices.ContainsFunc(field.Sources, func(source Source) bool { return matches(source.Path) })
			})
			step.Preserved = slices.DeleteFunc(step.Preserved, func(one Preserved) bool { return !matches(one.Path) })
			step.Carried = slices.DeleteFunc(step.Carried, func(one Preserved) bool { return !matches(one.Path) })
			step.Dropped = slices.DeleteFunc(step.Dropped, func(one Preserved) bool { return !matches(one.Path) })
			found = found || len(step.Fields)+len(step.Preserved)+len(step.Carried)+len(step.Dropped) > 0
		}
	}
	return found
}
