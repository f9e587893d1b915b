// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package compile

import (
	"slices"
	"strings"

	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
	"github.com/conversion-operator/conversion-operator/internal/engine/conversion"
)

func (c *compiler) addDefault(rule *v1alpha1.DefaultRule, fldPath place) {
	rulePath := fldPath
	text, ofHub, fldPath, ok := c.oneOf(rule.From, rule.To, fldPath, setOneField)
	if !ok {
		return
	}
	own, other := c.sides(ofHub)
	path, found, ok := c.claim(own, text, fldPath)
	if !ok {
		return
	}
	if path[0] == "metadata" {
		c.invalid(fldPath, text, "is there in every version: a default is for a field that only one version has")
		return
	}
	c.mayCollide(path, other, fldPath, text)
	scope, ok := c.scopeOfOne(path, other, fldPath, text)
	if !ok {
		return
	}
	value, from, ok := c.defaultOf(rule, found, rulePath)
	if !ok {
		return
	}
	scope.Defaults = append(scope.Defaults, conversion.Default{Path: path[len(scopeAround(path)):], Hub: ofHub, Value: value, From: from})
}

// defaultOf returns the value of a default, or the metadata that has it.
func (c *compiler) defaultOf(rule *v1alpha1.DefaultRule, s *schema.Structural, fldPath place) (value []byte, from string, ok bool) {
	from = strings.TrimPrefix(string(rule.ValueFrom), ".metadata.")
	switch valueFrom := fldPath.Child("valueFrom"); {
	case (rule.Value == nil) == (rule.ValueFrom == ""):
		c.refuse(fldPath.Child("value"), field.Required(fldPath.Child("value").path, "set the value of the field, or valueFrom, and not both"))
	case rule.Value != nil:
		return rule.Value.Raw, "", c.fits(rule.Value.Raw, s, fldPath.Child("value"))
	case !slices.Contains(conversion.DefaultSources, from):
		c.refuse(valueFrom, field.NotSupported(valueFrom.path, rule.ValueFrom, []v1alpha1.DefaultSource{v1alpha1.DefaultFromName, v1alpha1.DefaultFromNamespace}))
	case rule.ValueFrom == v1alpha1.DefaultFromNamespace && !c.namespaced:
		c.invalid(valueFrom, rule.ValueFrom, "is empty: objects of the kind have no namespace")
	case s.Type != "string":
		c.invalid(valueFrom, rule.ValueFrom, "is a string, and the field is of type %s", typeName(s))
	default:
		return nil, from, true
	}
	return nil, "", false
}

// setOneField is the advice for a rule that needs one of from and to, and has neither or both.
const setOneField = "set from, for a field that only the spoke has, or to, for one that only the hub has"

// oneOf returns the path of a rule that has either from or to.
func (c *compiler) oneOf(from, to v1alpha1.Path, fldPath place, advice string) (text v1alpha1.Path, ofHub bool, child place, ok bool) {
	switch {
	case (from == "") == (to == ""):
		c.invalid(fldPath, "", "%s", advice)
		return "", false, place{}, false
	case from == "":
		return to, true, fldPath.Child("to"), true
	}
	return from, false, fldPath.Child("from"), true
}

// scopeOfOne returns the scope of a rule for one side. The lists and maps on its path must exist on
// the other side too.
func (c *compiler) scopeOfOne(path conversion.Path, other *side, fldPath place, text v1alpha1.Path) (*conversion.Scope, bool) {
	if prefix := scopeAround(path); len(prefix) > 0 {
		if _, err := resolve(other.schema, prefix); err != nil {
			c.invalid(fldPath, text, "goes through %s, which version %s does not have: name the list or map itself", prefix, other.version)
			return nil, false
		}
	}
	for i, segment := range path {
		if segment == conversion.Each {
			c.traversed = append(c.traversed, collision{path[:i], other, fldPath, text})
		}
	}
	if !c.checkScope(path, path, fldPath, text) {
		return nil, false
	}
	return c.scopeAt(scopeAround(path)), true
}
