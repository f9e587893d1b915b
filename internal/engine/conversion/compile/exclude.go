// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package compile

import (
	"slices"

	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
	"github.com/conversion-operator/conversion-operator/internal/engine/conversion"
)

// excludedElements are elements of a list, as a claim of the rule that excludes some of them.
type excludedElements struct {
	claim
	ofHub bool
	// field is the complete path of the field that the others have, with one of the values if there are any.
	field  conversion.Path
	values []string
}

// hasField reports whether the elements that are not excluded have a field.
func (c *compiler) hasField(path conversion.Path, ofHub bool) bool {
	return slices.ContainsFunc(c.exclusions, func(e excludedElements) bool {
		return e.ofHub == ofHub && len(path) > len(e.path) && e.field.HasPrefix(path)
	})
}

// withoutExcluded returns the schema of a field in the elements that are not excluded.
func (c *compiler) withoutExcluded(s *schema.Structural, path conversion.Path, ofHub bool) *schema.Structural {
	i := slices.IndexFunc(c.exclusions, func(e excludedElements) bool {
		return e.ofHub == ofHub && len(e.values) > 0 && slices.Equal(e.field, path)
	})
	if i < 0 {
		return s
	}
	limited, validation := *s, validationOf(s)
	validation.Enum = nil
	for _, value := range c.exclusions[i].values {
		validation.Enum = append(validation.Enum, schema.JSON{Object: value})
	}
	limited.ValueValidation = &validation
	return &limited
}

// mayBeExcluded reports whether the field at a path is in an element that may be excluded: by the rule, or
// because it converts to one that the rule excludes.
func (c *compiler) mayBeExcluded(path conversion.Path) bool {
	return slices.ContainsFunc(c.exclusions, func(e excludedElements) bool { return path.HasPrefix(e.path) })
}

func (c *compiler) addExclude(rule *v1alpha1.ExcludeRule, fldPath place) {
	text, ofHub, child, ok := c.oneOf(rule.From, rule.To, fldPath, "set from, for a list of the spoke, or to, for one of the hub")
	if !ok {
		return
	}
	own, other := c.sides(ofHub)
	elements, element, ok := c.elementsToExclude(own, other, text, child)
	if !ok {
		return
	}
	without, field, ok := c.fieldToExcludeBy(own, element, rule.Without, fldPath.Child("without"))
	if !ok {
		return
	}
	if len(rule.Values) > 0 && field.Type != "string" {
		c.invalid(fldPath.Child("values"), rule.Values, "%s is of type %s: values are for a string", rule.Without, typeName(field))
		return
	}
	placedElements := c.placed(elements, ofHub)
	if _, ok := c.scopeOfOne(append(slices.Clip(placedElements), without[0]), other, child, text); !ok {
		return
	}
	list := placedElements[:len(placedElements)-1]
	exclusion := &conversion.Exclusion{Without: without, Values: rule.Values}
	collection := c.collectionOf(c.scopeAt(scopeAround(list)), list)
	taken := &collection.ExcludeSpoke
	if ofHub {
		taken = &collection.ExcludeHub
	}
	if *taken != nil {
		c.invalid(child, text, "has another exclude rule: name all values that version %s can have in one", other.version)
		return
	}
	*taken = exclusion
	c.exclusions = append(c.exclusions, excludedElements{
		claim{placedElements, child, c.rule}, ofHub, append(slices.Clip(placedElements), exclusion.Without...), rule.Values,
	})
}

// elementsToExclude resolves the path of elements of which some are to be excluded.
func (c *compiler) elementsToExclude(own, other side, text v1alpha1.Path, fldPath place) (conversion.Path, *schema.Structural, bool) {
	elements, err := conversion.ParsePath(string(text))
	if err != nil {
		c.invalid(fldPath, text, "%s", err)
		return nil, nil, false
	}
	if elements[len(elements)-1] != conversion.Each || elements[len(elements)-2] == conversion.Each {
		c.invalid(fldPath, text, "name the elements of a list that is a field: its path, and [*]")
		return nil, nil, false
	}
	element, err := resolve(own.own, elements)
	if err != nil {
		c.invalid(fldPath, text, "version %s: %s", own.version, err)
		return nil, nil, false
	}
	list := c.placed(elements, own.isHub)
	list = list[:len(list)-1]
	for _, side := range []side{own, other} {
		held, err := resolve(side.schema, list)
		switch {
		case err != nil:
			c.invalid(fldPath, text, "version %s has no such list: add a move of the list, or of the object around it", side.version)
			return nil, nil, false
		case held.Items == nil:
			c.invalid(fldPath, text, "is no list in version %s", side.version)
			return nil, nil, false
		case held.Items.Type != "object":
			c.invalid(fldPath, text, "has no objects in version %s", side.version)
			return nil, nil, false
		case held.XListType != nil && *held.XListType == "map":
			c.invalid(fldPath, text, "is a list with keys in version %s: server-side apply sends parts of its elements, which may lack any field; without the rule, elements are converted one by one", side.version)
			return nil, nil, false
		}
		if taken := claimOf(*side.claims, list); taken != nil && c.placeBy(taken.rule) == nil {
			c.invalid(fldPath, text, "%s", side.claimedMessage(list, *taken))
			return nil, nil, false
		}
	}
	return elements, element, true
}

// fieldToExcludeBy resolves the path of a field in an element.
func (c *compiler) fieldToExcludeBy(own side, element *schema.Structural, text v1alpha1.Path, fldPath place) (conversion.Path, *schema.Structural, bool) {
	path, err := conversion.ParsePath(string(text))
	if err != nil {
		c.invalid(fldPath, text, "%s", err)
		return nil, nil, false
	}
	if slices.Contains(path, conversion.Each) {
		c.invalid(fldPath, text, "goes through a list or map: name a field of the element")
		return nil, nil, false
	}
	field, err := resolveIn(element, path)
	if err != nil {
		c.invalid(fldPath, text, "version %s: %s", own.version, err)
		return nil, nil, false
	}
	return path, field, true
}
