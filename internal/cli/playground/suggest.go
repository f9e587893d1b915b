// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package playground

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"go.yaml.in/yaml/v3"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	kubernetesyaml "sigs.k8s.io/yaml"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
	"github.com/conversion-operator/conversion-operator/internal/cli/draft"
	"github.com/conversion-operator/conversion-operator/internal/engine/conversion/compile"
	"github.com/conversion-operator/conversion-operator/internal/engine/manifest"
	"github.com/conversion-operator/conversion-operator/internal/operator/crds"
	"github.com/conversion-operator/conversion-operator/internal/operator/verify"
)

// Suggested is the answer to Suggest.
type Suggested struct {
	Problems []Problem `json:"problems"`
	// Policy is a drafted policy, if the text has none. Then there are no suggestions.
	Policy      string       `json:"policy,omitempty"`
	Suggestions []Suggestion `json:"suggestions"`
	// Ambiguous are fields for which several rules are nearly as likely.
	Ambiguous []draft.Ambiguous `json:"ambiguous"`
}

// Suggestion is a rule that the policy could have.
type Suggestion struct {
	// Spoke is the version of the rule.
	Spoke string `json:"spoke"`
	// Rule is the rule in YAML, in one line.
	Rule   string   `json:"rule"`
	Why    string   `json:"why"`
	Rivals []string `json:"rivals"`
}

// Suggest drafts rules from the schemas for the fields that have no rule, or a policy if there is none.
func Suggest(ctx context.Context, in Input) *Suggested {
	suggested := &Suggested{Problems: []Problem{}, Suggestions: []Suggestion{}, Ambiguous: []draft.Ambiguous{}}
	crd, err := in.definition(ctx)
	if err != nil {
		suggested.Problems = whole(TextCRD, err)
		return suggested
	}
	policies, err := objectsIn(TextPolicy, in.Policy)
	if err == nil && len(policies) == 0 {
		err = suggested.policy(crd)
	} else {
		err = in.suggest(ctx, suggested, crd)
	}
	if err != nil {
		suggested.Problems = whole(TextPolicy, err)
	}
	return suggested
}

// policy drafts one for the two versions that clients prefer.
func (s *Suggested) policy(crd *apiextensionsv1.CustomResourceDefinition) error {
	versions := crds.ByPriority(crd)
	if len(versions) < 2 {
		return problems{{Text: TextCRD, Line: 1, Column: 1, Message: "there is only one version: add the other one, so that there is something to convert"}}
	}
	drafted, err := draft.Make(draft.Input{CRD: crd, Hub: versions[0].Name, Spoke: versions[1].Name})
	if err != nil {
		return err
	}
	var text bytes.Buffer
	err = drafted.WriteText(&text)
	s.Policy = text.String()
	return err
}

// suggest drafts rules for each spoke, besides those of the policy, which must be valid.
func (in Input) suggest(ctx context.Context, s *Suggested, crd *apiextensionsv1.CustomResourceDefinition) error {
	policy, index, err := in.policy(ctx)
	if err != nil {
		return err
	}
	if _, errs := verify.Compile(policy, crd); len(errs) > 0 {
		return in.inPolicy(index, errs)
	}
	rules := policy.Spec.Converter.Declarative
	for i, spoke := range rules.Spokes {
		drafted, err := draft.Make(draft.Input{CRD: crd, Hub: string(rules.Hub), Spoke: string(spoke.Version), Rules: rulesOf(rules, i)})
		if err != nil {
			return err
		}
		for _, rule := range drafted.Rules {
			s.Suggestions = append(s.Suggestions, Suggestion{
				Spoke: string(spoke.Version), Rule: rule.Text(), Why: rule.Evidence(), Rivals: append([]string{}, rule.Rivals...),
			})
		}
		s.Ambiguous = append(s.Ambiguous, drafted.Ambiguous...)
	}
	return nil
}

// rulesOf returns the rules of a spoke, with those of the groups that they use.
func rulesOf(converter *v1alpha1.DeclarativeConverter, spoke int) (rules []v1alpha1.Rule) {
	for _, rule := range compile.Rules(converter, spoke) {
		rules = append(rules, rule.Rule)
	}
	return rules
}

// Accepted is the answer to Accept.
type Accepted struct {
	Problems []Problem `json:"problems"`
	// Policy is the text with the rule, and Line that of the rule in it, from 1.
	Policy string `json:"policy"`
	Line   int    `json:"line"`
}

// Accept inserts a rule, as the last one of its spoke. All other lines stay. The policy need not be valid.
func Accept(in Input, suggestion Suggestion) *Accepted {
	policy, err := theOnly(TextPolicy, in.Policy, "ConversionPolicy")
	if err != nil {
		return &Accepted{Problems: whole(TextPolicy, err), Policy: in.Policy}
	}
	text, line, err := insert(in.Policy, manifest.NewPositions(in.Policy, policy.index), suggestion)
	if err == nil {
		err = hasAlso(policy, text, suggestion)
	}
	if err != nil {
		return &Accepted{Problems: whole(TextPolicy, err), Policy: in.Policy}
	}
	return &Accepted{Problems: []Problem{}, Policy: text, Line: line}
}

