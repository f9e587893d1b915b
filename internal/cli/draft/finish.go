// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package draft

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
	"github.com/conversion-operator/conversion-operator/internal/operator/terminal"
)

// finish compiles the policy, and lists what it leaves open.
func (d *drafter) finish(all []*hypothesis) (*Draft, error) {
	chosen, tried, err := d.judge.confirmTolerant(all)
	if err != nil {
		return nil, err
	}
	d.unexplained, d.differ = tried.unexplained, tried.differ
	d.noteProbed()
	for _, h := range all {
		if h.refuted != "" {
			d.refuted = append(d.refuted, h)
		}
	}
	result := &Draft{
		Format: Format, CRD: d.input.CRD.Name, Spoke: d.judge.spoke, Hub: d.judge.hub, Pairs: len(d.input.Pairs), Reproduced: tried.reproduced, Probe: d.probe,
		Rules: []Rule{}, Ambiguous: []Ambiguous{}, Unpaired: []Ambiguous{}, Preserved: []Place{},
		Differences: d.differences(tried.differ), Equivalent: d.differences(tried.equivalent),
	}
	slices.SortStableFunc(chosen, compareRules)
	for _, h := range chosen {
		v := tried.verdicts[h]
		made := Rule{Rule: h.rule, Why: append([]string{}, h.why...), Confirmed: v.confirmed, Values: len(v.values), Wrong: v.wrong, Example: v.example, Rivals: h.rivals, Unconfirmed: v.confirmed == 0 && !h.hinted}
		if h.score < 1 {
			made.Score = h.score
		}
		if result.Rules = append(result.Rules, made); h.elements != nil {
			made.Rule, made.Why, made.Example = *h.elements, []string{}, ""
			result.Rules = append(result.Rules, made)
		}
	}
	result.Policy.APIVersion, result.Policy.Kind, result.Policy.Metadata.Name = v1alpha1.GroupVersion.String(), "ConversionPolicy", d.input.CRD.Name
	result.Policy.Spec.Converter.Type = v1alpha1.ConverterDeclarative
	result.Policy.Spec.Converter.Declarative = d.judge.rules(chosen)
	result.Ambiguous = append(result.Ambiguous, d.refusals(all, chosen)...)
	d.list(result, all, chosen)
	return result, nil
}

// refusals lists the rules that the user or what was seen asks for, and that cannot be in the policy or are refuted.
func (d *drafter) refusals(all, chosen []*hypothesis) (open []Ambiguous) {
	for _, h := range all {
		why := "the rule of a hint is refuted: "
		switch {
		case h.refuted == "":
			continue
		case h.unwritable:
			why = "a policy cannot have the rule: "
		case h.hinted:
		case h.verdict == nil || h.verdict.confirmed == 0 || d.input.Convert != nil || slices.ContainsFunc(chosen, func(other *hypothesis) bool { return meet(h, other) }):
			continue
		default:
			why = fmt.Sprintf("a rule is right for %s and wrong for %d, where ", terminal.Count(h.verdict.confirmed, "pair"), h.verdict.wrong)
		}
		place := Place{d.judge.hub, slices.Concat(h.spoke, h.hub)[0].String()}
		if len(h.spoke) > 0 {
			place.Version = d.judge.spoke
		}
		open = append(open, Ambiguous{place, why + h.refuted, []string{describe(h)}})
	}
	return open
}

func compareRules(a, b *hypothesis) int {
	first := func(h *hypothesis) string { return slices.Concat(h.spoke, h.hub)[0].String() }
	return strings.Compare(first(a), first(b))
}

func (d *drafter) differences(found map[spotOf]*Difference) []Difference {
	all := []Difference{}
	for at, difference := range found {
		difference.To = d.judge.spoke
		if at.toHub {
			difference.To = d.judge.hub
		}
		all = append(all, *difference)
	}
	slices.SortFunc(all, func(a, b Difference) int { return cmp.Or(strings.Compare(a.To, b.To), strings.Compare(a.Path, b.Path)) })
	return all
}

// list adds the fields without a rule.
func (d *drafter) list(result *Draft, all, chosen []*hypothesis) {
	g := d.guesser
	g.coveredBy = map[*field]*hypothesis{}
	for _, h := range chosen {
		if g.pairs.renamed[h.spokeField()] == nil {
			g.cover(h)
		}
	}
	g.index()
	d.leftOut = map[*field][]*hypothesis{}
	for _, h := range all {
		if h.unsure || h.refuted == "" && len(chosen)+len(d.input.Rules) >= maxRules && !slices.Contains(chosen, h) {
			for _, f := range slices.Concat(h.spoke, h.hub) {
				d.leftOut[f] = append(d.leftOut[f], h)
			}
		}
	}
	for _, side := range []struct {
		root    *field
		version string
	}{{g.spoke, d.judge.spoke}, {g.hub, d.judge.hub}} {
		d.listIn(side.root, side.version, result)
	}
}

// listIn lists the outermost fields without a partner and without a rule in them.
func (d *drafter) listIn(f *field, version string, result *Draft) {
	g := d.guesser
	if g.covered(f) {
		return
	}
	place := Place{version, f.String()}
	if g.pairs.partner[f] == nil && !f.isElement() && !g.isCoveredBelow(f) {
		whys, candidates := d.openQuestionsIn(f)
		switch own, _ := d.openQuestion(f); {
		case own != "" || len(whys) > 1:
			result.Ambiguous = append(result.Ambiguous, Ambiguous{place, whys[0], candidates})
			return
		case len(whys) == 0 && !d.differsIn(f):
			d.listAlone(f, place, result)
			return
		}
	} else if why, candidates := d.openQuestion(f); why != "" {
		result.Ambiguous = append(result.Ambiguous, Ambiguous{place, why, append([]string{}, candidates...)})
	}
	for _, name := range slices.Sorted(maps.Keys(f.children)) {
		d.listIn(f.children[name], version, result)
	}
}

