// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package conversion_test

import (
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
	"github.com/conversion-operator/conversion-operator/internal/conversion/compile"
	"github.com/conversion-operator/conversion-operator/internal/conversion/internal/generate"
)

// FuzzGroups puts the rules of a policy into groups, and uses these: everything that the compiler says, and
// what converter pods get, is as before, but for the positions of the rules. It does so for valid rules, and
// for rules that the compiler refuses.
func FuzzGroups(f *testing.F) {
	const valid, refused, nested, shared = "rules that compile", "rules that are refused", "groups in groups", "groups that are used twice"
	counted := newTally(f, 16, valid, refused, nested, shared)
	f.Fuzz(func(t *testing.T, seed uint64, choices []byte) {
		if counted.isOver() {
			return
		}
		c := generate.Choose(seed%(1<<objectBits), choices)
		crd, rules := randomWorld(t, c)
		counted.world(t, seed, c, func() {
			some := rules.DeepCopy()
			if c.Rarely(2) {
				spoke, hub := crd.Spec.Versions[0].Schema.OpenAPIV3Schema, crd.Spec.Versions[1].Schema.OpenAPIV3Schema
				some.Spokes[0].Rules = c.Rules(spoke, hub, func([]v1alpha1.Rule) bool { return true })
			}
			grouped := c.Grouped(some)
			if wantSameRules(t, crd, some, grouped) {
				counted.count(valid)
			} else {
				counted.count(refused)
			}
			if slices.ContainsFunc(compile.Rules(grouped, 0), func(rule compile.Rule) bool { return strings.Contains(rule.At, ", used by ") }) {
				counted.count(nested)
			}
			if groups, uses := generate.GroupsOf(grouped); uses > groups {
				counted.count(shared)
			}
		})
	})
}

// wantSameRules compiles rules with and without groups, and reports whether they are valid.
func wantSameRules(t *testing.T, crd *apiextensionsv1.CustomResourceDefinition, plain, grouped *v1alpha1.DeclarativeConverter) bool {
	t.Helper()
	want, got := compile.Compile(crd, plain), compile.Compile(crd, grouped)
	if (want.Ruleset == nil) != (got.Ruleset == nil) || want.Ruleset != nil && want.Ruleset.Hash() != got.Ruleset.Hash() {
		t.Errorf("groups make another ruleset, errors: %v, want %v", got.Errors, want.Errors)
	}
	at := positionsOf(t, plain, grouped)
	for i := range got.Leaves {
		got.Leaves[i].Rule = at.replace(got.Leaves[i].Rule)
	}
	for _, texts := range [][2]any{{want.Leaves, got.Leaves}, {at.texts(t, &want, false), at.texts(t, &got, true)}} {
		if diff := cmp.Diff(texts[0], texts[1]); diff != "" {
			t.Errorf("groups make a difference (-without, +with):\n%s", diff)
		}
	}
	if t.Failed() {
		t.Logf("without: %s\nwith: %s", generate.Plain(plain), generate.Plain(grouped))
	}
	return want.Ruleset != nil
}

// positions are those of rules without groups, by those that they have with groups.
type positions map[string]string

func positionsOf(t *testing.T, plain, grouped *v1alpha1.DeclarativeConverter) positions {
	t.Helper()
	all := positions{}
	for i, spoke := range plain.Spokes {
		var rules []v1alpha1.Rule
		for j, rule := range compile.Rules(grouped, i) {
			if all[rule.At] != "" {
				t.Errorf("the position %s has two rules", rule.At)
			}
			rules, all[rule.At] = append(rules, rule.Rule), compile.RulePath(i, j)
		}
		if diff := cmp.Diff(spoke.Rules, rules); diff != "" {
			t.Fatalf("other rules (-without, +with groups):\n%s", diff)
		}
	}
	return all
}

// position matches that of a rule in a text: the rule, a field in it, and what uses its group.
var position = regexp.MustCompile(`((?:spokes|ruleGroups)\[\d+\]\.rules\[\d+\])([\w.\[\]-]*)( \(used by [^)]*\))?`)

const declarative = "spec.converter.declarative."

// replace replaces the positions in a text.
func (p positions) replace(text string) string {
	return position.ReplaceAllStringFunc(text, func(found string) string {
		parts := position.FindStringSubmatch(found)
		return strings.TrimPrefix(p[declarative+parts[1]+parts[3]], declarative) + parts[2]
	})
}

// texts returns the errors and warnings.
func (p positions) texts(t *testing.T, result *compile.Result, withGroups bool) (all []string) {
	t.Helper()
	for _, err := range result.Errors {
		if withGroups {
			p.replaceIn(t, err)
		}
		all = append(all, err.Error())
	}
	for _, warning := range result.Warnings {
		if withGroups {
			warning = p.replace(warning)
		}
		all = append(all, warning)
	}
	return all
}

// replaceIn replaces the positions in an error, which ends with what uses the group of its field.
func (p positions) replaceIn(t *testing.T, err *field.Error) {
	t.Helper()
	for at, plain := range p {
		path := compile.PathOf(at)
		users := strings.TrimPrefix(at, path)
		child, isIn := strings.CutPrefix(err.Field, path+".")
		if detail, ends := strings.CutSuffix(" "+err.Detail, users); isIn && ends {
			err.Field, err.Detail = plain+"."+child, p.replace(strings.TrimPrefix(detail, " "))
			return
		}
	}
	t.Errorf("no rule has the error %v", err)
}
