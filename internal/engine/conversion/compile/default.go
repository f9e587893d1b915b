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

func (c *compiler) addDefault(of *policyRule, fldPath place) {
	rule := of.Default
	rulePath := fldPath
	text, ofHub, fldPath := oneOf(rule.From, rule.To, fldPath)
	at, found, ok := c.claim(ofHub, text, fldPath)
	if !ok {
		return
	}
	if own, _ := at.in.sides(ofHub); own.isText(at.path) {
		c.invalid(fldPath, text, "is there in every version: a default is for a field that only one version has")
		return
	}
	scope, local, ok := c.scopeOfOne(at, ofHub, fldPath, text)
	if !ok {
		return
	}
	value, from, ok := c.defaultOf(rule, found, rulePath)
	if !ok {
		return
	}
	c.addSmall(at.shown(ofHub))
	scope.Defaults = append(scope.Defaults, conversion.Default{Path: local, Hub: ofHub, Value: value, From: from})
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

// oneOf returns the path of a rule that has either from or to, as API servers require.
func oneOf(from, to v1alpha1.Path, fldPath place) (text v1alpha1.Path, ofHub bool, child place) {
	if from == "" {
		return to, true, fldPath.Child("to")
	}
	return from, false, fldPath.Child("from")
}

// scopeOfOne returns the scope of a rule for one side, and the path of its field there. The lists and maps on the path must
// exist on the other side too.
func (c *compiler) scopeOfOne(at spot, ofHub bool, fldPath place, text v1alpha1.Path) (*conversion.Scope, conversion.Path, bool) {
	_, other := at.in.sides(ofHub)
	scope := at.scope()
	if _, err := other.resolve(scope.path); len(scope.path) > 0 && err != nil {
		c.invalid(fldPath, text, "goes through %s, which version %s does not have: name the list or map itself", scope.shown(ofHub), other.version)
		return nil, nil, false
	}
	if !c.checkScope(at, at, fldPath, text) {
		return nil, nil, false
	}
	return c.scopeAt(scope), at.path[len(scope.path):], true
}

func (c *compiler) addDrop(of *policyRule, fldPath place) {
	rule := of.Drop
	text, ofHub, fldPath := oneOf(rule.From, rule.To, fldPath)
	at, _, ok := c.claim(ofHub, text, fldPath)
	if !ok {
		return
	}
	scope, local, ok := c.scopeOfOne(at, ofHub, fldPath, text)
	if !ok {
		return
	}
	if ofHub {
		scope.DropHub = append(scope.DropHub, local)
	} else {
		scope.DropSpoke = append(scope.DropSpoke, local)
	}
}
