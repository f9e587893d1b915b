// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package compile

import (
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
	"github.com/conversion-operator/conversion-operator/internal/conversion"
)

func (c *compiler) addDefault(rule *v1alpha1.DefaultRule, fldPath *field.Path) {
	valuePath := fldPath.Child("value")
	text, ofHub, fldPath, ok := c.oneOf(rule.From, rule.To, fldPath)
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
	if !ok || !c.fits(rule.Value.Raw, found, valuePath) {
		return
	}
	_, local := splitScope(path)
	scope.Defaults = append(scope.Defaults, conversion.Default{Path: local, Hub: ofHub, Value: rule.Value.Raw})
}

// oneOf returns the path of a rule for a field that only one side has.
func (c *compiler) oneOf(from, to v1alpha1.Path, fldPath *field.Path) (text v1alpha1.Path, ofHub bool, child *field.Path, ok bool) {
	switch {
	case (from == "") == (to == ""):
		c.invalid(fldPath, "", "set from, for a field that only the spoke has, or to, for one that only the hub has")
		return "", false, nil, false
	case from == "":
		return to, true, fldPath.Child("to"), true
	}
	return from, false, fldPath.Child("from"), true
}

// scopeOfOne returns the scope of a rule for one side. The lists and maps on its path must exist on
// the other side too.
func (c *compiler) scopeOfOne(path conversion.Path, other side, fldPath *field.Path, text v1alpha1.Path) (*conversion.Scope, bool) {
	if prefix, _ := splitScope(path); len(prefix) > 0 {
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
	return c.scopeOf(path, path, fldPath, text)
}
