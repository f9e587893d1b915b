// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package draft

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
)

// proposer makes hypotheses from observations.
type proposer struct {
	*guesser
	evidence *evidence
	made     map[string]*hypothesis
}

// rename finds the objects, lists and maps that have another name, by the values in them.
func (p *proposer) rename(refused map[string]bool) {
	for {
		votes := map[[2]*field]int{}
		vote := func(spoke, hub *field, n int) {
			steps, found := p.correspond(spoke, hub)
			for _, step := range steps {
				if found {
					votes[step] += n
				}
			}
		}
		for r, n := range p.evidence.relations {
			spoke, hub := r.spoke.parent, r.hub.parent
			if r.spoke.name() != r.hub.name() { // they get a rule, which does not need one for the objects around them
				spoke, hub = r.spoke.scope, r.hub.scope
			}
			if p.pairs.partner[spoke] != hub {
				vote(spoke, hub, n)
			}
		}
		best := p.mostVotes(votes, refused)
		if len(best) == 0 {
			return
		}
		for _, both := range best {
			p.pairs.renamed[both[0]] = both[1]
		}
		p.pair(p.pairs.renamed)
		maps.DeleteFunc(p.pairs.renamed, func(spoke, hub *field) bool {
			return spoke.name() == hub.name() && p.pairs.partner[spoke.parent] == hub.parent // it moves with the object around it
		})
	}
}

// correspond returns the fields that must have another name, or be in another object, for two fields to
// correspond, outer ones first.
func (p *proposer) correspond(spoke, hub *field) (steps [][2]*field, found bool) {
	switch {
	case p.pairs.partner[spoke] == hub:
		return nil, true
	case spoke.parent == nil || hub.parent == nil || spoke.isElement() != hub.isElement():
		return nil, false
	case spoke.isElement():
		return p.correspond(spoke.parent, hub.parent)
	}
	steps, found = p.correspondAround(spoke.parent, hub.parent)
	return p.alsoNamed(spoke, hub, steps, found || p.pairs.mayBeElsewhere(spoke, hub))
}

// correspondAround is correspond for the objects around two fields: these only have other names, unless they are
// elements. Otherwise, each object inside would move with them.
func (p *proposer) correspondAround(spoke, hub *field) (steps [][2]*field, found bool) {
	if p.pairs.partner[spoke] == hub || spoke.parent == nil || hub.parent == nil || spoke.isElement() || hub.isElement() {
		return p.correspond(spoke, hub)
	}
	steps, found = p.correspondAround(spoke.parent, hub.parent)
	return p.alsoNamed(spoke, hub, steps, found)
}

func (p *proposer) alsoNamed(spoke, hub *field, steps [][2]*field, may bool) (all [][2]*field, found bool) {
	if !may || p.pairs.partner[spoke] != nil || p.pairs.partner[hub] != nil || !alike(spoke, hub) {
		return nil, false
	}
	return append(steps, [2]*field{spoke, hub}), true
}

// mostVotes returns the pairs that no other pair with one of their fields has as many votes as. An object
// needs more than one vote: a single value may also move to another object.
func (p *proposer) mostVotes(votes map[[2]*field]int, refused map[string]bool) (best [][2]*field) {
	most := map[*field]int{}
	count := map[*field]map[int]int{}
	for both, n := range votes {
		for _, f := range both {
			most[f] = max(most[f], n)
			if count[f] == nil {
				count[f] = map[int]int{}
			}
			count[f][n]++
		}
	}
	for both, n := range votes {
		if outer, _ := p.correspondAround(both[0].parent, both[1].parent); len(outer) > 0 || refused[both[0].String()+" "+both[1].String()] {
			continue // the outer one comes first
		}
		isMost := func(f *field) bool { return n == most[f] && count[f][n] == 1 }
		if isMost(both[0]) && isMost(both[1]) && (n > 1 || both[0].kind != "object") {
			best = append(best, both)
		}
	}
	slices.SortFunc(best, func(a, b [2]*field) int { return strings.Compare(a[0].String(), b[0].String()) })
	return best
}

