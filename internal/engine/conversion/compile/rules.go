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
)

// addRules compiles the rules in order. A rule with an error claims nothing.
func (c *compiler) addRules(rules []*policyRule) {
	for _, rule := range rules {
		c.rule = rule
		switch fldPath := rule.fldPath; {
		case rule.Move != nil:
			c.addMove(rule.Move, fldPath.Child("move"))
		case rule.Each != nil:
			c.addEach(rule.Each, fldPath.Child("each"))
		case rule.Format != nil:
			c.addFormat(rule.Format, fldPath.Child("format"))
		case rule.Values != nil:
			c.addValues(rule.Values, fldPath.Child("values"))
		case rule.Drop != nil:
			c.addDrop(rule.Drop, fldPath.Child("drop"))
		case rule.Cast != nil:
			c.addCast(rule.Cast, fldPath.Child("cast"))
		case rule.CEL != nil:
			c.addCEL(rule.CEL, fldPath.Child("cel"))
		case rule.Default != nil:
			c.addDefault(rule.Default, fldPath.Child("default"))
		default:
			// The API server accepted the rule, so a newer CustomResourceDefinition of ours is installed.
			// Ignoring the rule would convert objects incorrectly.
			c.refuse(fldPath, field.Required(fldPath.path,
				"this version of conversion-operator does not know the rule: upgrade the operator"))
		}
	}
}

// side is the spoke or the hub.
type side struct {
	version string
	isHub   bool
	// schema has the places, too (placed.go), as all paths do; own is that of the version.
	schema, own *schema.Structural
	places      []placed
	// claims are the fields that rules read and write.
	claims []claim
	// preserved are the fields that are preserved without a rule. Of those in partlyPreserved, only some values are, while all
	// others are copied.
	preserved, partlyPreserved []conversion.Path
}

// sides returns the side that has a field, the hub or the spoke, and the other side.
func (c *compiler) sides(ofHub bool) (own, other *side) {
	if ofHub {
		return c.hub, c.spoke
	}
	return c.spoke, c.hub
}

// find resolves a path to a field.
func (c *compiler) find(of *side, text v1alpha1.Path, fldPath place) (conversion.Path, *schema.Structural, bool) {
	path, err := conversion.ParsePath(string(text))
	if err != nil {
		c.invalid(fldPath, text, "%s", err)
		return nil, nil, false
	}
	if _, err := resolve(of.own, path); err != nil {
		c.invalid(fldPath, text, "version %s: %s", of.version, err)
		return nil, nil, false
	}
	if path = c.placed(path, of.isHub); path[len(path)-1] == conversion.Each && (c.placeOf(path[:len(path)-1]) == nil || !c.rule.convertsValue()) {
		c.invalid(fldPath, text, "ends with [*]: name the list or map itself or a field of its elements; a rule for elements as a whole needs an each rule for their list or map, and is no each, default or drop")
		return nil, nil, false
	}
	found, err := resolve(of.schema, path)
	if err != nil {
		c.invalid(fldPath, text, "is the key of the map that the other version has: it needs no rule")
		return nil, nil, false
	}
	return path, found, true
}

// claim resolves a path and claims its field for the current rule.
func (c *compiler) claim(of *side, text v1alpha1.Path, fldPath place) (conversion.Path, *schema.Structural, bool) {
	path, found, ok := c.find(of, text, fldPath)
	if !ok {
		return nil, nil, false
	}
	for _, other := range of.claims {
		if path.Meets(other.path) {
			c.invalid(fldPath, text, "%s", of.claimedMessage(path, other))
			return nil, nil, false
		}
	}
	of.claims = append(of.claims, claim{path, fldPath, c.rule})
	return path, found, true
}

// claimedMessage says that another rule already claims the field.
func (s *side) claimedMessage(path conversion.Path, other claim) string {
	taken := s.shown(other.path)
	switch {
	case len(path) > len(other.path):
		return fmt.Sprintf("is in %s, which already belongs to %s: give every field to one rule", taken, other.fldPath)
	case len(path) < len(other.path):
		return fmt.Sprintf("has %s in it, which already belongs to %s: give every field to one rule", taken, other.fldPath)
	}
	return fmt.Sprintf("%s already belongs to %s: give every field to one rule", taken, other.fldPath)
}

