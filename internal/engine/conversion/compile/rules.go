// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package compile

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
	"github.com/conversion-operator/conversion-operator/internal/engine/conversion"
	"github.com/conversion-operator/conversion-operator/internal/engine/tree"
)

// kind is a kind of rule.
type kind struct {
	// add checks a rule against the schemas, claims its fields, and adds it to the ruleset.
	add func(c *compiler, rule *policyRule, fldPath place)
	// stays reports whether a rule preserves some values of a side because it cannot express them on the other side.
	stays func(c *compiler, rule *policyRule, ofHub bool) bool
}

// kinds are the kinds of rules by their names.
var kinds = map[string]*kind{
	"move":    {(*compiler).addMove, (*compiler).moveNotRoundTrippable},
	"each":    {(*compiler).addEach, (*compiler).eachNotRoundTrippable},
	"format":  {(*compiler).addFormat, always},
	"values":  {(*compiler).addValues, (*compiler).tableNotRoundTrippable},
	"drop":    {(*compiler).addDrop, never},
	"cast":    {(*compiler).addCast, (*compiler).castNotRoundTrippable},
	"scale":   {(*compiler).addScale, (*compiler).scaleNotRoundTrippable},
	"cel":     {(*compiler).addCEL, celNotRoundTrippable},
	"default": {(*compiler).addDefault, never},
}

func always(*compiler, *policyRule, bool) bool { return true }
func never(*compiler, *policyRule, bool) bool  { return false }

// claimsOf returns the claims of a rule on one side.
func (c *compiler) claimsOf(rule *policyRule, ofHub bool) (claims []claim) {
	for _, f := range c.frames {
		own, _ := f.sides(ofHub)
		for _, claim := range own.claims {
			if claim.rule == rule {
				claims = append(claims, claim)
			}
		}
	}
	return claims
}

// schemaOf returns the schema of the field that a rule claims on one side, nil if there is none.
func (c *compiler) schemaOf(rule *policyRule, ofHub bool) *schema.Structural {
	for _, claim := range c.claimsOf(rule, ofHub) {
		own, _ := claim.in.sides(ofHub)
		found, _ := own.resolve(claim.path)
		return found
	}
	return nil
}

// addRules compiles the rules in order. A rule with an error claims nothing.
func (c *compiler) addRules(rules []*policyRule) {
	for _, rule := range rules {
		if c.rule = rule; rule.kind == nil {
			// The API server accepted the rule, so a newer CustomResourceDefinition of ours is installed.
			// Ignoring the rule would convert objects incorrectly.
			c.refuse(rule.fldPath, field.Required(rule.fldPath.path,
				"this version of conversion-operator does not know the rule: upgrade the operator"))
			continue
		}
		rule.add(c, rule, rule.fldPath.Child(rule.Kind()))
	}
}

// find resolves a path to a field.
func (c *compiler) find(ofHub bool, text v1alpha1.Path, fldPath place) (spot, *schema.Structural, bool) {
	path, err := conversion.ParsePath(string(text))
	if err != nil {
		c.invalid(fldPath, text, "%s", err)
		return spot{}, nil, false
	}
	if problem := c.selectorProblem(path); problem != "" {
		c.invalid(fldPath, text, "%s", problem)
		return spot{}, nil, false
	}
	root, _ := c.root().sides(ofHub)
	if _, err := root.resolve(path); err != nil {
		c.invalid(fldPath, text, "version %s: %s", root.version, err)
		return spot{}, nil, false
	}
	at := c.locate(path, ofHub)
	if path[len(path)-1] == conversion.Each && (len(at.path) > 0 || !c.rule.convertsValue()) {
		c.invalid(fldPath, text, "ends with [*]: name the list or map itself or a field of its elements; a rule for elements as a whole needs an each rule for their list or map, and is no each, default or drop")
		return spot{}, nil, false
	}
	own, _ := at.in.sides(ofHub)
	found, err := own.resolve(at.path)
	if err != nil {
		c.invalid(fldPath, text, "is the key of the map that the other version has: it needs no rule")
		return spot{}, nil, false
	}
	return at, found, true
}

// selectorProblem says why the rule cannot select the elements that its path selects, empty if it can.
func (c *compiler) selectorProblem(path conversion.Path) string {
	for i, segment := range path {
		key, value, selects := tree.CutSelector(segment)
		switch {
		case !selects:
		case i == len(path)-1 || !c.rule.convertsValue() || c.rule.derives():
			return fmt.Sprintf("selects one element by %s, which a rule may do that converts a field in it: use an each rule with where", segment)
		case path[i+1] == key:
			return fmt.Sprintf("is %s, as the path says: remove the rule", value)
		}
	}
	return ""
}

