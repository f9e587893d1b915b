// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package draft

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
	"github.com/conversion-operator/conversion-operator/internal/engine/conversion"
)

const (
	// enough is the likeness from which schemas alone give a rule, and margin how much less alike
	// every rival must be.
	enough, margin = 0.7, 0.12
	// noteworthy is the likeness from which a pair of fields is a rival.
	noteworthy = 0.45
	// maxBucket bounds the fields with the same word that are compared with one field, and
	// maxCandidates those that are remembered.
	maxBucket, maxCandidates = 64, 6
)

// candidate is a pair of fields that one rule may have.
type candidate struct {
	spoke, hub *field
	likeness
}

// hypothesis is a rule that may be right.
type hypothesis struct {
	rule v1alpha1.Rule
	// elements is the rule for what an each rule pairs, nil if it needs none.
	elements   *v1alpha1.Rule
	spoke, hub []*field
	score      float64
	why        []string
	// seen is in how many answers or pairs of objects values show the rule.
	seen int
	// refuted says why the rule is wrong, empty if it may be right.
	refuted string
	// unwritable is set if it is refuted because a policy cannot have the rule.
	unwritable bool
	// verdict is what refutes it, nil if that is the compiler.
	verdict *verdict
	// tolerated is set if the rule stays although it is sometimes wrong.
	tolerated bool
	// unsure marks a rule with a rival for which there is as much evidence.
	unsure bool
	// rivals are other rules that were considered for its fields.
	rivals []string
	// hinted is set if the user says that the fields correspond.
	hinted bool
}

func (h *hypothesis) key() string {
	text, err := json.Marshal(h.rules())
	if err != nil {
		return fmt.Sprint(h.rule) // impossible: a rule is plain data
	}
	return string(text)
}

// rules returns the rule, with the one for its elements.
func (h *hypothesis) rules() []v1alpha1.Rule {
	if h.elements == nil {
		return []v1alpha1.Rule{h.rule}
	}
	return []v1alpha1.Rule{h.rule, *h.elements}
}

// guesser compares two schemas.
type guesser struct {
	spoke, hub       *field
	spokes, hubs     []*field
	pairs            *pairs
	byWord, byName   map[string][]*field
	accepted         []*hypothesis
	coveredBy        map[*field]*hypothesis
	rivals           map[*field][]candidate
	undecidedBecause map[*field]string
	// kept are the fields with rules that the policy already has, keptBelow those around them.
	kept, keptBelow map[*field]bool
}

func newGuesser(spoke, hub *props) *guesser {
	g := &guesser{
		coveredBy: map[*field]*hypothesis{}, undecidedBecause: map[*field]string{},
		kept: map[*field]bool{}, keptBelow: map[*field]bool{},
	}
	g.spoke, g.spokes = treeOf(spoke)
	g.hub, g.hubs = treeOf(hub)
	readWords(g.spokes)
	readWords(g.hubs)
	g.pair(map[*field]*field{})
	return g
}

// pair pairs the fields of both versions, of which some only have another name.
func (g *guesser) pair(renamed map[*field]*field) {
	g.pairs = pairUp(g.spoke, g.hub, renamed, g.kept)
}

// take makes the rules for fields that correspond by a hint.
func (g *guesser) take(hints [][2]string) error {
	for _, hint := range hints {
		spoke, hub := fieldAt(g.spokes, hint[0]), fieldAt(g.hubs, hint[1])
		if spoke == nil || hub == nil {
			return fmt.Errorf("the hint %s=%s does not name a field of the spoke and one of the hub: correct the paths", hint[0], hint[1])
		}
		renames := g.renames(spoke, hub)
		rule, elements, problem := ruleFor(spoke, hub, renames)
		if problem != "" {
			return fmt.Errorf("the hint %s=%s: %s", hint[0], hint[1], problem)
		}
		h := &hypothesis{rule: rule, elements: elements, spoke: []*field{spoke}, hub: []*field{hub}, score: 10, why: []string{"given as a hint"}, hinted: true}
		if g.accepted = append(g.accepted, h); !renames {
			g.cover(h)
			continue
		}
		g.pairs.renamed[spoke] = hub
		g.pair(g.pairs.renamed)
	}
	return nil
}

func fieldAt(all []*field, path string) *field {
	i := slices.IndexFunc(all, func(f *field) bool { return f.parent != nil && f.String() == path && !f.isElement() })
	if i < 0 {
		return nil
	}
	return all[i]
}

