// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package verify

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/conversion-operator/conversion-operator/internal/engine/conversion/compile"
)

// WriteText writes the report as Markdown that is also readable as plain text.
func (r *Report) WriteText(w io.Writer) error {
	var out strings.Builder
	fmt.Fprintf(&out, "# %s: %s\n\n", r.Policy, r.Title())
	if r.Outcome == Invalid {
		r.writeErrors(&out)
	} else {
		r.writeSummary(&out)
		r.writeFindings(&out, SeverityError, false, "Errors")
		r.writeFindings(&out, SeverityWarning, true, "Discarded by edits")
		r.writeFindings(&out, SeverityWarning, false, "Stays in annotations")
		r.writeDirections(&out)
		r.writeLeaves(&out)
		r.writePreservedFields(&out)
		r.writePreserved(&out)
		r.writeFindings(&out, SeverityNote, false, "Notes")
	}
	writeList(&out, "Warnings", r.Warnings)
	_, err := io.WriteString(w, out.String())
	return err
}

// Title is the outcome in a few lower-case words.
func (r *Report) Title() string {
	switch {
	case r.Outcome == Invalid:
		return "the rules are not valid"
	case r.Outcome == Failed:
		return "problems found"
	case r.Discards():
		return "edits at other versions discard values"
	case r.Objects == 0 && r.Golden != nil:
		return "the rules are valid, and convert as recorded"
	case r.Objects == 0:
		return "the rules are valid, and were tried on no object"
	case slices.ContainsFunc(r.Findings, func(f Finding) bool { return f.Kind == Dropped }):
		return "nothing is lost except what the rules drop"
	}
	return "nothing is lost"
}

// Discards reports whether edits discard values that they do not concern.
func (r *Report) Discards() bool {
	return slices.ContainsFunc(r.Findings, func(f Finding) bool { return f.Kind.IsDiscard() })
}

func (r *Report) writeErrors(out *strings.Builder) {
	var lines []string
	for _, err := range r.Errors {
		lines = append(lines, "`"+err.Path+"`: "+err.Message)
	}
	writeList(out, "Errors", lines)
}

func (r *Report) writeSummary(out *strings.Builder) {
	fmt.Fprintf(out, "Hub %s, versions %s, ruleset `%s`.\n", r.Hub, strings.Join(r.Versions, ", "), r.RulesetHash)
	switch {
	case r.ObjectsFrom == "":
		out.WriteString("No objects were given: only the rules and their canary objects were checked.\n")
	case r.Skipped > 0:
		fmt.Fprintf(out, "%s from %s; %s of other kinds ignored.\n", count(r.Objects, "object"), r.ObjectsFrom, count(r.Skipped, "object"))
	default:
		fmt.Fprintf(out, "%s from %s.\n", count(r.Objects, "object"), r.ObjectsFrom)
	}
	if r.Objects > 0 {
		fmt.Fprintf(out, "%s at other versions, each for itself", count(r.Edits, "edit"))
		if r.FieldsUntried > 0 {
			fmt.Fprintf(out, "; no object has %d of %d fields, which were not tried", r.FieldsUntried, len(r.Leaves))
		}
		out.WriteString(".\n")
	}
	if r.Golden != nil {
		fmt.Fprintf(out, "%s from %s repeated; %s differ from what was recorded.\n", count(r.Golden.Conversions, "conversion"), r.Golden.From, number(r.Golden.Differ))
	}
	mean := time.Duration(r.Timing.MeanNanoseconds)
	fmt.Fprintf(out, "%s, %s on average.\n", count(r.Timing.Conversions, "conversion"), mean.Round(10*time.Nanosecond))
}

func (r *Report) writeDirections(out *strings.Builder) {
	out.WriteString("\n## Round trips\n\n")
	rows := [][]string{{"from", "to", "rules", "objects", "exact", "preserved", "dropped", "lost", "failed", "invalid at target", "most bytes preserved"}}
	for _, d := range r.Directions {
		rows = append(rows, []string{
			d.From, d.To, string(d.Rules), number(d.Objects), number(d.Exact), number(d.Preserved), number(d.Dropped),
			number(d.Lost), number(d.Failed), number(d.Invalid), number(d.MaxPreservedBytes),
		})
	}
	writeTable(out, rows, 3)
}