// claim resolves a path and claims its field for the current rule.
func (c *compiler) claim(ofHub bool, text v1alpha1.Path, fldPath place) (spot, *schema.Structural, bool) {
	at, found, ok := c.find(ofHub, text, fldPath)
	if !ok {
		return at, nil, false
	}
	own, _ := at.in.sides(ofHub)
	for _, other := range own.claims {
		if at.path.Meets(other.path) {
			c.invalid(fldPath, text, "%s", c.claimedMessage(at.path, other))
			return at, nil, false
		}
	}
	own.claims = append(own.claims, claim{at, ofHub, fldPath, c.rule})
	return at, found, true
}

// claimedMessage says that another rule already claims the field.
func (c *compiler) claimedMessage(path conversion.Path, other claim) string {
	taken := other.shown(other.ofHub)
	switch f := c.frameOf(other.rule); {
	case len(path) > len(other.path) && f != nil && f.ofElements():
		return fmt.Sprintf("names one element of %s, whose elements are paired: write %[1]s[*]", taken)
	case len(path) > len(other.path):
		return fmt.Sprintf("is in %s, which already belongs to %s: give every field to one rule", taken, other.fldPath)
	case len(path) < len(other.path):
		return fmt.Sprintf("has %s in it, which already belongs to %s: give every field to one rule", taken, other.fldPath)
	}
	return fmt.Sprintf("%s already belongs to %s: give every field to one rule", taken, other.fldPath)
}

func (c *compiler) addMove(of *policyRule, fldPath place) {
	rule := of.Move
	p, ok := c.claimBoth(rule.From, rule.To, fldPath)
	if !ok {
		return
	}
	if common := commonScalar(p.spokeSchema, p.hubSchema); common != nil {
		exchange := p.exchange()
		exchange.Common = common
		p.scope.Exchanges = append(p.scope.Exchanges, exchange)
		return
	}
	if differs := difference(p.spokeSchema, p.hubSchema, nil); differs != "" && c.frameOf(c.rule) == nil {
		c.invalid(fldPath.Child("to"), rule.To, "cannot be moved from %s: %s: move the fields that are alike one by one", rule.From, differs)
		return
	}
	if f := c.frameOf(c.rule); f != nil {
		f.addCollection()
		return
	}
	if isText(p.spoke) || isText(p.hub) || p.spokeSchema.Nullable != p.hubSchema.Nullable || len(p.spoke) == 0 || len(p.hub) == 0 {
		// Not every value can be a label or an annotation, and not every one null, as each element may be.
		p.scope.Exchanges = append(p.scope.Exchanges, p.exchange())
		return
	}
	p.scope.Moves = append(p.scope.Moves, conversion.Move{Spoke: p.spoke, Hub: p.hub})
}

// moveNotRoundTrippable: a value may not be a valid label or annotation, or may not have the type
// of the other side.
func (c *compiler) moveNotRoundTrippable(rule *policyRule, ofHub bool) bool {
	ownSchema, otherSchema := c.schemaOf(rule, ofHub), c.schemaOf(rule, !ofHub)
	if ownSchema != nil && otherSchema != nil && isWider(ownSchema, otherSchema) {
		return true
	}
	from, to := c.claimsOf(rule, ofHub), c.claimsOf(rule, !ofHub)
	if len(from) != 1 || len(to) != 1 {
		return false
	}
	own, _ := from[0].in.sides(ofHub)
	switch {
	case len(to[0].path) == 0 || len(from[0].path) == 0:
		return elementMayStay(own, from[0].path)
	case !to[0].isText():
		return false
	}
	s, err := own.resolve(from[0].path)
	return err != nil || s.Nullable || to[0].path.IsLabel() && (!from[0].isText() || !from[0].path.IsLabel())
}

// elementMayStay reports whether an element of one side may have no value that a move makes one of the other side of.
func elementMayStay(own *side, path conversion.Path) bool {
	found, err := own.resolve(path)
	if err != nil || found.Nullable || len(path) == 0 {
		return err != nil || found.Nullable
	}
	around, err := own.resolve(path[:len(path)-1])
	return err != nil || !isAlwaysSet(around, path[len(path)-1])
}

// pairing is one field of the spoke and one of the hub that a rule pairs.
type pairing struct {
	spokeSchema, hubSchema *schema.Structural
	// spoke and hub are the paths within the scope.
	spoke, hub conversion.Path
	scope      *conversion.Scope
}