func (c *compiler) addMove(rule *v1alpha1.MoveRule, fldPath place) {
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
	if differs := difference(p.spokeSchema, p.hubSchema, nil); differs != "" && c.placeBy(c.rule) == nil {
		if problem := c.rule.notPlaced; problem != "" {
			differs += ", and " + problem
		} else {
			differs += ": move the fields that are alike one by one"
		}
		c.invalid(fldPath.Child("to"), rule.To, "cannot be moved from %s: %s", rule.From, differs)
		return
	}
	if c.placeBy(c.rule) != nil {
		c.addCollection(p)
		return
	}
	if isText(p.spoke) || isText(p.hub) || p.spokeSchema.Nullable != p.hubSchema.Nullable || len(p.spoke) == 0 || len(p.hub) == 0 {
		// Not every value can be a label or an annotation, and not every one null, as each element may be.
		p.scope.Exchanges = append(p.scope.Exchanges, p.exchange())
		return
	}
	p.scope.Moves = append(p.scope.Moves, conversion.Move{Spoke: p.spoke, Hub: p.hub})
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
	from, fromSchema, fromOK := c.claim(c.spoke, fromText, fldPath.Child("from"))
	to, toSchema, toOK := c.claim(c.hub, toText, fldPath.Child("to"))
	if !fromOK || !toOK {
		return p, false
	}
	p.spokeSchema, p.hubSchema = fromSchema, toSchema
	if !c.checkScope(from, to, fldPath.Child("to"), toText) {
		return p, false
	}
	c.mayCollide(to, c.spoke, fldPath.Child("to"), toText)
	c.rulePaths = append(c.rulePaths, rulePaths{[]conversion.Path{from}, []conversion.Path{to}})
	scope := commonScope(from, to)
	p.scope, p.spoke, p.hub = c.scopeAt(scope), c.spoke.local(from, scope), c.hub.local(to, scope)
	return p, true
}

// exchange returns an exchange between the paired fields, without the kind of its rule.
func (p *pairing) exchange() conversion.Exchange {
	return conversion.Exchange{Spoke: []conversion.Field{{Path: p.spoke}}, Hub: []conversion.Field{{Path: p.hub}}}
}

func (c *compiler) addFormat(rule *v1alpha1.FormatRule, fldPath place) {
	from, fromSchema, ok := c.claim(c.spoke, rule.From, fldPath.Child("from"))
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
	var to []conversion.Path
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
	exchange.Spoke = []conversion.Field{{Path: c.spoke.local(from, scope)}}
	for _, path := range to {
		exchange.Hub = append(exchange.Hub, conversion.Field{Path: c.hub.local(path, scope)})
	}
	within := c.scopeAt(scope)
	within.Exchanges = append(within.Exchanges, exchange)
	c.rulePaths = append(c.rulePaths, rulePaths{[]conversion.Path{from}, to})
}