// writeLeaves lists leaf fields without a counterpart in the other version, and counts the others.
func (r *Report) writeLeaves(out *strings.Builder) {
	out.WriteString("\n## Fields without a counterpart\n\n")
	becomes := map[compile.Owner]string{compile.OwnerPreserved: "preserved", compile.OwnerDropped: "dropped"}
	rows := [][]string{{"field", "of", "in", "becomes"}}
	matched := 0
	for _, leaf := range r.Leaves {
		if leaf.Owner == compile.OwnerExact {
			matched++
			continue
		}
		other := leaf.Spoke
		if leaf.Version == leaf.Spoke {
			other = r.Hub
		}
		row := []string{code(leaf.Root), leaf.Version, other, becomes[leaf.Owner]}
		if !slices.Equal(row, rows[len(rows)-1]) {
			rows = append(rows, row)
		}
	}
	if len(rows) == 1 {
		fmt.Fprintf(out, "None: all %d fields have one.\n", len(r.Leaves))
		return
	}
	writeTable(out, rows, len(rows[0]))
	fmt.Fprintf(out, "\nThe other %d fields have one.\n", matched)
}

func (r *Report) writePreservedFields(out *strings.Builder) {
	if len(r.PreservedFields) == 0 {
		return
	}
	out.WriteString("\n## Values preserved in conversions\n\n")
	rows := [][]string{{"field", "from", "to", "objects", "most bytes"}}
	for _, kept := range r.PreservedFields {
		rows = append(rows, []string{code(kept.Path), kept.From, kept.To, number(kept.Objects), number(kept.MaxBytes)})
	}
	writeTable(out, rows, 3)
}

// writePreserved lists what happens to the preserved data of the objects.
func (r *Report) writePreserved(out *strings.Builder) {
	if len(r.Preserved) == 0 {
		return
	}
	verb := "hold"
	if r.Preserving == 1 {
		verb = "holds"
	}
	fmt.Fprintf(out, "\n## Preserved data of the objects\n\n%s %s preserved data.\n\n", count(r.Preserving, "object"), verb)
	rows := [][]string{{"field", "of", "objects", "become data", "stay"}}
	become := false
	for _, p := range r.Preserved {
		rows = append(rows, []string{code(p.Path), p.Version, number(p.Objects), number(p.BecomeData), number(p.CarriedOn)})
		become = become || p.BecomeData > 0
	}
	writeTable(out, rows, 2)
	if become {
		out.WriteString("\nA field that has a place now becomes data when a client or a migration rewrites its object.\n")
	}
}

// writeFindings lists the findings of a severity that are discarded values, or the others.
func (r *Report) writeFindings(out *strings.Builder, severity Severity, discards bool, title string) {
	var lines []string
	for _, finding := range r.Findings {
		if finding.Severity == severity && finding.Kind.IsDiscard() == discards {
			lines = append(lines, finding.text())
		}
	}
	if severity == SeverityError && r.MoreFindings > 0 {
		lines = append(lines, fmt.Sprintf("… and %s more, at other fields: fix these first", number(r.MoreFindings)))
	}
	writeList(out, title, lines)
}

// messages are the texts of findings about a field.
var messages = map[Kind]string{
	NotConverted:    "FROM → TO: cannot be converted",
	Lost:            "FROM → TO → FROM: FIELD changes",
	Pruned:          "FROM → TO: FIELD is pruned, because the schema of TO does not allow it",
	InvalidAtTarget: "FROM → TO: FIELD is refused by the schema of TO",
	NotAsRecorded:   "FROM → TO: FIELD is not as recorded",
	Carried:         "FROM: FIELD is preserved, and stays in the annotation even at FROM",
	EditDiscards:    "FROM → TO → FROM: FIELD changes by an edit at TO that does not concern it",
	DefaultDiscards: "FROM → TO → FROM: FIELD changes by the defaults of TO",
	EditUndone:      "FROM → TO: FIELD of TO is not read as it is written",
	NoValue:         "FROM → TO: FIELD of TO gets a value in no object",
	NoEffect:        "FROM → TO: no object has a field of the rule FIELD",
	Dropped:         "FROM → TO → FROM: FIELD is dropped by a rule",
	Unknown:         "FROM: FIELD is not allowed by the schema, and was ignored",
	InvalidBefore:   "FROM: FIELD is refused by the schema before any conversion",
	Unreadable:      "FROM: FIELD is not readable preserved data, and stays unchanged",
	Foreign:         "FROM: FIELD is not preserved data of these versions, and stays unchanged",
}

