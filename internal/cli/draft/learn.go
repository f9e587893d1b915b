// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package draft

import (
	"maps"
	"slices"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
)

// maxLessons bounds how often wrong names of objects are replaced by others.
const maxLessons = 10

// learn returns the hypotheses that explain the observations.
func (d *drafter) learn() ([]*hypothesis, error) {
	_, unruled, err := d.judge.confirm(nil)
	if err != nil {
		return nil, err
	}
	suspects := map[*field]bool{}
	for at := range unruled.differ {
		suspects[at.field] = true
	}
	guessed := d.guesser.pairs.renamed
	d.guesser.pair(map[*field]*field{})
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
		chosen, tried, err := d.judge.confirm(all)
		if err != nil {
			return nil, err
		}
		if d.refuse(refused, all) {
			continue
		}
		if more := d.defaultsFrom(tried, chosen); len(more) > 0 {
			all = append(all, more...)
			if chosen, _, err = d.judge.confirm(all); err != nil {
				return nil, err
			}
		}
		return all, d.weigh(all, chosen)
	}
	// Only moves of whole values are left.
	d.guesser.pair(map[*field]*field{})
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
	p.pair(p.pairs.renamed)
}

// defaultsFrom proposes defaults for fields to which the converter always gives the same value.
func (d *drafter) defaultsFrom(tried *trial, chosen []*hypothesis) (found []*hypothesis) {
	owned := ownersOf(chosen)
	filled := map[spotOf]*filling{}
	for at := range tried.differ {
		if h := ownerOf(at.field, owned); d.guesser.pairs.partner[at.field] == nil && !at.field.isElement() && (h == nil || isBeside(at.field, h, d.guesser.pairs)) {
			filled[at] = &filling{values: map[string]bool{}}
		}
	}
	if len(filled) == 0 {
		return nil
	}
	for _, o := range d.judge.observations {
		if o.isPair() {
			continue // what only one of the objects has may be preserved
		}
		name, namespace := o.names()
		for place, text := range o.out {
			if f := filled[spotOf{o.toHub, place.field}]; f != nil {
				f.note(text, text == name, text == namespace)
			}
		}
	}
	for at, f := range filled {
		if h := f.hypothesis(at.field, at.toHub); h != nil {
			found = append(found, h)
		}
	}
	slices.SortFunc(found, func(a, b *hypothesis) int { return strings.Compare(a.key(), b.key()) })
	return found
}

// filling is what a field is set to.
type filling struct {
	values map[string]bool
	// seen counts the values, and named and inNamespace those that are the name and the namespace of
	// the object.
	seen, named, inNamespace int
}

func (f *filling) note(text string, isName, isNamespace bool) {
	f.values[text] = true
	f.seen++
	if isName {
		f.named++
	}
	if isNamespace {
		f.inNamespace++
	}
}

// hypothesis proposes a default if a field has the same value each time, or that of the object's metadata.
// It returns nil if that cannot be told apart.
func (f *filling) hypothesis(at *field, toHub bool) *hypothesis {
	named, inNamespace := f.named == f.seen, f.inNamespace == f.seen
	rule, source := &v1alpha1.DefaultRule{}, "the same value"
	switch {
	case f.seen < 2, named && inNamespace:
		return nil
	case named:
		rule.ValueFrom, source = v1alpha1.DefaultFromName, "the same as "+string(v1alpha1.DefaultFromName)
	case inNamespace:
		rule.ValueFrom, source = v1alpha1.DefaultFromNamespace, "the same as "+string(v1alpha1.DefaultFromNamespace)
	case len(f.values) > 1:
		return nil
	default:
		rule.Value = &apiextensionsv1.JSON{Raw: []byte(slices.Collect(maps.Keys(f.values))[0])}
	}
	h := defaultRule(at, toHub, rule, source+" each time")
	h.seen = f.seen
	return h
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
			return slices.Equal(h.spoke, rival.spoke) && slices.Equal(h.hub, rival.hub) || len(h.hub) > len(rival.hub) || d.guesser.pairs.renamed[h.spokeField()] != nil
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
const maxRivalTrials = 20

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
	used, result, err := d.judge.compiled(copies)
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