// addHole adds a hole of the template to the exchange, and returns the path of its field.
func (c *compiler) addHole(rule *v1alpha1.FormatRule, name string, from conversion.Path, fldPath place, exchange *conversion.Exchange) (conversion.Path, bool) {
	text, named := rule.To[name]
	if !named {
		c.refuse(fldPath, field.Required(fldPath.path, "the template has a hole {"+name+"}: name the field that it is in the hub"))
		return nil, false
	}
	path, found, ok := c.claim(c.hub, text, fldPath)
	if !ok {
		return nil, false
	}
	c.mayCollide(path, c.spoke, fldPath, text)
	if found.Type != "string" && found.Type != "integer" || found.XIntOrString {
		c.invalid(fldPath, text, "is of type %s: a hole is a string or an integer", typeName(found))
		return nil, false
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
func (c *compiler) checkScope(from, to conversion.Path, fldPath place, text v1alpha1.Path) bool {
	if !c.isInOneScope(from, to) {
		other := c.spoke.shown(from).String()
		if other == string(text) {
			other = to.String()
		}
		c.invalid(fldPath, text, "must go through the same lists and maps as %s: [*] pairs elements one by one%s", other, c.missingMove(from, to))
		return false
	}
	common := commonScope(from, to)
	for i, segment := range common {
		if segment != conversion.Each {
			continue
		}
		spoke, _ := resolve(c.spoke.schema, common[:i])
		hub, _ := resolve(c.hub.schema, common[:i])
		if (spoke.Items == nil) != (hub.Items == nil) {
			c.invalid(fldPath, text, "%s is a list in one version and a map in the other", c.hub.shown(common[:i]))
			return false
		}
	}
	return true
}

// missingMove says what is missing for two paths to go through lists and maps that correspond.
func (c *compiler) missingMove(from, to conversion.Path) string {
	left, right := elementsIn(from), elementsIn(to)
	for i := range min(len(left), len(right)) {
		a, b := from[:left[i]], to[:right[i]]
		if slices.Equal(a, b) {
			continue
		}
		if c.isInOneScope(a, b) {
			return fmt.Sprintf(": add a move of %s to %s", c.spoke.shown(a), c.hub.shown(b))
		}
		return fmt.Sprintf(": %s and %s are in different lists or maps", c.spoke.shown(a), c.hub.shown(b))
	}
	return ""
}

// elementsIn returns the positions of [*] in a path.
func elementsIn(path conversion.Path) (positions []int) {
	for i, segment := range path {
		if segment == conversion.Each {
			positions = append(positions, i)
		}
	}
	return positions
}

// collectionOf finds or adds a list or map of a scope, or an object with a place, by its complete path.
func (c *compiler) collectionOf(s *conversion.Scope, full conversion.Path) *conversion.Collection {
	around := scopeAround(full)
	made := conversion.Collection{Spoke: c.spoke.local(full, around), Hub: c.hub.local(full, around)}
	if p := c.placeOf(full); p != nil {
		made.SpokeForm, made.HubForm, made.Key, made.IntegerKey = p.spokeForm, p.hubForm, p.key, p.integerKey
		made.Spoke, made.Hub = withoutEach(made.Spoke), withoutEach(made.Hub)
	}
	for i := range s.Collections {
		if slices.Equal(s.Collections[i].Hub, made.Hub) {
			return &s.Collections[i]
		}
	}
	for _, root := range []*schema.Structural{c.spoke.schema, c.hub.schema} { // one of them may have anything there
		if of, err := resolve(root, full); c.placeOf(full) == nil && err == nil && valuesOf(of) != nil {
			made.SpokeForm, made.HubForm = conversion.FormMap, conversion.FormMap
		}
	}
	s.Collections = append(s.Collections, made)
	return &s.Collections[len(s.Collections)-1]
}

// nameElements sets the keys that identify elements for all lists of a scope, of which within is the path in both versions.
// It includes lists that only a rule goes through, for example in one value of a map.
func (c *compiler) nameElements(scope *conversion.Scope, within [2]conversion.Path) {
	for i := range scope.Collections {
		collection := &scope.Collections[i]
		at := [2]conversion.Path{slices.Concat(within[0], collection.Spoke), slices.Concat(within[1], collection.Hub)}
		spoke, errSpoke := resolve(c.spoke.own, at[0])
		hub, errHub := resolve(c.hub.own, at[1])
		if errSpoke == nil && errHub == nil && collection.SpokeForm == conversion.FormList && collection.HubForm == conversion.FormList {
			collection.Keys = c.sharedKeys(c.placed(append(slices.Clip(at[1]), conversion.Each, ""), true), spoke, hub)
		}
		c.nameElements(&collection.Scope, inside(collection, within))
	}
}

// sharedKeys returns the fields of the hub that identify elements on both sides. A key that a rule changes cannot identify
// elements, but one that a rule moves to the key of the other side can. The path is that of a field in the elements.
func (c *compiler) sharedKeys(inElements conversion.Path, spoke, hub *schema.Structural) []string {
	if !isListMap(spoke) || !isListMap(hub) || len(spoke.XListMapKeys) != len(hub.XListMapKeys) {
		return nil
	}
	at := func(key string) conversion.Path { return append(slices.Clip(inElements[:len(inElements)-1]), key) }
	for i, ofHub := range hub.XListMapKeys {
		ofSpoke := spoke.XListMapKeys[i]
		left, right := childOf(spoke.Items, ofSpoke), childOf(hub.Items, ofHub)
		from, to := overlapping(c.spoke.claims, at(ofSpoke)), overlapping(c.hub.claims, at(ofHub))
		isMoved := from != nil && to != nil && from.rule == to.rule && from.rule.Move != nil
		if left == nil || right == nil || typeName(left) != typeName(right) || !isMoved && (from != nil || to != nil || ofSpoke != ofHub) {
			return nil
		}
	}
	return hub.XListMapKeys
}

func isListMap(s *schema.Structural) bool { return s.XListType != nil && *s.XListType == "map" }
