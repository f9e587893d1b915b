// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package compile

import (
	"encoding/json"
	"errors"
	"maps"
	"math"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
	"github.com/conversion-operator/conversion-operator/internal/engine/conversion"
	"github.com/conversion-operator/conversion-operator/internal/engine/conversion/compile/celcheck"
)

func (c *compiler) addCEL(rule *v1alpha1.CELRule, fldPath place) {
	if len(rule.Forward)+len(rule.Backward) == 0 {
		c.refuse(fldPath, field.Required(fldPath.Child("forward").path, "write the expressions that compute the fields of to, those of from in backward, or both"))
		return
	}
	spoke, spokeOK := c.celSide(false, rule.From, rule.Backward, rule.Forward, fldPath.Child("from"), fldPath.Child("backward"))
	hub, hubOK := c.celSide(true, rule.To, rule.Forward, rule.Backward, fldPath.Child("to"), fldPath.Child("forward"))
	if !spokeOK || !hubOK {
		return
	}
	within := commonScope(slices.Concat(spoke.computed(), hub.computed())...)
	if !c.checkScopes(spoke, hub, within) || !c.checkExpressions(spoke, hub, within, rule.WhenMissing == v1alpha1.CELEvaluate, fldPath) {
		return
	}
	exchange := conversion.Exchange{CEL: &conversion.CEL{WhenMissing: rule.WhenMissing == v1alpha1.CELEvaluate}}
	scope := c.scopeAt(within)
	spoke, exchange.CEL.SpokeAround = takeAround(spoke, within)
	hub, exchange.CEL.HubAround = takeAround(hub, within)
	exchange.Spoke, exchange.CEL.Spoke = spoke.fieldsIn(within)
	exchange.Hub, exchange.CEL.Hub = hub.fieldsIn(within)
	if c.checkWhenMissing(rule, exchange.CEL, spoke, hub, fldPath.Child("whenMissing")) {
		if c.rule.derives() {
			scope.Derived = append(scope.Derived, exchange)
		} else {
			scope.Exchanges = append(scope.Exchanges, exchange)
		}
	}
	if c.rule.derives() {
		c.rulePaths = append(c.rulePaths, rulePaths{spoke.spots, hub.spots})
		return
	}
	c.rulePaths = append(c.rulePaths, rulePaths{spoke.computed(), hub.computed()})
	for i, at := range hub.spots {
		if hub.fields[i].Expression != "" {
			c.mayCollide(at, true, hub.fieldPath(i), hub.texts[i])
		}
	}
}

// checkWhenMissing checks that a rule for missing fields computes something from nothing, and notes
// what that is.
func (c *compiler) checkWhenMissing(rule *v1alpha1.CELRule, cel *conversion.CEL, spoke, hub celSide, fldPath place) bool {
	switch rule.WhenMissing {
	case "", v1alpha1.CELSkip:
		return true
	case v1alpha1.CELEvaluate:
		ofSpoke, ofHub, err := cel.FromNothing()
		if err != nil {
			c.refuse(fldPath, field.InternalError(fldPath.path, err))
			return false
		}
		if len(ofSpoke)+len(ofHub) == 0 {
			c.invalid(fldPath, rule.WhenMissing, "has no effect, because no expression gives a value if all fields are missing: test for the fields with has(), or remove whenMissing")
			return false
		}
		c.rule.spokeFromNothing, c.rule.hubFromNothing = spoke.spotsAt(ofSpoke), hub.spotsAt(ofHub)
		return true
	}
	c.refuse(fldPath, field.NotSupported(fldPath.path, rule.WhenMissing, []v1alpha1.CELWhenMissing{v1alpha1.CELSkip, v1alpha1.CELEvaluate}))
	return false
}

// celSide is one side of a cel rule: its fields, sorted by their names.
type celSide struct {
	ofHub  bool
	fields []celcheck.Field
	shapes []json.RawMessage
	spots  []spot
	texts  []v1alpha1.Path
	// named is the member of the rule that names the fields.
	named place
}

// spotsAt returns the fields with these indexes.
func (s *celSide) spotsAt(indexes []int) (spots []spot) {
	for _, i := range indexes {
		spots = append(spots, s.spots[i])
	}
	return spots
}

// computed returns the fields that have an expression.
func (s *celSide) computed() (spots []spot) {
	for i, f := range s.fields {
		if f.Expression != "" {
			spots = append(spots, s.spots[i])
		}
	}
	return spots
}

func (s *celSide) fieldPath(i int) place { return s.named.Key(s.fields[i].Name) }

// isReadIn reports whether one of the expressions may read a field.
func isReadIn(expressions map[string]v1alpha1.CELExpression, name string) bool {
	for _, text := range expressions {
		if strings.Contains(string(text), name) {
			return true
		}
	}
	return false
}

// celSide claims the fields that have an expression. The rule only reads the others, in the expressions of the other side.
func (c *compiler) celSide(
	ofHub bool, fields map[string]v1alpha1.Path, expressions, others map[string]v1alpha1.CELExpression, named, computed place,
) (s celSide, ok bool) {
	s, ok = celSide{ofHub: ofHub, named: named}, len(fields) > 0
	if !ok {
		c.refuse(named, field.Required(named.path, "name the fields, for example {host: .spec.host}"))
	}
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		if problem := celcheck.Name(name); problem != "" {
			c.invalid(named.Key(name), name, "%s", problem)
			ok = false
			continue
		}
		find := c.claim
		if expressions[name] == "" {
			find = c.find
			if !isReadIn(others, name) {
				c.invalid(named.Key(name), fields[name], "no expression of %s computes it, and none reads it: write one, or remove the name", computed.path)
				ok = false
			}
		}
		at, schema, found := find(ofHub, fields[name], named.Key(name))
		if ok = ok && found; !found {
			continue
		}
		shape, err := celcheck.Shape(schema)
		if err != nil {
			c.refuse(named.Key(name), field.InternalError(named.Key(name).path, err))
			ok = false
		}
		s.fields = append(s.fields, celcheck.Field{Name: name, Schema: schema, Expression: string(expressions[name])})
		s.shapes, s.spots, s.texts = append(s.shapes, shape), append(s.spots, at), append(s.texts, fields[name])
	}
	for _, name := range slices.Sorted(maps.Keys(expressions)) {
		if _, named := fields[name]; !named {
			c.invalid(computed.Key(name), expressions[name], "computes a field that %s does not name: add the field there, or remove this expression", s.named.path)
			ok = false
		}
	}
	return s, ok
}

