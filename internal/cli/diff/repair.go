// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package diff

import (
	"fmt"
	"reflect"
	"slices"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
	"github.com/conversion-operator/conversion-operator/internal/cli/draft"
	"github.com/conversion-operator/conversion-operator/internal/engine/conversion/compile"
	"github.com/conversion-operator/conversion-operator/internal/operator/crds"
)

// repair gives rules that are no longer valid the new paths of fields that seem to have moved within their version,
// if the rules are valid then.
func (c compiled) repair(old compiled, spoke *Spoke) error {
	if len(spoke.Invalid()) == 0 {
		return nil
	}
	fromMoves, err := movesIn(old.CRD, c.CRD, spoke.Version)
	if err != nil {
		return err
	}
	toMoves, err := movesIn(old.CRD, c.CRD, c.hub())
	if err != nil {
		return err
	}
	good := spoke.good()
	for i := range spoke.Rules {
		broken := &spoke.Rules[i]
		if len(broken.Errors) == 0 {
			continue
		}
		made := draft.Rule{Rule: *broken.Rule.DeepCopy(), Score: 1, Unconfirmed: true}
		made.Rule.ReplacePaths(moved(&made, spoke.Version, fromMoves), moved(&made, c.hub(), toMoves))
		if len(made.Why) > 0 && c.allows(spoke.Version, append(slices.Clip(good), made.Rule)) {
			broken.Replacement = &made
			good = append(good, made.Rule)
		}
	}
	return nil
}

// allows reports whether the rules of a spoke compile.
func (c compiled) allows(version string, rules []v1alpha1.Rule) bool {
	converter := &v1alpha1.DeclarativeConverter{
		Hub:    v1alpha1.VersionName(c.hub()),
		Spokes: []v1alpha1.Spoke{{Version: v1alpha1.VersionName(version), Rules: rules}},
	}
	return len(compile.Compile(c.CRD, converter).Errors) == 0
}

// movesIn returns moves of fields within a version by a change of its schema, from the former path to the new one.
func movesIn(before, after *apiextensionsv1.CustomResourceDefinition, version string) ([]draft.Rule, error) {
	former, _ := crds.Version(before, version)
	latter, _ := crds.Version(after, version)
	if former == nil || latter == nil || reflect.DeepEqual(former.Schema, latter.Schema) {
		return nil, nil
	}
	both := after.DeepCopy()
	both.Spec.Versions = []apiextensionsv1.CustomResourceDefinitionVersion{*former.DeepCopy(), *latter.DeepCopy()}
	both.Spec.Versions[0].Name, both.Spec.Versions[1].Name = "before", "after"
	found, err := draft.Make(draft.Input{CRD: both, Spoke: "before", Hub: "after"})
	if err != nil {
		return nil, fmt.Errorf("compare the schemas of %s: %w", version, err)
	}
	moves := slices.DeleteFunc(found.Rules, func(rule draft.Rule) bool { return rule.Rule.Move == nil })
	// Inner fields first: a field in an object that moves may have another name, too.
	slices.SortStableFunc(moves, func(a, b draft.Rule) int { return len(b.Rule.Move.From) - len(a.Rule.Move.From) })
	return moves, nil
}

// moved returns the path that a field of a version has after moves, and notes why in the rule that names it.
func moved(made *draft.Rule, version string, moves []draft.Rule) func(v1alpha1.Path) v1alpha1.Path {
	return func(path v1alpha1.Path) v1alpha1.Path {
		for _, m := range moves {
			if isIn(string(path), string(m.Rule.Move.From)) {
				to := m.Rule.Move.To + v1alpha1.Path(strings.TrimPrefix(string(path), string(m.Rule.Move.From)))
				made.Why = append(made.Why, fmt.Sprintf("%s of %s is now %s: %s", path, version, to, strings.Join(m.Why, ", ")))
				made.Score = min(made.Score, m.Score)
				return to
			}
		}
		return path
	}
}