// claimBoth claims both fields of a rule that has one field on either side.
func (c *compiler) claimBoth(fromText, toText v1alpha1.Path, fldPath place) (p pairing, ok bool) {
	from, fromSchema, fromOK := c.claim(false, fromText, fldPath.Child("from"))
	to, toSchema, toOK := c.claim(true, toText, fldPath.Child("to"))
	if !fromOK || !toOK {
		return p, false
	}
	p.spokeSchema, p.hubSchema = fromSchema, toSchema
	if !c.checkScope(from, to, fldPath.Child("to"), toText) {
		return p, false
	}
	c.rulePaths = append(c.rulePaths, rulePaths{[]spot{from}, []spot{to}})
	scope := commonScope(from, to)
	p.scope, p.spoke, p.hub = c.scopeAt(scope), from.local(scope, false), to.local(scope, true)
	return p, true
}

// exchange returns an exchange between the paired fields, without the kind of its rule.
func (p *pairing) exchange() conversion.Exchange {
	return conversion.Exchange{Spoke: []conversion.Field{{Path: p.spoke}}, Hub: []conversion.Field{{Path: p.hub}}}
}

func (c *compiler) addFormat(of *policyRule, fldPath place) {
	rule := of.Format
	from, fromSchema, ok := c.claim(false, rule.From, fldPath.Child("from"))
	if !ok {
		return
	}
	if fromSchema.Type != "string" {
		c.invalid(fldPath.Child("from"), rule.From, "is of type %s: a format rule parses a string", typeName(fromSchema))
		return
	}
	texts, holes, problem := parseTemplate(rule.Template)
	if problem != "" {
		c.invalid(fldPath.Child("template"), rule.Template, "%s", problem)
		return
	}
	exchange := conversion.Exchange{Format: &conversion.Format{Texts: texts}}
	var to []spot
	for _, name := range holes {
		path, ok := c.addHole(rule, name, from, fldPath.Child("to").Key(name), &exchange)
		if !ok {
			return
		}
		to = append(to, path)
	}
	for _, name := range slices.Sorted(maps.Keys(rule.To)) {
		if !slices.Contains(holes, name) {
			c.invalid(fldPath.Child("to").Key(name), rule.To[name], "the template has no hole {%s}: add it to the template, or remove this field", name)
			return
		}
	}
	scope := commonScope(append(slices.Clip(to), from)...)
	exchange.Spoke = []conversion.Field{{Path: from.local(scope, false)}}
	for _, hole := range to {
		exchange.Hub = append(exchange.Hub, conversion.Field{Path: hole.local(scope, true)})
	}
	within := c.scopeAt(scope)
	within.Exchanges = append(within.Exchanges, exchange)
	c.rulePaths = append(c.rulePaths, rulePaths{[]spot{from}, to})
}

// addHole adds a hole of the template to the exchange, and returns the path of its field.
func (c *compiler) addHole(rule *v1alpha1.FormatRule, name string, from spot, fldPath place, exchange *conversion.Exchange) (spot, bool) {
	text, named := rule.To[name]
	if !named {
		c.refuse(fldPath, field.Required(fldPath.path, "the template has a hole {"+name+"}: name the field that it is in the hub"))
		return spot{}, false
	}
	path, found, ok := c.claim(true, text, fldPath)
	if !ok {
		return spot{}, false
	}
	if found.Type != "string" && found.Type != "integer" || found.XIntOrString {
		c.invalid(fldPath, text, "is of type %s: a hole is a string or an integer", typeName(found))
		return spot{}, false
	}
	exchange.Format.Integer = append(exchange.Format.Integer, found.Type == "integer")
	return path, c.checkScope(from, path, fldPath, text)
}

// parseTemplate splits {host}:{port} into its texts and holes, or returns a problem.
func parseTemplate(template string) (texts, holes []string, problem string) {
	rest := template
	for {
		text, after, found := strings.Cut(rest, "{")
		if strings.Contains(text, "}") {
			return nil, nil, "a } has no {: write a hole as {name}"
		}
		texts = append(texts, text)
		if !found {
			break
		}
		if text == "" && len(holes) > 0 {
			return nil, nil, "is ambiguous: the holes {" + holes[len(holes)-1] + "} and {" + firstHole(after) + "} touch: put text between them"
		}
		name, behind, closed := strings.Cut(after, "}")
		switch {
		case !closed || name == "" || strings.Contains(name, "{"):
			return nil, nil, "a hole is not closed: write it as {name}"
		case slices.Contains(holes, name):
			return nil, nil, "the hole {" + name + "} is there twice: name every hole once"
		}
		holes, rest = append(holes, name), behind
	}
	if len(holes) == 0 {
		return nil, nil, "has no hole: write one as {name}, for example {host}:{port}"
	}
	return texts, holes, ""
}