// propose returns all hypotheses, the most likely first.
func (p *proposer) propose(observations []*observation, suspects map[*field]bool) []*hypothesis {
	p.made = map[string]*hypothesis{}
	for spoke, hub := range p.pairs.renamed {
		p.add(&hypothesis{rule: moveOf(spoke, hub), spoke: []*field{spoke}, hub: []*field{hub}, score: 3})
	}
	for r, n := range p.evidence.relations {
		p.proposeRelation(r, n)
	}
	p.proposeFormats()
	p.proposeTables(observations, suspects)
	for _, h := range p.accepted {
		if h.rule.Move != nil && p.pairs.partner[h.spoke[0]] == h.hub[0] {
			continue // the names around it make it the same field
		}
		h.seen, h.refuted, h.unsure = 0, "", false
		p.add(h)
	}
	return slices.SortedFunc(maps.Values(p.made), func(a, b *hypothesis) int {
		return cmp.Or(cmp.Compare(b.score, a.score), cmp.Compare(b.seen, a.seen), strings.Compare(a.key(), b.key()))
	})
}

func (p *proposer) add(h *hypothesis) {
	if known := p.made[h.key()]; known != nil {
		known.seen, known.score = known.seen+h.seen, max(known.score, h.score)
		known.why = append(known.why, h.why...)
		return
	}
	p.made[h.key()] = h
}

// proposeRelation proposes a rule for two fields with the same values. The more fields around them have
// the same name, the larger the values that may move as a whole.
func (p *proposer) proposeRelation(r relation, n int) {
	if r.as == "" && p.pairs.partner[r.spoke] != r.hub {
		p.proposeAround(r.spoke, r.hub, n)
	}
	if !p.pairs.sameScope(r.spoke, r.hub) || p.pairs.partner[r.spoke] == r.hub && r.as == "" || r.spoke.isElement() || r.hub.isElement() {
		return
	}
	h := &hypothesis{spoke: []*field{r.spoke}, hub: []*field{r.hub}, seen: n, score: 1}
	kind, detail, _ := strings.Cut(r.as, "/")
	switch kind {
	case "":
		if r.spoke.shape != r.hub.shape && !isWideScalar(r.spoke.kind, r.hub.kind) {
			return
		}
		h.rule = moveOf(r.spoke, r.hub)
		if p.pairs.partner[r.spoke] != nil || p.pairs.partner[r.hub] != nil {
			h.score = 0.5 // each of them has a field with the same path, which is more likely
		}
	case asWrap:
		if !wraps(r.spoke, r.hub) && !wraps(r.hub, r.spoke) || separatorIn(r.spoke)+separatorIn(r.hub) != "" {
			return // a list of one element in text says the same
		}
		h.rule = eachOf(r.spoke, r.hub, "")
	case asIndex:
		key := indexedBy(r.spoke, r.hub) + indexedBy(r.hub, r.spoke) // a field is the list, and the other one the map
		if key == "" {
			return
		}
		h.rule = eachOf(r.spoke, r.hub, key)
	case asField:
		h.rule, h.elements = eachOf(r.spoke, r.hub, ""), valuesIn(r.spoke, r.hub, detail)
	case asEntry:
		key, value, _ := strings.Cut(detail, "/")
		h.rule, h.elements = eachOf(r.spoke, r.hub, key), valuesIn(r.spoke, r.hub, value)
	case string(v1alpha1.CastList):
		h.rule = v1alpha1.Rule{Cast: &v1alpha1.CastRule{From: pathOf(r.spoke), To: pathOf(r.hub), As: v1alpha1.CastList, Separator: detail}}
		h.score = 1.1 // a list with one element says the same as an each rule, one with several does not
	default:
		h.rule = v1alpha1.Rule{Cast: &v1alpha1.CastRule{From: pathOf(r.spoke), To: pathOf(r.hub), As: v1alpha1.CastType(kind), Unit: detail}}
		// The simpler of two casts that say the same comes first.
		h.score -= 0.01 * float64(slices.Index([]string{"Boolean", "Integer", "Number", "Timestamp", "Seconds", "Milliseconds", "Quantity", "JSON", "YAML"}, kind))
	}
	p.add(h)
}

func (p *proposer) proposeAround(spoke, hub *field, n int) {
	for spoke.name() == hub.name() {
		spoke, hub = spoke.parent, hub.parent
		if spoke.parent == nil || hub.parent == nil || spoke.shape != hub.shape {
			return
		}
		if !spoke.isElement() && !hub.isElement() && p.pairs.partner[spoke] != hub && p.pairs.sameScope(spoke, hub) &&
			!spoke.path.HasPrefix(hub.path) && !hub.path.HasPrefix(spoke.path) {
			p.add(&hypothesis{rule: moveOf(spoke, hub), spoke: []*field{spoke}, hub: []*field{hub}, seen: n, score: 2})
		}
	}
}

