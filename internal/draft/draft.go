// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package draft

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
	"github.com/conversion-operator/conversion-operator/internal/crds"
	"github.com/conversion-operator/conversion-operator/internal/preserved"
)

// Format is the format of a Draft as JSON. It increases when an earlier reader would misread it.
const Format = 1

// Draft is a policy, with the evidence for each rule and what it leaves open.
type Draft struct {
	Format int    `json:"format"`
	CRD    string `json:"crd"`
	Spoke  string `json:"spoke"`
	Hub    string `json:"hub"`
	// Pairs is the number of objects that were read at both versions.
	Pairs int    `json:"pairs,omitempty"`
	Rules []Rule `json:"rules"`
	// Ambiguous are fields without a rule for which there may be one.
	Ambiguous []Ambiguous `json:"ambiguous"`
	// Preserved are fields that one version lacks. They need no rule.
	Preserved []Place `json:"preserved"`
	// Differences are fields that the policy converts in another way than was observed.
	Differences []Difference `json:"differences"`
	// Equivalent are fields that differ only in notation, or if their value is false, 0 or empty.
	Equivalent []Difference `json:"equivalent"`
	// Probe says how a converter was asked, nil if none was.
	Probe  *Probe `json:"probe,omitempty"`
	Policy Policy `json:"policy"`
}

// Policy is a ConversionPolicy with the fields that a draft sets.
type Policy struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Metadata   struct {
		Name string `json:"name"`
	} `json:"metadata"`
	Spec struct {
		Converter struct {
			Declarative *v1alpha1.DeclarativeConverter `json:"declarative"`
		} `json:"converter"`
	} `json:"spec"`
}

// Rule is a rule of the policy, and why it is there.
type Rule struct {
	Rule v1alpha1.Rule `json:"rule"`
	// Score is the likeness of the fields in the schemas, from 0 to 1; 0 if it does not matter.
	Score float64 `json:"score,omitempty"`
	// Why says what in the schemas suggests the rule.
	Why []string `json:"why"`
	// Confirmed is the number of observed conversions or pairs that the rule gives exactly, Values that of their
	// different values, and Wrong that of those with another result.
	Confirmed int `json:"confirmed"`
	Values    int `json:"values"`
	Wrong     int `json:"wrong"`
	// Example of a wrong one.
	Example string   `json:"example,omitempty"`
	Rivals  []string `json:"rivals,omitempty"`
}

// Place is a field of a version.
type Place struct {
	Version string `json:"version"`
	Path    string `json:"path"`
}

// Ambiguous is a field without a rule.
type Ambiguous struct {
	Place
	Why        string   `json:"why"`
	Candidates []string `json:"candidates"`
}

// Difference is a field that the policy converts in another way than was observed.
type Difference struct {
	// To is the version that objects were converted to.
	To   string `json:"to"`
	Path string `json:"path"`
	// Count is the number of conversions; Draft and Observed are the values in one of them.
	Count    int    `json:"count"`
	Draft    string `json:"draft"`
	Observed string `json:"observed"`
	// always is set if the draft gives no value, and the observed one is the same each time.
	always bool
}

// Pair is an object that was read at both versions, as JSON.
type Pair struct{ Spoke, Hub []byte }

// Input is what a policy is drafted from.
type Input struct {
	CRD        *apiextensionsv1.CustomResourceDefinition
	Spoke, Hub string
	Pairs      []Pair
	// Convert asks a converter, nil if there is none.
	Convert Convert
	// Progress is called after each request to it.
	Progress func(done, total int)
}

// IsAmbiguous reports whether a person must decide something.
func (d *Draft) IsAmbiguous() bool {
	return len(d.Ambiguous) > 0 || len(d.Differences) > 0 || d.Probe != nil && len(d.Probe.Problems) > 0
}

// drafter drafts one policy.
type drafter struct {
	input   Input
	guesser *guesser
	judge   *judge
	probe   *Probe
	refuted []*hypothesis
	// unexplained are the fields that differ when a field changes.
	unexplained map[*field]map[*field]bool
	differ      map[spotOf]*Difference
	// leftOut are the hypotheses that may be right and are no rules.
	leftOut map[*field][]*hypothesis
	probed  map[*field]bool
}

// Make drafts a policy. It fails if the CustomResourceDefinition has no two such versions, or is not valid,
// and if the converter fails.
func Make(input Input) (*Draft, error) {
	spoke, hub, err := versionsOf(input)
	if err != nil {
		return nil, err
	}
	d := &drafter{input: input}
	d.judge = &judge{
		crd: onlyVersions(input.CRD, spoke.Name, hub.Name), spoke: spoke.Name, hub: hub.Name,
		pairs: func() *pairs { return d.guesser.pairs },
	}
	if _, _, err := d.judge.compiled(nil, nests(nil)); err != nil {
		return nil, err
	}
	d.guesser = newGuesser(schemaOf(spoke), schemaOf(hub))
	d.judge.roots = map[bool]*field{true: d.guesser.hub, false: d.guesser.spoke}
	d.guesser.guess()
	if err := d.observe(); err != nil {
		return nil, err
	}
	all := d.guesser.accepted
	if len(d.judge.observations) > 0 {
		all, err = d.learn()
		if err != nil {
			return nil, err
		}
	}
	return d.finish(all)
}