// guess makes all rules that the schemas alone decide: objects, lists and maps with another name first,
// because the fields in them correspond then.
func (g *guesser) guess() {
	for {
		g.index()
		found := g.decide(func(c candidate) bool { return g.renames(c.spoke, c.hub) && !g.isElsewhere(c.spoke, c.hub) })
		if len(found) == 0 { // of those in different objects, an object around may have another name
			found = g.decide(func(c candidate) bool { return g.renames(c.spoke, c.hub) })
		}
		if len(found) == 0 {
			break
		}
		for _, h := range found {
			g.accepted = append(g.accepted, h)
			g.pairs.renamed[h.spoke[0]] = h.hub[0]
		}
		g.pair(g.pairs.renamed)
	}
	g.accept(g.decide(func(c candidate) bool { return c.spoke.children != nil || c.hub.children != nil }))
	g.index()
	g.accept(g.decide(func(c candidate) bool { return c.spoke.children == nil && c.hub.children == nil }))
	g.guessFormats()
	g.guessTables()
}

func (g *guesser) accept(found []*hypothesis) {
	for _, h := range found {
		if !slices.ContainsFunc(slices.Concat(h.spoke, h.hub), func(f *field) bool { return g.covered(f) }) {
			g.accepted = append(g.accepted, h)
			g.cover(h)
		}
	}
}

func (g *guesser) cover(h *hypothesis) {
	for _, f := range slices.Concat(h.spoke, h.hub) {
		g.coveredBy[f] = h
	}
}

// covered reports whether there is a rule for a field or one around it.
func (g *guesser) covered(f *field) bool {
	for at := f; at != nil; at = at.parent {
		if g.coveredBy[at] != nil || g.kept[at] {
			return true
		}
	}
	return false
}

// openFields returns the fields of a side that have no partner and no rule, and that a rule can name.
func (g *guesser) openFields(all []*field) []*field {
	return slices.DeleteFunc(g.pairs.open(all), func(f *field) bool { return f.isElement() || g.covered(f) || g.keptBelow[f] })
}

// index finds the candidates for all open fields. It compares only fields that share a rare word, or that
// are in the same object, so that the work grows with the number of fields and not with its square.
func (g *guesser) index() {
	g.byWord, g.byName, g.rivals = map[string][]*field{}, map[string][]*field{}, map[*field][]candidate{}
	open := g.openFields(g.hubs)
	siblings := map[*field][]*field{}
	for _, f := range open {
		for _, word := range distinct(slices.Clone(f.words.name)) {
			g.byWord[word] = append(g.byWord[word], f)
		}
		g.byName[placeOf(f)] = append(g.byName[placeOf(f)], f)
		siblings[f.parent] = append(siblings[f.parent], f)
	}
	for _, f := range g.openFields(g.spokes) {
		seen := map[*field]bool{}
		for _, bucket := range append(g.buckets(f), siblings[g.pairs.partner[f.parent]]) {
			if len(bucket) > maxBucket {
				continue
			}
			for _, other := range bucket {
				if !seen[other] {
					seen[other] = true
					g.consider(f, other)
				}
			}
		}
	}
	for f, found := range g.rivals {
		slices.SortStableFunc(found, func(a, b candidate) int { return cmp.Compare(b.score, a.score) })
		g.rivals[f] = found[:min(len(found), maxCandidates)]
	}
}

func (g *guesser) buckets(f *field) (buckets [][]*field) {
	for _, word := range f.words.name {
		buckets = append(buckets, g.byWord[word])
	}
	return append(buckets, g.byName[placeOf(f)])
}

// placeOf returns the name of a field and of the object around it.
func placeOf(f *field) string { return fmt.Sprint(f.words.name, f.parent.words.name) }

func (g *guesser) consider(spoke, hub *field) {
	if !g.pairs.sameScope(spoke, hub) || !g.mayCorrespond(spoke, hub) {
		return
	}
	if found := compareFields(spoke, hub); found.score >= noteworthy {
		c := candidate{spoke, hub, found}
		g.rivals[spoke], g.rivals[hub] = append(g.rivals[spoke], c), append(g.rivals[hub], c)
	}
}

// mayCorrespond reports whether there is a kind of rule for two fields.
func (g *guesser) mayCorrespond(spoke, hub *field) bool {
	if _, elements := ruleForElements(spoke, hub); elements != nil {
		return true
	}
	return spoke.shape == hub.shape || g.renames(spoke, hub) || castable(spoke, hub) || castable(hub, spoke) ||
		wraps(spoke, hub) || wraps(hub, spoke) || indexedBy(spoke, hub)+indexedBy(hub, spoke) != "" ||
		spoke.isScalar() && hub.isScalar() && (spoke.kind != "number" && hub.kind != "number") || isWideScalar(spoke.kind, hub.kind)
}

// renames reports whether two objects, lists or maps may be the same with another name, or lists or maps
// in different objects.
func (g *guesser) renames(spoke, hub *field) bool {
	return spoke.children != nil && hub.children != nil && alike(spoke, hub) && (!g.isElsewhere(spoke, hub) || g.pairs.mayBeElsewhere(spoke, hub))
}