// Kinds are the kinds of findings with their texts, in which FROM, TO and FIELD stand for two versions
// and a field.
func Kinds() map[Kind]string { return maps.Clone(messages) }

// preservedMessage is the text for a preserved value that is lost.
const preservedMessage = "FROM → TO: FIELD of OWNER, which the object preserves in an annotation, vanishes"

func (f Finding) text() string {
	return "**" + string(f.Kind) + "** " + f.Summary() + ".\n  For example " + f.ExampleText()
}

// Summary describes the finding in a few words, with code between backticks.
func (f Finding) Summary() string {
	text := messages[f.Kind]
	if f.Example.Preserved != "" {
		text = preservedMessage
	}
	if f.To == "" {
		text = strings.TrimPrefix(text, "FROM → TO")
		text = "FROM" + strings.TrimPrefix(text, "FROM")
	}
	text = strings.NewReplacer("FROM", f.From, "TO", f.To, "OWNER", f.Example.Preserved, "FIELD", code(f.Path)).Replace(text)
	if f.Objects > 1 {
		text += fmt.Sprintf(" (%s times)", number(f.Objects))
	}
	return text
}

// ExampleText describes the example object and its values, with code between
// backticks.
func (f Finding) ExampleText() string {
	e := f.Example
	text := e.Object
	if e.Path != "" && e.Path != f.Path {
		text += " at " + code(e.Path)
	}
	switch {
	case e.Message != "":
		text += ": " + e.Message
	case f.Kind == Pruned, f.Kind == Unknown, e.Preserved != "":
		text += ": " + orNothing(e.Before)
	default:
		text += ": " + orNothing(e.Before) + " became " + orNothing(e.After)
	}
	if e.Edit != "" {
		text += ", after a client " + e.Edit
	}
	if e.Fields > 1 {
		text += fmt.Sprintf(", the first of %d fields", e.Fields)
	}
	return text
}

func orNothing(value *string) string {
	if value == nil {
		return "nothing"
	}
	return code(*value)
}

// code formats text as code.
func code(text string) string {
	if strings.Contains(text, "`") {
		return "`` " + text + " ``"
	}
	return "`" + text + "`"
}

func count(n int, what string) string {
	if n != 1 {
		what += "s"
	}
	return number(n) + " " + what
}

// number formats n with commas: 1,234,567.
func number(n int) string {
	text := fmt.Sprint(n)
	for i := len(text) - 3; i > 0; i -= 3 {
		text = text[:i] + "," + text[i:]
	}
	return text
}

func writeList(out *strings.Builder, title string, lines []string) {
	if len(lines) == 0 {
		return
	}
	if !strings.HasSuffix(out.String(), "\n\n") {
		out.WriteString("\n")
	}
	fmt.Fprintf(out, "## %s\n\n", title)
	for _, line := range lines {
		fmt.Fprintf(out, "- %s\n", line)
	}
}

// writeTable writes rows, the first of them the head. The first columns are words; the
// others are numbers, aligned to the right.
func writeTable(out *strings.Builder, rows [][]string, words int) {
	widths := make([]int, len(rows[0]))
	for _, row := range rows {
		for i, cell := range row {
			row[i] = strings.ReplaceAll(cell, "|", `\|`)
			widths[i] = max(widths[i], utf8.RuneCountInString(row[i]))
		}
	}
	separator := make([]string, len(widths))
	for i, width := range widths {
		separator[i] = strings.Repeat("-", width)
		if i >= words {
			separator[i] = separator[i][1:] + ":"
		}
	}
	for i, row := range rows {
		writeRow(out, row, widths, words)
		if i == 0 {
			writeRow(out, separator, widths, words)
		}
	}
}

func writeRow(out *strings.Builder, row []string, widths []int, words int) {
	for i, cell := range row {
		padding := strings.Repeat(" ", widths[i]-utf8.RuneCountInString(cell))
		if i < words {
			out.WriteString("| " + cell + padding + " ")
		} else {
			out.WriteString("| " + padding + cell + " ")
		}
	}
	out.WriteString("|\n")
}