// maxFormats bounds the templates for one field.
const maxFormats = 8

// proposeFormats proposes the templates that were seen more than once, for each field those that were seen most.
func (p *proposer) proposeFormats() {
	paths := map[string]*field{}
	for _, f := range p.hubs {
		paths[f.String()] = f
	}
	byField := map[*field][]template{}
	for t, n := range p.evidence.templates {
		if n > 1 {
			byField[t.spoke] = append(byField[t.spoke], t)
		}
	}
	for _, all := range byField {
		slices.SortFunc(all, func(a, b template) int {
			return cmp.Or(cmp.Compare(strings.Count(b.parts, " "), strings.Count(a.parts, " ")),
				cmp.Compare(p.evidence.templates[b], p.evidence.templates[a]), strings.Compare(a.text+a.parts, b.text+b.parts))
		})
		for _, t := range all[:min(len(all), maxFormats)] {
			p.proposeFormat(t, p.evidence.templates[t], paths)
		}
	}
}

func (p *proposer) proposeFormat(t template, n int, byPath map[string]*field) {
	rule := &v1alpha1.FormatRule{From: pathOf(t.spoke), Template: t.text, To: map[string]v1alpha1.Path{}}
	h := &hypothesis{spoke: []*field{t.spoke}, seen: n, score: 1}
	for path := range strings.SplitSeq(t.parts, " ") {
		f := byPath[path]
		if f == nil || rule.To[f.name()] != "" || !p.pairs.sameScope(t.spoke, f) {
			return
		}
		rule.To[f.name()], h.hub = pathOf(f), append(h.hub, f)
	}
	// More fields explain more of the string.
	h.score += 0.1 * float64(len(h.hub))
	if len(h.hub) == 1 {
		h.score = 0.7 // a cast or a table that says the same is simpler
	}
	h.rule = v1alpha1.Rule{Format: rule}
	p.add(h)
}

// proposeTables proposes tables for fields of which one changes with the other, for those with the same path
// whose values are not copied, and for those that the schemas take for alike.
func (p *proposer) proposeTables(observations []*observation, suspects map[*field]bool) {
	wanted := map[[2]*field]bool{}
	want := func(spoke, hub *field) {
		if spoke.isScalar() && hub.isScalar() && spoke.kind != "number" && hub.kind != "number" && p.pairs.sameScope(spoke, hub) {
			wanted[[2]*field{spoke, hub}] = true
		}
	}
	for _, f := range p.spokes {
		if partner := p.pairs.partner[f]; partner != nil && (suspects[f] || suspects[partner]) {
			want(f, partner)
		}
		for _, c := range p.rivals[f] {
			want(c.spoke, c.hub)
		}
		for other := range p.evidence.causes[f] {
			want(f, other)
		}
	}
	for _, f := range p.hubs {
		for other := range p.evidence.causes[f] {
			want(other, f)
		}
	}
	tables := map[[2]*field]*table{}
	for both := range wanted {
		tables[both] = &table{forward: map[string]map[string]int{}, backward: map[string]map[string]int{}}
	}
	for _, o := range observations {
		fillTables(tables, o)
	}
	for both, t := range tables {
		rows := t.rows(both[0].kind == both[1].kind)
		if len(rows) > 0 && len(rows) <= maxTable && (isListed(both[0]) || isListed(both[1]) || t.repeats(rows)) {
			rule := ruleForTable(both[0], both[1], rows)
			p.add(&hypothesis{rule: rule, spoke: both[:1], hub: both[1:], seen: len(t.forward) + len(t.backward), score: 0.9})
		}
	}
}