func versionsOf(input Input) (spoke, hub *apiextensionsv1.CustomResourceDefinitionVersion, err error) {
	for _, wanted := range []struct {
		name string
		into **apiextensionsv1.CustomResourceDefinitionVersion
	}{{input.Spoke, &spoke}, {input.Hub, &hub}} {
		if *wanted.into, _ = crds.Version(input.CRD, wanted.name); *wanted.into == nil {
			return nil, nil, fmt.Errorf("%s has no version %q", input.CRD.Name, wanted.name)
		}
	}
	if spoke == hub {
		return nil, nil, fmt.Errorf("both versions are %s: there is nothing to convert", spoke.Name)
	}
	return spoke, hub, nil
}

func onlyVersions(crd *apiextensionsv1.CustomResourceDefinition, names ...string) *apiextensionsv1.CustomResourceDefinition {
	only := crd.DeepCopy()
	only.Spec.Versions = slices.DeleteFunc(only.Spec.Versions, func(version apiextensionsv1.CustomResourceDefinitionVersion) bool {
		return !slices.Contains(names, version.Name)
	})
	return only
}

func schemaOf(version *apiextensionsv1.CustomResourceDefinitionVersion) *props {
	if version.Schema == nil || version.Schema.OpenAPIV3Schema == nil {
		return &props{Type: "object"}
	}
	return version.Schema.OpenAPIV3Schema
}

// observe reads the pairs of objects, or asks the converter.
func (d *drafter) observe() error {
	for _, pair := range d.input.Pairs {
		spoke, err := preserved.Decode(pair.Spoke)
		if err != nil {
			return err
		}
		hub, err := preserved.Decode(pair.Hub)
		if err != nil {
			return err
		}
		left, right := entriesOf(d.guesser.spoke, spoke), entriesOf(d.guesser.hub, hub)
		d.judge.observations = append(d.judge.observations,
			&observation{toHub: true, object: bare(spoke), in: left, out: right},
			&observation{object: bare(hub), in: right, out: left})
	}
	if d.input.Convert == nil {
		return nil
	}
	p := newProber(d)
	err := p.run()
	d.probe = p.report
	d.judge.observations = append(d.judge.observations, p.observations...)
	return err
}

// bare returns an object without annotations: what they preserve is not converted.
func bare(object any) []byte {
	members, _ := object.(map[string]any)
	members = maps.Clone(members)
	if metadata, isObject := members["metadata"].(map[string]any); isObject {
		metadata = maps.Clone(metadata)
		delete(metadata, "annotations")
		members["metadata"] = metadata
	}
	return preserved.Encode(members)
}

// maxLessons bounds how often wrong names of objects are replaced by others.
const maxLessons = 4

// learn returns the hypotheses that explain the observations.
func (d *drafter) learn() ([]*hypothesis, error) {
	_, unruled, err := d.judge.settle(nil, nests(nil))
	if err != nil {
		return nil, err
	}
	suspects := map[*field]bool{}
	for at := range unruled.differ {
		suspects[at.field] = true
	}
	guessed := d.guesser.pairs.renamed
	d.guesser.pairs = pairUp(d.guesser.spoke, d.guesser.hub, map[*field]*field{})
	first := d.guesser.pairs
	evidence := gather(d.judge.observations, func(f *field) bool { return first.partner[f] == nil || suspects[f] })
	refused := map[string]bool{}
	for range maxLessons {
		d.guesser.pairs = first
		first.renamed = map[*field]*field{}
		p := &proposer{guesser: d.guesser, evidence: evidence}
		p.rename(refused)
		p.renameAs(guessed, refused)
		all := p.propose(d.judge.observations, suspects)
		chosen, tried, err := d.judge.settle(all, nests(d.guesser.pairs))
		if err != nil {
			return nil, err
		}
		if d.refuse(refused, all) {
			continue
		}
		if more := d.defaultsFrom(tried, chosen); len(more) > 0 {
			all = append(all, more...)
			if chosen, _, err = d.judge.settle(all, nests(d.guesser.pairs)); err != nil {
				return nil, err
			}
		}
		return all, d.weigh(all, chosen)
	}
	return d.guesser.accepted, nil
}

