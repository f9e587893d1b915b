// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package draft

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
	"github.com/conversion-operator/conversion-operator/internal/engine/conversion"
	"github.com/conversion-operator/conversion-operator/internal/engine/conversion/compile"
	"github.com/conversion-operator/conversion-operator/internal/engine/preserved"
)

// maxRules is the number of rules that a spoke may have.
const maxRules = 256

// maxRounds bounds how often wrong rules are replaced by others.
const maxRounds = 12

// judge tests rules with the engine.
type judge struct {
	crd        *apiextensionsv1.CustomResourceDefinition
	spoke, hub string
	// kept are rules that the policy already has.
	kept         []v1alpha1.Rule
	roots        map[bool]*field // the root of the hub, and of the spoke
	observations []*observation
	// pairs returns the fields that correspond without a rule.
	pairs func() *pairs
}

// trial is what rules do to the objects of all observations.
type trial struct {
	verdicts map[*hypothesis]*verdict
	// differ are the fields for which no rule is, and what differs in them.
	differ     map[spotOf]*Difference
	equivalent map[spotOf]*Difference
	// unexplained are the fields that differ when a field changes.
	unexplained map[*field]map[*field]bool
	// reproduced counts the pairs that the rules convert exactly, in one direction at least.
	reproduced int
}

// spotOf is a field of the version that objects are converted to.
type spotOf struct {
	toHub bool
	field *field
}

// verdict is what observations say about a rule.
type verdict struct {
	confirmed int
	values    map[string]bool
	wrong     int
	example   string
}

// isWrong reports whether observations refute the rule. A few may differ: converters have special cases,
// which are listed.
func (v *verdict) isWrong() bool { return v.wrong > 0 && v.wrong*10 > v.confirmed }

// isMostlyRight reports whether the rule is better than none.
func (v *verdict) isMostlyRight() bool { return v.confirmed > v.wrong }

// confirm returns the rules that compile, and that observations do not refute. It marks the others.
func (j *judge) confirm(all []*hypothesis) ([]*hypothesis, *trial, error) {
	for round := 0; ; round++ {
		chosen, result, err := j.compiled(all)
		if err != nil {
			return nil, nil, err
		}
		tried, err := j.try(chosen, result.Ruleset)
		if err != nil {
			return nil, nil, err
		}
		done := true
		for _, h := range chosen {
			if v := tried.verdicts[h]; v.isWrong() && !h.tolerated {
				h.refuted, h.verdict, done = v.example, v, false
			}
		}
		if done {
			return chosen, tried, nil
		}
		if round >= maxRounds {
			all = chosen // from here on, wrong rules are only removed
		}
	}
}

// confirmTolerant is confirm with what is mostly right where there is no other rule.
func (j *judge) confirmTolerant(all []*hypothesis) ([]*hypothesis, *trial, error) {
	for {
		chosen, tried, err := j.confirm(all)
		if err != nil {
			return nil, nil, err
		}
		back := j.free(all, chosen)
		if len(back) == 0 {
			return chosen, tried, nil
		}
		for _, h := range back {
			h.refuted, h.tolerated = "", true
		}
	}
}

// free returns the hypotheses that are mostly right, were refuted, and for whose fields no rule was chosen.
func (j *judge) free(all, chosen []*hypothesis) (free []*hypothesis) {
	for _, h := range all {
		if h.refuted == "" || h.verdict == nil || !h.verdict.isMostlyRight() {
			continue
		}
		candidate := *h
		candidate.refuted = ""
		together := append(slices.Concat(chosen, free), &candidate)
		if slices.Contains(j.choose(together), &candidate) {
			free = append(free, h)
		}
	}
	return free
}

var ruleInError = regexp.MustCompile(`\.rules\[(\d+)\]`)

