// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package shape

import (
	"fmt"
	"math"
	"slices"
	"strconv"

	utiljson "k8s.io/apimachinery/pkg/util/json"

	"github.com/conversion-operator/conversion-operator/internal/engine/tree"
)

// Fits returns nil if the API server would accept the value for the field of the
// schema, would prune nothing of it, and would not replace a null in it. Otherwise the error names the
// place and the reason, and does not contain the value.
func (s *Schema) Fits(value *tree.Node) error { return s.fits(value, whole) }

// PartFits is Fits for a fragment of a value, such as server-side apply sends: nothing is required, and all other limits stay.
func (s *Schema) PartFits(value *tree.Node) error { return s.fits(value, part) }

// extent says how much there is of a value.
type extent bool

const (
	whole extent = false
	part  extent = true
)

func (s *Schema) fits(value *tree.Node, of extent) error {
	if s.defaulted {
		a := tree.NewArena()
		defer a.Free()
		value = s.FillDefaults(a, value)
	}
	if m := s.check(value, of); m != nil {
		return m
	}
	return nil
}

// check checks a value with its defaults, and everything in it.
func (s *Schema) check(n *tree.Node, of extent) *MisfitError {
	if s == unchecked {
		return nil
	}
	if m := s.checkType(n); m != nil {
		return m
	}
	if s.Limits != noLimits {
		if m := s.checkLimits(n, of); m != nil {
			return m
		}
	}
	switch n.Kind() {
	case tree.Object:
		for _, m := range n.Members() {
			field := s.Field(m.Name)
			if field == nil {
				return misfit("is not in the schema").inMember(m.Name)
			}
			if misfit := field.check(m.Value, of); misfit != nil {
				return misfit.inMember(m.Name)
			}
		}
	case tree.List:
		items := s.Items()
		for i, element := range n.Elems() {
			if m := items.check(element, of); m != nil {
				return m.inElement(i)
			}
		}
	}
	return nil
}

// jsonKinds are the kinds of values that are no numbers.
var jsonKinds = map[tree.Kind]Kind{tree.String: StringKind, tree.Bool: BooleanKind, tree.Object: ObjectKind, tree.List: ArrayKind, tree.Number: NumberKind}

// checkType compares the type of a value with the schema. A null fits where the API server neither prunes it nor replaces it
// by the default.
func (s *Schema) checkType(n *tree.Node) *MisfitError {
	switch {
	case n.Is(tree.Null):
		if s.effect.nullable {
			return nil
		}
		return misfit("must be " + kindNames[s.Kind] + ", not null")
	case n.Is(tree.Number) && isTooLarge(n.JSON()):
		return misfit("is a number that is too large")
	case s.isOfType(n):
		return nil
	case n.Is(tree.Number) && (s.Kind == IntegerKind || s.Kind == IntOrStringKind):
		return misfit("is not of the type or format")
	}
	return misfit("must be " + kindNames[s.Kind] + ", not " + kindNames[jsonKinds[n.Kind()]])
}

// isOfType reports whether a value that is not null has the type of the schema.
func (s *Schema) isOfType(n *tree.Node) bool {
	of := jsonKinds[n.Kind()]
	switch s.Kind {
	case AnyKind:
		return true
	case IntOrStringKind:
		return of == StringKind || of == NumberKind && isInteger(n.JSON())
	case IntegerKind:
		return of == NumberKind && isInteger(n.JSON())
	}
	return s.Kind == of
}

// maxShort is the length of the longest number that certainly is an integer of 64 bits if it has the form of one.
const maxShort = 18

func isShortInteger(number []byte) bool {
	return len(number) <= maxShort && !slices.ContainsFunc(number, func(c byte) bool { return c == '.' || c == 'e' || c == 'E' })
}

func isTooLarge(number []byte) bool {
	if isShortInteger(number) {
		return false
	}
	_, err := strconv.ParseFloat(string(number), 64)
	return err != nil
}