// refuse notes the new names of objects that observations refute, and reports whether there are any.
func (d *drafter) refuse(refused map[string]bool, all []*hypothesis) (found bool) {
	for _, h := range all {
		if h.refuted != "" && d.renames(h) {
			refused[h.spoke[0].String()+" "+h.hub[0].String()], found = true, true
		}
	}
	return found
}

// renames reports whether a rule only gives an object, list or map another name.
func (d *drafter) renames(h *hypothesis) bool {
	return h.rule.Move != nil && d.guesser.pairs.renamed[h.spoke[0]] == h.hub[0]
}

// renameAs adds new names that the schemas suggest, for fields of which no observation says anything.
func (p *proposer) renameAs(guessed map[*field]*field, refused map[string]bool) {
	for spoke, hub := range guessed {
		if p.pairs.partner[spoke] == nil && p.pairs.partner[hub] == nil && !refused[spoke.String()+" "+hub.String()] {
			p.pairs.renamed[spoke] = hub
		}
	}
	p.pairs = pairUp(p.spoke, p.hub, p.pairs.renamed)
}

// nests returns whether a rule may be for a field in an object, list or map that another rule only gives
// another name. Without an inner rule, it returns whether the outer one only gives another name.
func nests(p *pairs) func(outer, inner *hypothesis) bool {
	return func(outer, inner *hypothesis) bool {
		if p == nil || outer.rule.Move == nil || p.renamed[outer.spoke[0]] != outer.hub[0] {
			return false
		}
		return inner == nil || len(inner.spoke) == 0 || len(inner.hub) == 0 || inner.spoke[0].within(outer.spoke[0]) == inner.hub[0].within(outer.hub[0])
	}
}

// defaultsFrom proposes defaults for fields that always get the same value.
func (d *drafter) defaultsFrom(tried *trial, chosen []*hypothesis) (found []*hypothesis) {
	owned := map[*field]*hypothesis{}
	for _, h := range chosen {
		for _, f := range slices.Concat(h.spoke, h.hub) {
			owned[f] = h
		}
	}
	for at := range tried.differ {
		if d.guesser.pairs.partner[at.field] != nil || at.field.isElement() || ownerOf(at.field, owned) != nil {
			continue
		}
		value, n := "", 0
		for _, o := range d.judge.observations {
			for place, text := range o.out {
				if o.toHub != at.toHub || place.field != at.field {
					continue
				}
				if value != "" && value != text {
					n = -1 << 30
				}
				value, n = text, n+1
			}
		}
		if n > 1 {
			h := defaultFor(at.field, at.toHub, value, "the same value each time")
			h.seen = n
			found = append(found, h)
		}
	}
	slices.SortFunc(found, func(a, b *hypothesis) int { return strings.Compare(a.key(), b.key()) })
	return found
}

// weigh marks the rules that have a rival with as much evidence.
func (d *drafter) weigh(all, chosen []*hypothesis) error {
	_, tried, err := d.tryOnly(chosen)
	if err != nil {
		return err
	}
	tested := 0
	for _, rival := range all {
		if slices.Contains(chosen, rival) || rival.refuted != "" || rival.seen == 0 || tested >= maxRivalTrials {
			continue
		}
		var against []*hypothesis
		rest := slices.DeleteFunc(slices.Clone(chosen), func(h *hypothesis) bool {
			clash := meet(h, rival)
			if clash {
				against = append(against, h)
			}
			return clash
		})
		if len(against) == 0 || slices.ContainsFunc(against, func(h *hypothesis) bool {
			return sameFields(h, rival) || len(h.hub) > len(rival.hub) || d.guesser.pairs.renamed[h.spokeField()] != nil
		}) {
			continue
		}
		tested++
		used, other, err := d.tryOnly(append(rest, rival))
		if err != nil || !slices.Contains(used, rival) {
			continue
		}
		v := other.verdicts[rival]
		for _, h := range against {
			if !v.isWrong() && v.confirmed >= tried.verdicts[h].confirmed && v.confirmed > 0 && !contains(h, rival) {
				h.unsure, rival.unsure = true, true
				h.rivals = append(h.rivals, describe(rival))
			}
		}
	}
	return nil
}

// maxRivalTrials bounds the rivals that are tested.
const maxRivalTrials = 50

func (h *hypothesis) spokeField() *field {
	if len(h.spoke) == 0 {
		return nil
	}
	return h.spoke[0]
}

// tryOnly tests rules without replacing those that are wrong.
func (d *drafter) tryOnly(rules []*hypothesis) ([]*hypothesis, *trial, error) {
	copies := make([]*hypothesis, 0, len(rules))
	for _, h := range rules {
		clone := *h
		copies = append(copies, &clone)
	}
	used, result, err := d.judge.compiled(copies, nests(d.guesser.pairs))
	if err != nil {
		return nil, nil, err
	}
	tried, err := d.judge.try(used, result.Ruleset)
	if err != nil {
		return nil, nil, err
	}
	var originals []*hypothesis
	for i, clone := range copies {
		if v := tried.verdicts[clone]; v != nil {
			tried.verdicts[rules[i]] = v
			originals = append(originals, rules[i])
		} else {
			tried.verdicts[rules[i]] = &verdict{}
		}
	}
	return originals, tried, nil
}