// ruleForTable returns a table, or the cast that says the same.
func ruleForTable(spoke, hub *field, rows []v1alpha1.ValuePair) v1alpha1.Rule {
	same := []v1alpha1.ValuePair{{From: "false", To: "false"}, {From: "true", To: "true"}}
	isText := spoke.kind == "boolean" && hub.kind == "string" || spoke.kind == "string" && hub.kind == "boolean"
	if isText && len(spoke.schema.Enum)+len(hub.schema.Enum) == 0 && slices.Equal(rows, same) {
		return v1alpha1.Rule{Cast: &v1alpha1.CastRule{From: pathOf(spoke), To: pathOf(hub), As: v1alpha1.CastBoolean}}
	}
	return v1alpha1.Rule{Values: &v1alpha1.ValuesRule{From: pathOf(spoke), To: pathOf(hub), Table: rows}}
}

// table is what two fields have at the same time.
type table struct {
	forward, backward map[string]map[string]int
	// ofPairs is set if values were read and not converted: only one direction need be unique then.
	ofPairs bool
}

// repeats reports whether each row was seen in several pairs.
func (t *table) repeats(rows []v1alpha1.ValuePair) bool {
	seen := map[v1alpha1.ValuePair]int{}
	for from, all := range t.forward {
		for to, n := range all {
			seen[v1alpha1.ValuePair{From: plain(from), To: plain(to)}] += n
		}
	}
	return t.ofPairs && !slices.ContainsFunc(rows, func(row v1alpha1.ValuePair) bool { return seen[row] < enoughPairs })
}

// enoughPairs is how many pairs show that a value, which no schema lists, always becomes the same other one.
const enoughPairs = 3

// isListed reports whether a schema lists the values of a field. A table of others may only repeat by chance what
// was observed.
func isListed(f *field) bool { return len(f.schema.Enum) > 0 || f.kind == "boolean" }

func fillTables(tables map[[2]*field]*table, o *observation) {
	spoke, hub := o.spokeAndHub()
	spokeSpots, hubSpots := spoke.byField(), hub.byField()
	for both, t := range tables {
		for _, from := range spokeSpots[both[0]] {
			for _, to := range hubSpots[both[1]] {
				if from.index == to.index {
					t.note(spoke[from], hub[to], o)
				}
			}
		}
	}
}

func (t *table) note(spoke, hub string, o *observation) {
	way, from, to := t.forward, spoke, hub
	if !o.toHub {
		way, from, to = t.backward, hub, spoke
	}
	t.ofPairs = t.ofPairs || o.isPair()
	if way[from] == nil {
		way[from] = map[string]int{}
	}
	if len(way) <= maxTable && len(way[from]) <= maxTable {
		way[from][to]++
	}
}

// unique returns the one counterpart of each value. Of several, the equal one is taken if any is allowed.
func unique(way map[string]map[string]int, several bool) (one map[string]string, isUnique, found bool) {
	one, isUnique = map[string]string{}, true
	for from, all := range way {
		if len(all) > 1 {
			isUnique = false
			if !several || all[from] == 0 {
				return nil, false, false
			}
			one[from] = from
			continue
		}
		for to := range all {
			one[from] = to
		}
	}
	return one, isUnique, true
}

// rows returns the table of a rule, nil if there is none: first what each value of the hub becomes, then
// the values of the spoke that do not come back.
func (t *table) rows(sameType bool) (rows []v1alpha1.ValuePair) {
	forward, uniqueForward, found := unique(t.forward, t.ofPairs)
	backward, uniqueBackward, foundBack := unique(t.backward, t.ofPairs)
	if !found || !foundBack || !uniqueForward && !uniqueBackward || len(forward) < 2 && len(backward) < 2 {
		return nil
	}
	add := func(from, to string) {
		row := v1alpha1.ValuePair{From: plain(from), To: plain(to)}
		if !slices.Contains(rows, row) && from != "null" && to != "null" {
			rows = append(rows, row)
		}
	}
	for _, hub := range slices.Sorted(maps.Keys(backward)) {
		add(backward[hub], hub)
	}
	for _, spoke := range slices.Sorted(maps.Keys(forward)) {
		add(spoke, forward[spoke])
	}
	if !sameType {
		return rows
	}
	// Equal values are copied without a row, unless another row has one of them.
	changes := slices.ContainsFunc(rows, func(row v1alpha1.ValuePair) bool { return row.From != row.To })
	rows = slices.DeleteFunc(rows, func(row v1alpha1.ValuePair) bool {
		return row.From == row.To && (!changes || !slices.ContainsFunc(rows, func(other v1alpha1.ValuePair) bool {
			return other != row && (other.To == row.To || other.From == row.From)
		}))
	})
	return rows
}