// isInteger reports whether the API server takes a number for an integer.
func isInteger(number []byte) bool {
	if isShortInteger(number) {
		return true
	}
	value, err := decoded(number)
	float, isFloat := value.(float64)
	const maxInteger = 1<<53 - 1 // the largest integer that every reader of JSON keeps
	return err == nil && (!isFloat || float == math.Trunc(float) && math.Abs(float) <= maxInteger)
}

// checkLimits checks the limits of a value. Those of its content follow.
func (s *Schema) checkLimits(n *tree.Node, of extent) *MisfitError {
	for _, check := range [...]func(*Schema, *tree.Node, extent) *MisfitError{
		(*Schema).checkAlone, (*Schema).checkMembers, (*Schema).checkElements, (*Schema).checkJunctors, (*Schema).checkEnvelope,
	} {
		if m := check(s, n, of); m != nil || n.Is(tree.Null) {
			return m // of a null, the API server looks at the enum only
		}
	}
	return nil
}

func (s *Schema) checkMembers(n *tree.Node, of extent) *MisfitError {
	if !n.Is(tree.Object) {
		return nil
	}
	for _, name := range s.Required {
		if of == whole && n.Get(name) == nil {
			return misfit("is required").inMember(name)
		}
	}
	return checkCount(n, of, s.MinMembers, s.MaxMembers, "members")
}

func checkCount(n *tree.Node, of extent, least, most *int64, what string) *MisfitError {
	switch count := int64(n.Len()); {
	case of == whole && least != nil && count < *least:
		return misfit("has too few " + what)
	case most != nil && count > *most:
		return misfit("has too many " + what)
	}
	return nil
}

// checkElements refuses a set with a duplicate element, and a list map with duplicate keys.
func (s *Schema) checkElements(n *tree.Node, of extent) *MisfitError {
	if !n.Is(tree.List) {
		return nil
	}
	if m := checkCount(n, of, s.MinItems, s.MaxItems, "elements"); m != nil || s.ListType == "" {
		return m
	}
	seen := make(map[string]struct{}, n.Len())
	for i, element := range n.Elems() {
		key, reason := comparisonKey(element), "is in the set twice"
		if s.ListType == "map" {
			if !element.Is(tree.Object) && !element.Is(tree.Null) {
				return misfit("must be an object").inElement(i)
			}
			key, reason = "", "has the keys of another element"
			for _, name := range s.ListKeys {
				key += comparisonKey(element.Get(name)) + ","
			}
		}
		if _, found := seen[key]; found {
			return misfit(reason).inElement(i)
		}
		seen[key] = struct{}{}
	}
	return nil
}

// comparisonKey returns a text that is the same for equal values, empty for a key that is missing.
func comparisonKey(n *tree.Node) string {
	if n == nil {
		return ""
	}
	value, _ := valueOf(n)
	text, _ := utiljson.Marshal(value)
	return fmt.Sprintf("%T %s", value, text) // 1 is not 1.0
}

// checkJunctors checks allOf, anyOf, oneOf and not: of a part allOf only, because the others may require something.
func (s *Schema) checkJunctors(n *tree.Node, of extent) *MisfitError {
	for _, each := range s.AllOf {
		if m := each.check(n, of); m != nil {
			return m
		}
	}
	if of == part {
		return nil
	}
	fits := func(other *Schema) bool { return other.check(n, whole) == nil }
	if len(s.AnyOf) > 0 && !slices.ContainsFunc(s.AnyOf, fits) {
		return misfit("fits none of anyOf")
	}
	if len(s.OneOf) > 0 {
		fitting := 0
		for _, each := range s.OneOf {
			if fits(each) {
				fitting++
			}
		}
		if fitting != 1 {
			return misfit("does not fit exactly one of oneOf")
		}
	}
	if s.Not != nil && fits(s.Not) {
		return misfit("fits what it must not")
	}
	return nil
}