// meet reports whether two rules are for the same field.
func meet(a, b *hypothesis) bool {
	for _, f := range slices.Concat(a.spoke, a.hub) {
		for _, other := range slices.Concat(b.spoke, b.hub) {
			if f.within(other) || other.within(f) {
				return true
			}
		}
	}
	return false
}

// contains reports whether one rule is for a part of the fields of another.
func contains(a, b *hypothesis) bool {
	inside := func(fields, of []*field) bool {
		return !slices.ContainsFunc(fields, func(f *field) bool {
			return !slices.ContainsFunc(of, func(other *field) bool { return f.within(other) })
		})
	}
	return inside(a.spoke, b.spoke) && inside(a.hub, b.hub) || inside(b.spoke, a.spoke) && inside(b.hub, a.hub)
}

func sameFields(a, b *hypothesis) bool {
	return slices.Equal(a.spoke, b.spoke) && slices.Equal(a.hub, b.hub)
}

// describe names a rule by its kind and fields.
func describe(h *hypothesis) string {
	names := func(fields []*field) string {
		var all []string
		for _, f := range fields {
			all = append(all, f.String())
		}
		return strings.Join(all, ", ")
	}
	return h.rule.Kind() + " of " + names(h.spoke) + " to " + names(h.hub)
}

// finish compiles the policy, and lists what it leaves open.
func (d *drafter) finish(all []*hypothesis) (*Draft, error) {
	g := d.guesser
	if len(d.judge.observations) == 0 {
		all = append(all, g.defaults(func(f *field) bool { return len(g.rivals[f]) > 0 })...)
	}
	chosen, tried, err := d.judge.settle(all, nests(g.pairs))
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
		Format: Format, CRD: d.input.CRD.Name, Spoke: d.judge.spoke, Hub: d.judge.hub, Pairs: len(d.input.Pairs), Probe: d.probe,
		Rules: []Rule{}, Ambiguous: []Ambiguous{}, Preserved: []Place{},
		Differences: d.differences(tried.differ), Equivalent: d.differences(tried.equivalent),
	}
	slices.SortStableFunc(chosen, compareRules)
	for _, h := range chosen {
		v := tried.verdicts[h]
		made := Rule{Rule: h.rule, Why: append([]string{}, h.why...), Confirmed: v.confirmed, Values: len(v.values), Wrong: v.wrong, Example: v.example, Rivals: h.rivals}
		if h.score < 1 {
			made.Score = h.score
		}
		result.Rules = append(result.Rules, made)
	}
	result.Policy.APIVersion, result.Policy.Kind, result.Policy.Metadata.Name = v1alpha1.GroupVersion.String(), "ConversionPolicy", d.input.CRD.Name
	result.Policy.Spec.Converter.Declarative = d.judge.rules(chosen)
	d.list(result, all, chosen)
	return result, nil
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
		if h.unsure || h.refuted == "" && len(chosen) == maxRules && !slices.Contains(chosen, h) {
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
	if g.covered(f) != nil {
		return
	}
	place := Place{version, f.String()}
	if g.pairs.partner[f] == nil && !f.isElement() && !g.isCoveredBelow(f) {
		switch whys, candidates := d.openQuestionsIn(f); {
		case len(whys) == 0:
			result.Preserved = append(result.Preserved, place)
			return
		case len(whys) > 1 || f.children == nil:
			result.Ambiguous = append(result.Ambiguous, Ambiguous{place, whys[0], candidates})
			return
		}
	} else if why, candidates := d.openQuestion(f); why != "" {
		result.Ambiguous = append(result.Ambiguous, Ambiguous{place, why, append([]string{}, candidates...)})
	}
	for _, name := range slices.Sorted(maps.Keys(f.children)) {
		d.listIn(f.children[name], version, result)
	}
}

// isCoveredBelow reports whether a field below has a rule.
func (g *guesser) isCoveredBelow(f *field) bool {
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

// noteProbed notes the fields about which the converter was asked, and those around them.
func (d *drafter) noteProbed() {
	d.probed = map[*field]bool{}
	for _, o := range d.judge.observations {
		for f := o.changed; f != nil && !d.probed[f]; f = f.parent {
			d.probed[f] = true
		}
	}
}

// isRefuted reports whether observations refute a pair of fields.
func (d *drafter) isRefuted(c candidate) bool {
	return slices.ContainsFunc(d.refuted, func(h *hypothesis) bool {
		return slices.Contains(h.spoke, c.spoke) && slices.Contains(h.hub, c.hub)
	})
}
