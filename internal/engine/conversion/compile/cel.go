// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package compile

import (
	"errors"
	"maps"
	"slices"
	"strings"

	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel/model"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/cel/common"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
	"github.com/conversion-operator/conversion-operator/internal/engine/conversion"
	"github.com/conversion-operator/conversion-operator/internal/engine/conversion/compile/celcheck"
)

func (c *compiler) addCEL(of *policyRule, fldPath place) {
	rule := of.CEL
	spoke, spokeOK := c.celSide(false, rule.From, rule.Backward, rule.Forward, fldPath.Child("from"), fldPath.Child("backward"))
	hub, hubOK := c.celSide(true, rule.To, rule.Forward, rule.Backward, fldPath.Child("to"), fldPath.Child("forward"))
	if !spokeOK || !hubOK {
		return
	}
	within := commonScope(spots(computedOf(slices.Concat(spoke, hub)))...)
	if !c.checkScopes(spoke, hub, within) {
		return
	}
	forward, backward := c.checkExpressions(spoke, hub, within, fldPath.Child("forward")), c.checkExpressions(hub, spoke, within, fldPath.Child("backward"))
	if !forward || !backward {
		return
	}
	exchange := conversion.Exchange{CEL: &conversion.CEL{WhenMissing: rule.WhenMissing == v1alpha1.CELEvaluate}}
	scope := c.scopeAt(within)
	ofSpoke, ofHub := typesOf(spoke, within), typesOf(hub, within)
	spoke, exchange.CEL.SpokeAround = takeAround(spoke, within)
	hub, exchange.CEL.HubAround = takeAround(hub, within)
	exchange.Spoke, exchange.CEL.Spoke = fieldsIn(spoke, within)
	exchange.Hub, exchange.CEL.Hub = fieldsIn(hub, within)
	if !c.checkWhenMissing(rule.WhenMissing, exchange.CEL, ofSpoke, ofHub, fldPath.Child("whenMissing")) {
		return
	}
	if c.rule.derives() {
		scope.Derived = append(scope.Derived, exchange)
		c.rulePaths = append(c.rulePaths, rulePaths{spots(spoke), spots(hub)})
		return
	}
	scope.Exchanges = append(scope.Exchanges, exchange)
	c.rulePaths = append(c.rulePaths, rulePaths{spots(computedOf(spoke)), spots(computedOf(hub))})
}

// checkWhenMissing checks that a rule for missing fields computes something from nothing.
func (c *compiler) checkWhenMissing(action v1alpha1.CELWhenMissing, cel *conversion.CEL, ofSpoke, ofHub []common.Schema, fldPath place) bool {
	switch action {
	case "", v1alpha1.CELSkip:
		return true
	case v1alpha1.CELEvaluate:
		spoke, hub, err := cel.FromNothing(ofSpoke, ofHub)
		if err != nil {
			c.refuse(fldPath, field.InternalError(fldPath.path, err))
			return false
		}
		if len(spoke)+len(hub) == 0 {
			c.invalid(fldPath, action, "has no effect, because no expression gives a value if all fields are missing: test for the fields with has(), or remove whenMissing")
			return false
		}
		return true
	}
	c.refuse(fldPath, field.NotSupported(fldPath.path, action, []v1alpha1.CELWhenMissing{v1alpha1.CELSkip, v1alpha1.CELEvaluate}))
	return false
}

// celField is a field of a cel rule. Those of one side are sorted by their names.
type celField struct {
	claim
	conversion.CELField
	schema *schema.Structural
	text   v1alpha1.Path
}

// computedOf returns the fields that have an expression.
func computedOf(fields []celField) []celField {
	return slices.DeleteFunc(slices.Clone(fields), func(f celField) bool { return f.Expression == "" })
}

func spots(fields []celField) (all []spot) {
	for _, f := range fields {
		all = append(all, f.spot)
	}
	return all
}

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
) (all []celField, ok bool) {
	if ok = len(fields) > 0; !ok {
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
		at, of, found := find(ofHub, fields[name], named.Key(name))
		if ok = ok && found; !found {
			continue
		}
		made := conversion.CELField{Name: name, Expression: string(expressions[name])}
		all = append(all, celField{claim{at, ofHub, named.Key(name), c.rule}, made, of, fields[name]})
	}
	for _, name := range slices.Sorted(maps.Keys(expressions)) {
		if _, found := fields[name]; !found {
			c.invalid(computed.Key(name), expressions[name], "computes a field that %s does not name: add the field there, or remove this expression", named.path)
			ok = false
		}
	}
	return all, ok
}