func (g *guesser) isElsewhere(spoke, hub *field) bool {
	return g.pairs.partner[spoke.parent] != hub.parent
}

func isWideScalar(a, b string) bool {
	return a != kindAnything && b != kindAnything && (isWide(a, b) || isWide(b, a))
}

// castable reports whether a string may be the other field in text.
func castable(text, other *field) bool {
	return text.kind == "string" && (castKind(other) == "integer" || castKind(other) == "number" || castKind(other) == "boolean" || castKind(other) == listOfStrings)
}

// listOfStrings is the kind of lists that a cast may join.
const listOfStrings = "array of string"

func castKind(f *field) string {
	if elements := elementsOf(f.schema); f.kind == "array" && elements != nil && kindOf(elements) == "string" {
		return listOfStrings
	}
	return f.kind
}

// castKinds are the kinds of the fields that are no strings, if they are no integers.
var castKinds = map[v1alpha1.CastType]string{
	v1alpha1.CastNumber: "number", v1alpha1.CastBoolean: "boolean", v1alpha1.CastList: listOfStrings,
}

// wraps reports whether a list has elements like another field.
func wraps(list, one *field) bool {
	if list.kind != "array" || one.kind == "array" || list.schema.Items == nil || list.schema.Items.Schema == nil {
		return false
	}
	if elements := list.children[conversion.Each]; elements != nil {
		return elements.shape == one.shape
	}
	return kindOf(list.schema.Items.Schema) == one.kind && one.children == nil
}

// indexedBy returns the field of a list's elements that may be the key of a map, empty if there is none: the only
// one that the map's values lack.
func indexedBy(list, keyed *field) (key string) {
	elements, values := list.children[conversion.Each], keyed.children[conversion.Each]
	if list.kind != "array" || keyed.kind != kindMap || elements == nil || values == nil || len(elements.children) != len(values.children)+1 {
		return ""
	}
	for name, child := range elements.children {
		if values.children[name] == nil {
			if key != "" || child.kind != "string" && child.kind != "integer" {
				return ""
			}
			key = name
		}
	}
	return key
}

// decide returns the rules for candidates that are alike enough, and more than any rival.
func (g *guesser) decide(of func(candidate) bool) (found []*hypothesis) {
	for _, f := range g.spokes {
		if len(g.rivals[f]) == 0 || slices.ContainsFunc(found, func(h *hypothesis) bool { return f.within(h.spoke[0]) }) {
			continue
		}
		best := g.rivals[f][0]
		if !of(best) || best.score < enough || !isClear(g.rivals[f], best) || !isClear(g.rivals[best.hub], best) ||
			slices.ContainsFunc(found, func(h *hypothesis) bool { return best.hub.within(h.hub[0]) || h.hub[0].within(best.hub) }) {
			continue
		}
		rule, elements, problem := ruleFor(best.spoke, best.hub, g.renames(best.spoke, best.hub))
		if problem != "" {
			g.undecidedBecause[best.spoke], g.undecidedBecause[best.hub] = problem, problem
			continue
		}
		found = append(found, &hypothesis{
			rule: rule, elements: elements, spoke: []*field{best.spoke}, hub: []*field{best.hub}, score: best.score, why: best.why,
			rivals: namesOfRivals(slices.Concat(g.rivals[f], g.rivals[best.hub]), best),
		})
	}
	return found
}

// maxRivals bounds the rivals that are named.
const maxRivals = 3

func namesOfRivals(all []candidate, best candidate) (names []string) {
	for _, other := range all {
		if (other.spoke != best.spoke || other.hub != best.hub) && len(names) < maxRivals {
			names = append(names, fmt.Sprintf("%s to %s (%.2f)", other.spoke, other.hub, other.score))
		}
	}
	return names
}

// isClear reports whether every other candidate is clearly less alike.
func isClear(all []candidate, best candidate) bool {
	for _, other := range all {
		if (other.spoke != best.spoke || other.hub != best.hub) && other.score > best.score-margin {
			return false
		}
	}
	return true
}

// guessTables translates enums of fields with the same path.
func (g *guesser) guessTables() {
	for _, f := range g.spokes {
		partner := g.pairs.partner[f]
		if partner == nil || f.parent == nil || g.covered(f) || len(f.schema.Enum) == 0 || len(partner.schema.Enum) == 0 {
			continue
		}
		rule, problem := ruleForEnums(f, partner)
		switch {
		case problem != "":
			g.undecidedBecause[f], g.undecidedBecause[partner] = problem, problem
			g.rivals[f] = []candidate{{f, partner, likeness{1, []string{"same path, other values"}}}}
		case rule.Values != nil:
			g.accept([]*hypothesis{{rule: rule, spoke: []*field{f}, hub: []*field{partner}, score: 0.9, why: []string{"same path", "values that differ in notation only"}}})
		}
	}
}
