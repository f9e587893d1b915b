// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package draft

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/conversion-operator/conversion-operator/internal/engine/manifest"
	"github.com/conversion-operator/conversion-operator/internal/operator/terminal"
)

// WriteText writes the policy as YAML, with the evidence as comments.
func (d *Draft) WriteText(w io.Writer) error {
	out := &text{}
	out.comment("", "%s", d.source())
	out.line("apiVersion: %s", d.Policy.APIVersion)
	out.line("kind: %s", d.Policy.Kind)
	out.line("metadata:")
	out.line("  name: %s", flow(d.Policy.Metadata.Name))
	out.line("spec:")
	out.line("  converter:")
	out.line("    type: Declarative")
	out.line("    declarative:")
	out.line("      hub: %s", flow(d.Hub))
	out.line("      spokes:")
	out.line("      - version: %s", flow(d.Spoke))
	if len(d.Rules) == 0 {
		out.line("        rules: []")
	} else {
		out.line("        rules:")
	}
	out.rules("        ", d.Rules, d.observed())
	d.writeOpen(out)
	_, err := w.Write(out.Bytes())
	return err
}

func (d *Draft) source() string {
	text := fmt.Sprintf("Drafted by conversion-operator from the schemas of %s and %s", d.Spoke, d.Hub)
	if d.Pairs > 0 {
		text += ", and " + terminal.Count(d.Pairs, "object") + fmt.Sprintf(" at both versions, of which the policy reproduces %d", d.Reproduced)
	}
	if p := d.Probe; p != nil {
		text += fmt.Sprintf(", and a converter that got %s in %s and refused %d", terminal.Count(p.Objects, "object"), terminal.Count(p.Requests, "request"), p.Refused)
	}
	return text + "."
}

// observed returns what was observed, empty for a draft from the schemas alone.
func (d *Draft) observed() string {
	switch {
	case d.Probe != nil:
		return "conversion"
	case d.Pairs > 0:
		return "pair"
	}
	return ""
}

// Text is the rule in YAML, in one line.
func (r *Rule) Text() string { return flow(r.Rule) }

// Evidence says why a rule that was drafted from schemas alone is there.
func (r *Rule) Evidence() string { return r.evidence("") }

func (r *Rule) evidence(observed string) string {
	why, guessed := strings.Join(r.Why, ", "), "guessed from the schemas"
	if r.Score > 0 {
		guessed += fmt.Sprintf(" (%.2f)", r.Score)
	}
	switch {
	case r.Confirmed > 0 && why != "":
		return fmt.Sprintf("Confirmed by %s with %s; in the schemas: %s.", terminal.Count(r.Confirmed, observed), terminal.Count(r.Values, "different value"), why)
	case r.Confirmed > 0:
		return fmt.Sprintf("Confirmed by %s with %s.", terminal.Count(r.Confirmed, observed), terminal.Count(r.Values, "different value"))
	case !r.Unconfirmed:
		return "Not refuted: " + why + "."
	case observed != "":
		return fmt.Sprintf("NOT CONFIRMED: no %s had a value, %s: %s.", observed, guessed, why)
	}
	return "NOT CONFIRMED: " + guessed + ": " + why + "."
}

// maxListed bounds the fields of each list.
const maxListed = 50

func (d *Draft) writeOpen(out *text) {
	if d.Probe != nil {
		list(out, "Problems with the converter:", d.Probe.Problems)
	}
	list(out, "Ambiguous, without a rule, and preserved. Decide, and add rules; what no rule can say needs spec.converter.image:", d.Ambiguous)
	list(out, "Without a rule, and preserved, because only one version has them. Decide whether any correspond, and add rules:", d.Unpaired)
	list(out, "Converted in another way than was observed:", d.Differences)
	list(out, "Equal, but written in another way: nothing for false, 0 or empty, or another notation of a number, duration or quantity:", d.Equivalent)
	if d.Probe != nil {
		list(out, "The converter was not asked about these, for want of a value that it accepts:", d.Probe.NotProbed)
	}
	list(out, "Preserved, because only one version has them:", d.Preserved)
}

// String names a field.
func (p Place) String() string { return p.Version + " " + p.Path }

// String describes an ambiguous field, with its candidates.
func (a Ambiguous) String() string {
	text := a.Place.String() + ": " + a.Why
	if len(a.Candidates) > 0 {
		text += ": " + strings.Join(a.Candidates, "; ")
	}
	return text
}

// String describes a difference.
func (d Difference) String() string {
	return fmt.Sprintf("to %s, %s: %s, for example %s here and %s there", d.To, d.Path, terminal.Count(d.Count, "conversion"), d.Draft, d.Observed)
}

// WriteRules writes rules that are drafted from schemas alone as a list of YAML, with the evidence as comments, and
// what is ambiguous.
func WriteRules(w io.Writer, indent string, rules []Rule, ambiguous []Ambiguous) error {
	out := &text{}
	out.rules(indent, rules, "")
	for _, a := range ambiguous[:min(len(ambiguous), maxListed)] {
		out.comment(indent, "Ambiguous, without a rule: %s", a)
	}
	if len(ambiguous) > maxListed {
		out.comment(indent, "And %d more are ambiguous: -o json lists all", len(ambiguous)-maxListed)
	}
	_, err := w.Write(out.Bytes())
	return err
}

func (t *text) rules(indent string, rules []Rule, observed string) {
	for _, rule := range rules {
		t.comment(indent, "%s", rule.evidence(observed))
		if rule.Wrong > 0 {
			t.comment(indent, "%s with another result, for example %s.", terminal.Count(rule.Wrong, observed), rule.Example)
		}
		if len(rule.Rivals) > 0 {
			t.comment(indent, "Rivals: %s.", strings.Join(rule.Rivals, "; "))
		}
		t.line("%s- %s", indent, rule.Text())
	}
}

type text struct{ bytes.Buffer }

func (t *text) line(format string, args ...any) { fmt.Fprintf(t, format+"\n", args...) }

// comment writes one line. Names and values come from others: a line break in them would end the comment.
func (t *text) comment(indent, format string, args ...any) {
	t.line("%s# %s", indent, terminal.OneLine(fmt.Sprintf(format, args...)))
}

func list[T any](t *text, title string, items []T) {
	if len(items) == 0 {
		return
	}
	t.line("#")
	t.comment("", "%s", title)
	for _, item := range items[:min(len(items), maxListed)] {
		t.comment("", "- %v", item)
	}
	if len(items) > maxListed {
		t.comment("", "- and %d more: -o json lists all", len(items)-maxListed)
	}
}

// flow writes a value as YAML in one line, as kubectl and API servers read it.
func flow(value any) string {
	encoded, err := json.Marshal(value)
	if err != nil {
		return "null" // impossible: rules are plain data
	}
	node, err := manifest.ToYAML(encoded)
	if err != nil {
		return string(encoded) // JSON is YAML, too
	}
	inBrackets(node)
	written, err := yaml.Marshal(node)
	if err != nil || bytes.Contains(bytes.TrimSpace(written), []byte("\n")) {
		return string(encoded)
	}
	return string(bytes.TrimSpace(written))
}

// inBrackets writes collections in brackets, but the outermost mapping as in "move: {…}".
func inBrackets(node *yaml.Node) {
	if node.Kind == yaml.ScalarNode {
		return
	}
	node.Style = yaml.FlowStyle
	for _, child := range node.Content {
		inBrackets(child)
	}
	if len(node.Content) == 2 && node.Kind == yaml.MappingNode && len(node.Content[1].Content) > 0 {
		node.Style = 0
	}
}