// checkScopes checks that all fields of the rule are in the same elements, or around them.
func (c *compiler) checkScopes(spoke, hub []celField, within spot) bool {
	isHere := func(f celField) bool { return !f.isAround(within) }
	firstSpoke, firstHub := slices.IndexFunc(spoke, isHere), slices.IndexFunc(hub, isHere)
	if firstSpoke < 0 || firstHub < 0 {
		return true // one side has only fields around the others
	}
	for _, f := range slices.Concat(spoke, hub) {
		from, to := f.spot, hub[firstHub].spot
		if f.ofHub {
			from, to = spoke[firstSpoke].spot, f.spot
		}
		if isHere(f) && !c.checkScope(from, to, f.fldPath, f.text) {
			return false
		}
	}
	return true
}

// isAround reports whether a field is in a scope around another one, and in no elements there.
func (f celField) isAround(within spot) bool {
	scope := commonScope(f.spot, within)
	return !scope.is(within) && !slices.Contains(f.local(scope, f.ofHub), conversion.Each)
}

// takeAround returns the fields without those around a scope, and these.
func takeAround(fields []celField, within spot) (here []celField, around []conversion.FieldAround) {
	for _, f := range fields {
		if !f.isAround(within) {
			here = append(here, f)
			continue
		}
		scope, up := commonScope(f.spot, within), 0
		for at := within; !at.is(scope); at = at.beyond() {
			up++
		}
		around = append(around, conversion.FieldAround{CELField: f.CELField, Up: up, Path: f.local(scope, f.ofHub)})
	}
	return here, around
}

// typesOf returns the schemas of fields: first of those in a scope, and then of those around it.
func typesOf(fields []celField, within spot) (types []common.Schema) {
	for _, around := range []bool{false, true} {
		for _, f := range fields {
			if f.isAround(within) == around {
				types = append(types, &model.Structural{Structural: f.schema})
			}
		}
	}
	return types
}

// checkExpressions checks the expressions of the fields of one side, which read those of the other one.
func (c *compiler) checkExpressions(from, to []celField, within spot, fldPath place) (ok bool) {
	checked := func(fields []celField) (all []celcheck.Field) {
		for _, f := range fields {
			all = append(all, celcheck.Field{Name: f.Name, Schema: f.schema, Expression: f.Expression})
		}
		return all
	}
	ok = true
	for _, problem := range celcheck.Check(checked(from), checked(to), elementsAround(within)) {
		at := fldPath.Key(problem.Name)
		if cost := (*celcheck.CostError)(nil); errors.As(problem.Err, &cost) {
			c.warn("the expression %s %s", shortRule(at.String()), cost)
			continue
		}
		i := slices.IndexFunc(to, func(f celField) bool { return f.Name == problem.Name })
		c.invalid(at, to[i].Expression, "%s", problem.Err)
		ok = false
	}
	return ok
}

// mostElements is how many elements of 10 bytes are in the largest object that etcd accepts by default, of 1.5 MiB.
const mostElements = 3 << 19 / 10

// elementsAround returns how many elements of lists and maps match a scope, at most the number that an object can have.
func elementsAround(scope spot) uint64 {
	count := uint64(1)
	for _, elements := range scope.lists() {
		if collection, _ := elements.collection(); collection != nil {
			count = min(count*celcheck.Elements(collection), mostElements)
		}
	}
	return count
}

// fieldsIn returns the fields and expressions of a side in the form of the ruleset.
func fieldsIn(side []celField, within spot) (fields []conversion.Field, cel []conversion.CELField) {
	for _, f := range side {
		fields, cel = append(fields, conversion.Field{Path: f.local(within, f.ofHub)}), append(cel, f.CELField)
	}
	return fields, cel
}

// celNotRoundTrippable: nothing is known of expressions, except that what is derived is not preserved.
func celNotRoundTrippable(_ *compiler, rule *policyRule, _ bool) bool { return !rule.derives() }