func firstHole(text string) string {
	name, _, _ := strings.Cut(text, "}")
	return name
}

// checkScope checks that the lists and maps on the paths of a rule are the same on both sides, because their elements
// are paired one by one.
func (c *compiler) checkScope(from, to spot, fldPath place, text v1alpha1.Path) bool {
	if !isInOneScope(from, to) {
		other := from.shown(false).String()
		if other == string(text) {
			other = to.shown(true).String()
		}
		missing := missingMove(from, to)
		if !strings.Contains(missing, "add a move") {
			missing += ": " + asAWhole
		}
		c.invalid(fldPath, text, "must go through the same lists and maps as %s: [*] pairs elements one by one%s", other, missing)
		return false
	}
	return true
}

// missingMove says what is missing for two paths to go through lists and maps that correspond.
func missingMove(from, to spot) string {
	left, right := from.lists(), to.lists()
	for i := range min(len(left), len(right)) {
		if left[i].is(right[i]) {
			continue
		}
		a, b := withoutEach(left[i].shown(false)), withoutEach(right[i].shown(true))
		if len(left[i].path) > 0 && len(right[i].path) > 0 && isInOneScope(left[i].parent(), right[i].parent()) {
			return fmt.Sprintf(": add a move of %s to %s", a, b)
		}
		return fmt.Sprintf(": %s and %s are in different lists or maps", a, b)
	}
	return ""
}

// asAWhole is what to do about elements that a rule cannot pair.
const asAWhole = "write a cel rule for all of the list or map, and what no rule can say needs a converter of your own, spec.converter.image"

// scopeAt returns a scope of the ruleset.
func (c *compiler) scopeAt(scope spot) *conversion.Scope {
	if len(scope.path) > 0 {
		return &c.collectionOf(scope.parent()).Scope
	}
	if scope.in.rule == nil {
		return &c.rules
	}
	return &collectionIn(c.scopeAt(scope.in.around), scope.in.collection).Scope
}

// collectionOf finds or adds the collection of a list or map in a frame.
func (c *compiler) collectionOf(list spot) *conversion.Collection {
	around := list.scope()
	made := conversion.Collection{Spoke: list.local(around, false), Hub: list.local(around, true)}
	for _, of := range []*side{list.in.spoke, list.in.hub} { // one of them may have anything there
		if found, err := of.resolve(list.path); err == nil && valuesOf(found) != nil {
			made.SpokeForm, made.HubForm = conversion.FormMap, conversion.FormMap
		}
	}
	return collectionIn(c.scopeAt(around), made)
}

// collectionIn finds or adds a collection of a scope.
func collectionIn(s *conversion.Scope, made conversion.Collection) *conversion.Collection {
	for i := range s.Collections {
		if slices.Equal(s.Collections[i].Hub, made.Hub) {
			return &s.Collections[i]
		}
	}
	s.Collections = append(s.Collections, made)
	return &s.Collections[len(s.Collections)-1]
}

// sharedKeys returns the fields of the hub that identify elements on both sides. A key that a rule changes cannot identify
// elements, but one that a rule moves to the key of the other side can.
func sharedKeys(elements spot, spoke, hub *schema.Structural) []string {
	if !isListMap(spoke) || !isListMap(hub) || len(spoke.XListMapKeys) != len(hub.XListMapKeys) {
		return nil
	}
	for i, ofHub := range hub.XListMapKeys {
		ofSpoke := spoke.XListMapKeys[i]
		left, right := childOf(spoke.Items, ofSpoke), childOf(hub.Items, ofHub)
		from, to := overlapping(elements.in.spoke.claims, elements.child(ofSpoke).path), overlapping(elements.in.hub.claims, elements.child(ofHub).path)
		isMoved := from != nil && to != nil && from.rule == to.rule && from.rule.Move != nil
		if left == nil || right == nil || typeName(left) != typeName(right) || !isMoved && (from != nil || to != nil || ofSpoke != ofHub) {
			return nil
		}
	}
	return hub.XListMapKeys
}

func isListMap(s *schema.Structural) bool { return s.XListType != nil && *s.XListType == "map" }