// checkScopes checks that all fields of the rule are in the same elements, or around them.
func (c *compiler) checkScopes(spoke, hub celSide, within spot) bool {
	firstSpoke, firstHub := slices.IndexFunc(spoke.spots, spoke.isNotAround(within)), slices.IndexFunc(hub.spots, hub.isNotAround(within))
	if firstSpoke < 0 || firstHub < 0 {
		return true // one side has only fields around the others
	}
	for i, at := range spoke.spots {
		if spoke.isNotAround(within)(at) && !c.checkScope(at, hub.spots[firstHub], spoke.fieldPath(i), spoke.texts[i]) {
			return false
		}
	}
	for i, at := range hub.spots {
		if hub.isNotAround(within)(at) && !c.checkScope(spoke.spots[firstSpoke], at, hub.fieldPath(i), hub.texts[i]) {
			return false
		}
	}
	return true
}

// isNotAround reports whether a field is in a scope, or in elements in a scope around it.
func (s *celSide) isNotAround(within spot) func(spot) bool {
	return func(at spot) bool {
		scope := commonScope(at, within)
		return scope.is(within) || slices.Contains(at.local(scope, s.ofHub), conversion.Each)
	}
}

// takeAround returns a side without the fields around a scope, and these.
func takeAround(s celSide, within spot) (own celSide, around []conversion.FieldAround) {
	own.ofHub, own.named = s.ofHub, s.named
	for i, f := range s.fields {
		if s.isNotAround(within)(s.spots[i]) {
			own.fields, own.shapes, own.spots, own.texts = append(own.fields, f), append(own.shapes, s.shapes[i]), append(own.spots, s.spots[i]), append(own.texts, s.texts[i])
			continue
		}
		scope, up := commonScope(s.spots[i], within), 0
		for at := within; !at.is(scope); at = at.beyond() {
			up++
		}
		around = append(around, conversion.FieldAround{CELField: s.field(i), Up: up, Path: s.spots[i].local(scope, s.ofHub)})
	}
	return own, around
}

func (c *compiler) checkExpressions(spoke, hub celSide, within spot, fromNothing bool, fldPath place) (ok bool) {
	smallest := smallestElement(slices.Concat(spoke.spots, hub.spots), within, fromNothing)
	problems := celcheck.Check(spoke.fields, hub.fields, elementsAround(within, maxObjectBytes/smallest))
	ok = true
	for _, problem := range problems {
		direction, side := fldPath.Child("forward"), hub
		if problem.Backward {
			direction, side = fldPath.Child("backward"), spoke
		}
		if cost := (*celcheck.CostError)(nil); errors.As(problem.Err, &cost) {
			c.warn("the expression %s %s", shortRule(direction.Key(problem.Name).String()), cost)
			continue
		}
		i := slices.IndexFunc(side.fields, func(f celcheck.Field) bool { return f.Name == problem.Name })
		c.invalid(direction.Key(problem.Name), side.fields[i].Expression, "%s", problem.Err)
		ok = false
	}
	return ok
}

// maxObjectBytes is the size of the largest object that API servers store, in bytes: what etcd accepts by default.
const maxObjectBytes = 3 << 19

// smallestElement returns the size of the smallest element of a scope for which an expression over these fields is evaluated,
// in bytes: {}, or an object with one of the fields, or the field itself.
func smallestElement(fields []spot, within spot, fromNothing bool) uint64 {
	fromNothing = fromNothing || slices.ContainsFunc(fields, func(field spot) bool { return !field.scope().isIn(within) })
	if fromNothing {
		return uint64(len(`{},`))
	}
	smallest := uint64(math.MaxUint64)
	for _, field := range fields {
		size := len(`0,`)
		if len(field.path) > 0 {
			size = len(`{"":0},`) + len(field.path[len(field.path)-1])
		}
		smallest = min(smallest, uint64(size))
	}
	return smallest
}

// elementsAround returns how many elements of lists and maps match a scope, at most the number that an object can have.
func elementsAround(scope spot, most uint64) uint64 {
	count := uint64(1)
	for _, elements := range scope.lists() {
		collection := elements.in.spoke.value
		if len(elements.path) > 0 {
			collection, _ = elements.in.spoke.resolve(elements.parent().path)
		}
		if collection != nil {
			count = min(count*celcheck.Elements(collection), most)
		}
	}
	return count
}

// fieldsIn returns the fields and expressions of a side in the form of the ruleset.
func (s *celSide) fieldsIn(within spot) (fields []conversion.Field, cel []conversion.CELField) {
	for i, at := range s.spots {
		fields, cel = append(fields, conversion.Field{Path: at.local(within, s.ofHub)}), append(cel, s.field(i))
	}
	return fields, cel
}

// field returns a field of expressions in the form of the ruleset.
func (s *celSide) field(i int) conversion.CELField {
	return conversion.CELField{Name: s.fields[i].Name, Schema: s.shapes[i], Expression: s.fields[i].Expression}
}