// compiled chooses rules, and marks those that the compiler or API servers refuse.
func (j *judge) compiled(all []*hypothesis) ([]*hypothesis, compile.Result, error) {
	for _, h := range all {
		for _, rule := range h.rules() {
			if why := unwritable(&rule); why != "" && h.refuted == "" {
				h.refuted, h.unwritable = why, true
			}
		}
	}
	for {
		chosen := j.choose(all)
		result := compile.Compile(j.crd, j.rules(chosen))
		if len(result.Errors) == 0 && result.Ruleset != nil {
			return chosen, result, nil
		}
		refused := 0
		refuse := func(h *hypothesis, why string) {
			if h.refuted == "" {
				h.refuted, refused = why, refused+1
			}
		}
		for _, err := range result.Errors {
			found := ruleInError.FindStringSubmatch(err.Field)
			if found == nil {
				return nil, result, fmt.Errorf("%s: %s", err.Field, err.ErrorBody())
			}
			i, _ := strconv.Atoi(found[1]) // only digits
			var of []*hypothesis           // by their rules
			for _, h := range chosen {
				of = append(of, slices.Repeat([]*hypothesis{h}, len(h.rules()))...)
			}
			switch i -= len(j.kept); {
			case i >= 0 && i < len(of):
				refuse(of[i], err.ErrorBody())
			case i < 0 && len(chosen) > 0: // a rule of the policy was valid without this one
				refuse(chosen[len(chosen)-1], err.ErrorBody())
			}
		}
		if refused == 0 {
			return nil, result, fmt.Errorf("the CustomResourceDefinition cannot be compiled: %w", result.Errors.ToAggregate())
		}
	}
}

// nests reports whether other rules may be for fields in what a rule moves: it only gives an object, a list or a map another name.
func (j *judge) nests(outer *hypothesis) bool {
	return outer.rule.Move != nil && j.pairs().renamed[outer.spoke[0]] == outer.hub[0]
}

func (j *judge) rules(chosen []*hypothesis) *v1alpha1.DeclarativeConverter {
	spoke := v1alpha1.Spoke{Version: v1alpha1.VersionName(j.spoke), Rules: slices.Clone(j.kept)}
	for _, h := range chosen {
		spoke.Rules = append(spoke.Rules, h.rules()...)
	}
	return &v1alpha1.DeclarativeConverter{Hub: v1alpha1.VersionName(j.hub), Spokes: []v1alpha1.Spoke{spoke}}
}

// choose takes hypotheses in order, without those for a field that already has a rule.
func (j *judge) choose(all []*hypothesis) (chosen []*hypothesis) {
	taken, below := map[*field]*hypothesis{}, map[*field]int{}
	free := func(h *hypothesis) bool {
		for _, f := range slices.Concat(h.spoke, h.hub) {
			for at := f; at != nil; at = at.parent {
				if outer := taken[at]; outer != nil && (at == f || !j.nests(outer)) {
					return false
				}
			}
			if below[f] > 0 && !j.nests(h) {
				return false
			}
		}
		return true
	}
	for _, h := range all {
		if h.refuted != "" || h.unsure || len(chosen) >= maxRules-len(j.kept) || !free(h) {
			continue
		}
		chosen = append(chosen, h)
		for _, f := range slices.Concat(h.spoke, h.hub) {
			taken[f] = h
			for at := f.parent; at != nil; at = at.parent {
				below[at]++
			}
		}
	}
	return chosen
}

// try converts the objects of all observations by the rules, and compares the results with what was observed.
func (j *judge) try(chosen []*hypothesis, ruleset *conversion.Ruleset) (*trial, error) {
	converter, err := conversion.NewConverter(ruleset)
	if err != nil {
		return nil, err
	}
	t := &trial{verdicts: map[*hypothesis]*verdict{}, differ: map[spotOf]*Difference{}, equivalent: map[spotOf]*Difference{}, unexplained: map[*field]map[*field]bool{}}
	for _, h := range chosen {
		t.verdicts[h] = &verdict{values: map[string]bool{}}
	}
	owners := ownersOf(chosen)
	var before *outcome
	for _, o := range j.observations {
		to := j.spoke
		if o.toHub {
			to = j.hub
		}
		found := &outcome{observation: o}
		converted, err := converter.Convert(nil, o.object, to)
		if err == nil {
			var object any
			if object, err = preserved.Decode(converted); err == nil {
				found = compare(o, entriesOf(j.roots[o.toHub], object), owners, j.pairs())
			}
		}
		if err != nil {
			found.differ = map[spot]difference{{j.roots[o.toHub], ""}: {nil, err.Error(), "an object", false}}
		}
		switch {
		case !o.isPair():
			t.record(found)
		case before == nil:
			before = found
		default:
			if before.join(found) {
				t.reproduced++
			}
			t.record(before)
			t.record(found)
			before = nil
		}
	}
	return t, nil
}