// hasAlso returns an error if a text is not the policy with the rule as the last one of the first spoke of its version.
// Lines do not show everything that YAML allows: braces can end on lines that are not indented.
func hasAlso(policy document, text string, suggestion Suggestion) error {
	var want, got map[string]any
	var rule any
	changed, err := theOnly(TextPolicy, text, "ConversionPolicy")
	if err = errors.Join(err, json.Unmarshal(policy.JSON, &want), json.Unmarshal(changed.JSON, &got), kubernetesyaml.Unmarshal([]byte(suggestion.Rule), &rule)); err == nil {
		found, _, _ := unstructured.NestedFieldNoCopy(want, "spec", "converter", "declarative", "spokes")
		spokes, _ := found.([]any)
		for _, spoke := range spokes {
			if one, isObject := spoke.(map[string]any); isObject && one["version"] == suggestion.Spoke {
				rules, _ := one["rules"].([]any)
				one["rules"] = append(rules, rule)
				break
			}
		}
		if equality.Semantic.DeepEqual(want, got) {
			return nil
		}
	}
	return fmt.Errorf("the place after the last rule of the spoke %s is not clear: write each of its rules on lines of its own, then accept the rule", suggestion.Spoke)
}

// otherBreaks end lines in YAML 1.1, whose lines the parser counts, besides those of lines.
const otherBreaks = "\r\u0085\u2028\u2029"

func insert(text string, where manifest.Positions, suggestion Suggestion) (string, int, error) {
	if strings.ContainsAny(strings.ReplaceAll(text, "\r\n", "\n"), otherBreaks) {
		return text, 0, errors.New("the text has line breaks other than LF and CRLF: replace them, then accept the rule")
	}
	spokes := where.Member("spec", "converter", "declarative", "spokes")
	if spokes == nil || spokes.Style&yaml.FlowStyle != 0 || len(spokes.Content) == 0 {
		return text, 0, errors.New("spec.converter.declarative.spokes must be a list with one line for each spoke: write it so, then accept the rule")
	}
	for _, spoke := range spokes.Content {
		if _, version := manifest.Child(spoke, "version"); version == nil || version.Value != suggestion.Spoke {
			continue
		}
		if spoke.Style&yaml.FlowStyle != 0 {
			return text, 0, fmt.Errorf("line %d: the spoke is in braces: write its version and its rules on lines of their own, then accept the rule", spoke.Line)
		}
		return insertInto(lines(text), spoke, suggestion.Rule)
	}
	return text, 0, fmt.Errorf("the policy has no spoke %s", suggestion.Spoke)
}

// insertInto inserts a rule into a spoke.
func insertInto(all []string, spoke *yaml.Node, rule string) (string, int, error) {
	key, rules := manifest.Child(spoke, "rules")
	switch {
	case rules == nil:
		_, version := manifest.Child(spoke, "version")
		at := version.Line
		indent := strings.Repeat(" ", spoke.Column-1)
		return insertLines(all, at, indent+"rules:", indent+"- "+rule), at + 2, nil
	case len(rules.Content) == 0:
		// It is null or [], on the line of its key.
		line := all[key.Line-1]
		before, after, found := strings.Cut(line, "rules:")
		if !found || rules.Line != key.Line {
			return "", 0, fmt.Errorf("line %d: write rules: on a line of its own, then accept the rule", key.Line)
		}
		comment := ""
		if i := strings.IndexByte(after, '#'); i >= 0 {
			comment = " " + after[i:]
		}
		all[key.Line-1] = before + "rules:" + comment
		return insertLines(all, key.Line, strings.Repeat(" ", key.Column-1)+"- "+rule), key.Line + 1, nil
	case rules.Style&yaml.FlowStyle != 0:
		return "", 0, fmt.Errorf("line %d: the rules are in brackets: write each on a line of its own, then accept the rule", rules.Line)
	}
	at := endOf(all, rules)
	return insertLines(all, at, strings.Repeat(" ", rules.Column-1)+"- "+rule), at + 1, nil
}

// endOf returns the number of the last line of a list in block style. The next line with less indentation, or with
// the same and no dash, does not belong to it; nor do empty lines before that one, and comments that are not indented
// more than the dashes.
func endOf(all []string, list *yaml.Node) int {
	last := list.Line
	for i := list.Line; i < len(all); i++ {
		line := all[i]
		content := strings.TrimLeft(line, " ")
		indent := len(line) - len(content)
		switch {
		case strings.TrimSpace(content) == "" || content[0] == '#' && indent < list.Column:
			continue
		case indent < list.Column-1, indent == list.Column-1 && !strings.HasPrefix(content, "-"), strings.HasPrefix(line, "---"):
			return last
		}
		last = i + 1
	}
	return last
}

// lines returns the lines of a text, without line breaks; the last one is not empty.
func lines(text string) []string {
	return strings.Split(strings.TrimSuffix(text, "\n"), "\n")
}

// insertLines inserts lines after a number of others. They end as those before do.
func insertLines(all []string, after int, more ...string) string {
	ending := ""
	if strings.HasSuffix(all[0], "\r") {
		ending = "\r"
		if last := len(all) - 1; !strings.HasSuffix(all[last], "\r") {
			all[last] += "\r"
		}
	}
	var out []string
	out = append(out, all[:after]...)
	for _, line := range more {
		out = append(out, line+ending)
	}
	return strings.Join(append(out, all[after:]...), "\n") + "\n"
}
