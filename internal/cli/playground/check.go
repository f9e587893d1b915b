// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package playground

import (
	"context"
	"strings"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
	"github.com/conversion-operator/conversion-operator/internal/cli/report"
	"github.com/conversion-operator/conversion-operator/internal/engine/conversion/compile"
	"github.com/conversion-operator/conversion-operator/internal/engine/manifest"
	"github.com/conversion-operator/conversion-operator/internal/operator/verify"
)

// Checked is the answer to Check.
type Checked struct {
	// Problems are why the texts are not valid. If there are any in the policy or in the
	// CustomResourceDefinition, everything else is empty.
	Problems []Problem `json:"problems"`
	Warnings []string  `json:"warnings"`
	Name     string    `json:"name"`
	Kind     string    `json:"kind"`
	Hub      string    `json:"hub"`
	Versions []string  `json:"versions"`
	Spokes   []Spoke   `json:"spokes"`
	Rules    []Rule    `json:"rules"`
	Objects  []Object  `json:"objects"`
	// MoreObjects are objects that are tested, and not listed in Objects.
	MoreObjects int `json:"moreObjects,omitempty"`
	// Outcome of verify, with its title and, as HTML, its details.
	Outcome verify.Outcome `json:"outcome"`
	Title   string         `json:"title"`
	Tried   string         `json:"tried"`
}

// Spoke is a version that converts to and from the hub.
type Spoke struct {
	Version string `json:"version"`
	// ToHub and FromHub are the verdicts of the compiler.
	ToHub   v1alpha1.Fidelity `json:"toHub"`
	FromHub v1alpha1.Fidelity `json:"fromHub"`
	// Fields are all leaf fields of both versions.
	Fields []Field `json:"fields"`
	// Drawing is HTML: the fields, and what connects them.
	Drawing string `json:"drawing"`
}

// Field is a leaf field of a spoke or of the hub.
type Field struct {
	Version string        `json:"version"`
	Path    string        `json:"path"`
	Owner   compile.Owner `json:"owner"`
	// Rule is the path of its rule in the policy, empty if it has none.
	Rule string `json:"rule,omitempty"`
	// Partly reports whether only some of its values are preserved.
	Partly bool `json:"partly,omitempty"`
}

// Rule is a rule, and where it is in the text.
type Rule struct {
	// ID is what links in the drawings refer to.
	ID string `json:"id"`
	// Path is the path in the policy, for a rule of a group also that of the rule that uses it.
	Path string `json:"path"`
	Kind string `json:"kind"`
	Line int    `json:"line"`
}

// Check finds what is wrong with the texts, and what the rules do.
func Check(ctx context.Context, in Input) *Checked {
	checked := &Checked{Problems: []Problem{}, Warnings: []string{}, Versions: []string{}, Spokes: []Spoke{}, Rules: []Rule{}, Objects: []Object{}}
	crd, err := in.definition(ctx)
	if err != nil {
		checked.Problems = append(checked.Problems, whole(TextCRD, err)...)
	}
	policy, index, err := in.policy(ctx)
	if err != nil {
		checked.Problems = append(checked.Problems, whole(TextPolicy, err)...)
	}
	if len(checked.Problems) > 0 {
		return checked
	}
	if policy.Name != crd.Name {
		checked.Problems = in.inPolicy(index, []verify.RuleError{{
			Path: "metadata.name", Message: "the name must be that of the CustomResourceDefinition: write " + crd.Name,
		}})
		return checked
	}
	result, errs := verify.Compile(policy, crd)
	if len(errs) > 0 {
		checked.Problems = in.inPolicy(index, errs)
		return checked
	}
	checker, err := verify.NewCompiled(policy, crd, result, nil, time.Now)
	if err != nil {
		checked.Problems = whole(TextCRD, err)
		return checked
	}
	checked.Name, checked.Kind, checked.Hub, checked.Versions = crd.Name, crd.Spec.Names.Kind, result.Ruleset.Hub, result.Ruleset.Versions
	checked.Warnings = append(checked.Warnings, result.Warnings...)
	checked.Rules = in.rules(policy, index)
	if err := checked.add(policy, crd, result); err != nil {
		checked.Problems = whole(TextPolicy, err)
		return checked
	}
	if err := checked.try(ctx, in, policy, result, checker); err != nil {
		checked.Problems = append(checked.Problems, whole(TextObjects, err)...)
	}
	return checked
}

// add says how the fields of each spoke and the hub correspond.
func (c *Checked) add(policy *v1alpha1.ConversionPolicy, crd *apiextensionsv1.CustomResourceDefinition, result compile.Result) error {
	for _, verdict := range result.Verdicts {
		spoke := Spoke{Version: verdict.Version, ToHub: verdict.ToHub, FromHub: verdict.FromHub, Fields: []Field{}}
		for _, leaf := range result.Leaves {
			if leaf.Spoke == spoke.Version {
				spoke.Fields = append(spoke.Fields, Field{leaf.Version, leaf.Path, leaf.Owner, leaf.Rule, leaf.PartlyPreserved})
			}
		}
		var drawing strings.Builder
		if err := report.WriteFields(&drawing, policy, crd, result, spoke.Version); err != nil {
			return err
		}
		spoke.Drawing = drawing.String()
		c.Spokes = append(c.Spokes, spoke)
	}
	return nil
}

// rules lists the rules of the policy with their positions, those of groups for each of their uses.
func (in Input) rules(policy *v1alpha1.ConversionPolicy, index int) []Rule {
	where, rules := manifest.NewPositions(in.Policy, index), []Rule{}
	declarative := policy.Spec.Converter.Declarative
	for i, spoke := range declarative.Spokes {
		for j, rule := range compile.Rules(declarative, i) {
			line, _ := where.Of(compile.PathOf(rule.At))
			rules = append(rules, Rule{ID: report.RuleID(string(spoke.Version), j+1), Path: rule.At, Kind: rule.Kind(), Line: line})
		}
	}
	return rules
}

// Tested is the result of verify for other objects than those of the page.
type Tested struct {
	Problems []Problem      `json:"problems"`
	Outcome  verify.Outcome `json:"outcome"`
	Title    string         `json:"title"`
	// Tried is HTML: the details.
	Tried string `json:"tried"`
}

// Test tests the policy of the page on objects that verify gets from elsewhere.
func Test(
	ctx context.Context, in Input, try func(context.Context, *v1alpha1.ConversionPolicy, *apiextensionsv1.CustomResourceDefinition) (*verify.Report, error),
) (*Tested, error) {
	crd, err := in.definition(ctx)
	if err != nil {
		return &Tested{Problems: whole(TextCRD, err)}, nil
	}
	policy, _, err := in.policy(ctx)
	if err != nil {
		return &Tested{Problems: whole(TextPolicy, err)}, nil
	}
	found, err := try(ctx, policy, crd)
	if err != nil {
		return nil, err
	}
	var text strings.Builder
	if err := report.WriteTried(&text, found); err != nil {
		return nil, err
	}
	return &Tested{Problems: []Problem{}, Outcome: found.Outcome, Title: found.Title(), Tried: text.String()}, nil
}
