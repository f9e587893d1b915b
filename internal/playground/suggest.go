// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package playground

import (
	"bytes"
	"context"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
	"github.com/conversion-operator/conversion-operator/internal/conversion/compile"
	"github.com/conversion-operator/conversion-operator/internal/crds"
	"github.com/conversion-operator/conversion-operator/internal/draft"
	"github.com/conversion-operator/conversion-operator/internal/verify"
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