// differsIn reports whether a field, or one in it, differs from what was observed.
func (d *drafter) differsIn(f *field) bool {
	for at := range d.differ {
		if at.field.within(f) {
			return true
		}
	}
	return false
}

// listAlone lists a field that has no partner, and no rule.
func (d *drafter) listAlone(f *field, place Place, result *Draft) {
	other := d.judge.hub
	if f.within(d.guesser.hub) {
		other = d.judge.spoke
	}
	switch sameName, others := d.aloneBeside(f); {
	case d.known[f]:
		result.Preserved = append(result.Preserved, place)
	case sameName:
		result.Ambiguous = append(result.Ambiguous, Ambiguous{place, other + " has it with another type, and the schemas show no rule", []string{}})
	case len(others) > 0:
		result.Unpaired = append(result.Unpaired, Ambiguous{place, other + " has others there", others[:min(len(others), maxRivals)]})
	default:
		result.Preserved = append(result.Preserved, place)
	}
}

// aloneBeside returns the fields that only the other version has in the object around a field, and no observation has, and
// reports whether one of them has the same name.
func (d *drafter) aloneBeside(f *field) (sameName bool, others []string) {
	g := d.guesser
	around := g.pairs.partner[f.parent]
	if around == nil {
		return false, nil
	}
	for _, name := range slices.Sorted(maps.Keys(around.children)) {
		other := around.children[name]
		if g.pairs.partner[other] != nil || g.covered(other) || g.isCoveredBelow(other) {
			continue
		}
		if sameName = sameName || name == f.name(); !d.known[other] {
			others = append(others, other.String())
		}
	}
	return sameName, others
}

// isCoveredBelow reports whether a field below has a rule.
func (g *guesser) isCoveredBelow(f *field) bool {
	if g.keptBelow[f] {
		return true
	}
	for _, child := range f.children {
		if g.coveredBy[child] != nil || g.isCoveredBelow(child) {
			return true
		}
	}
	return false
}

// openQuestionsIn returns the open questions of a field and of all below it.
func (d *drafter) openQuestionsIn(f *field) (whys, candidates []string) {
	candidates = []string{}
	var walk func(f *field)
	walk = func(f *field) {
		why, found := d.openQuestion(f)
		if why != "" {
			whys = append(whys, why)
		}
		for _, candidate := range found {
			if len(candidates) < maxRivals && !slices.Contains(candidates, candidate) {
				candidates = append(candidates, candidate)
			}
		}
		for _, name := range slices.Sorted(maps.Keys(f.children)) {
			walk(f.children[name])
		}
	}
	walk(f)
	return whys, candidates
}

// openQuestion returns why a field is ambiguous, empty if it is not, and what it may correspond to.
func (d *drafter) openQuestion(f *field) (why string, candidates []string) {
	g := d.guesser
	for _, h := range d.leftOut[f] {
		if why = "several rules explain what was observed"; !h.unsure {
			why = fmt.Sprintf("a policy has at most %d rules for a version", maxRules)
		}
		candidates = append(candidates, describe(h))
	}
	if why != "" {
		return why, candidates[:min(len(candidates), maxRivals)]
	}
	for _, other := range slices.SortedFunc(maps.Keys(d.unexplained[f]), byPath) {
		if d.isAlways(other) {
			continue // it comes with the object around it, whatever field is in that
		}
		candidates = append(candidates, "it changes "+other.String())
	}
	if len(candidates) > 0 {
		return "no rule gives what the converter makes of it", candidates[:min(len(candidates), maxRivals)]
	}
	if d.probed[f] {
		return "", nil
	}
	for _, c := range g.rivals[f] {
		if !d.isRefuted(c) {
			candidates = append(candidates, fmt.Sprintf("%s of %s and %s of %s (%.2f: %s)", c.spoke, d.judge.spoke, c.hub, d.judge.hub, c.score, strings.Join(c.why, ", ")))
		}
	}
	why = g.undecidedBecause[f]
	switch {
	case why != "" && (g.pairs.partner[f] == nil || len(d.judge.observations) == 0):
	case len(candidates) > 0:
		why = "not alike enough, or there are rivals"
	default:
		why = ""
	}
	return why, candidates[:min(len(candidates), maxRivals)]
}

// isAlways reports whether a field differs, and always by the same value, which the draft does not give.
func (d *drafter) isAlways(f *field) bool {
	for _, toHub := range []bool{true, false} {
		if found := d.differ[spotOf{toHub, f}]; found != nil && !found.always {
			return false
		}
	}
	return true
}

func byPath(a, b *field) int { return strings.Compare(a.String(), b.String()) }

// noteProbed notes the fields about which the converter was asked, and those for which an observation has a value, with those
// around them.
func (d *drafter) noteProbed() {
	d.probed, d.known = map[*field]bool{}, map[*field]bool{}
	note := func(f *field, in map[*field]bool) {
		for ; f != nil && !in[f]; f = f.parent {
			in[f] = true
		}
	}
	for _, o := range d.judge.observations {
		note(o.changed, d.probed)
		for _, values := range []entries{o.in, o.out} {
			for at := range values {
				note(at.field, d.known)
			}
		}
	}
}

// isRefuted reports whether observations refute a pair of fields.
func (d *drafter) isRefuted(c candidate) bool {
	return slices.ContainsFunc(d.refuted, func(h *hypothesis) bool {
		return slices.Contains(h.spoke, c.spoke) && slices.Contains(h.hub, c.hub)
	})
}
