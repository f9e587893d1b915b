// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package conversion

import (
	"encoding/json"
	"slices"
	"strconv"

	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
)

func (c *compiler) addDefault(rule *v1alpha1.DefaultRule, at *field.Path) {
	valueAt := at.Child("value")
	text, ofHub, at, ok := c.oneOf(rule.From, rule.To, at)
	if !ok {
		return
	}
	own, other := c.sides(ofHub)
	path, found, ok := c.claim(own, text, at)
	if !ok {
		return
	}
	if path[0] == "metadata" {
		c.invalid(at, text, "is there in every version: a default is for a field that only one version has")
		return
	}
	c.mayCollide(path, other, at, text)
	scope, ok := c.scopeOfOne(path, other, at, text)
	if !ok || !c.fits(rule.Value.Raw, found, valueAt) {
		return
	}
	_, local := path.scopePrefix()
	scope.Defaults = append(scope.Defaults, Default{Path: local, Hub: ofHub, Value: rule.Value.Raw})
}

// oneOf is the one path of a rule for a field that only one side has.
func (c *compiler) oneOf(from, to v1alpha1.Path, at *field.Path) (text v1alpha1.Path, ofHub bool, child *field.Path, ok bool) {
	switch {
	case (from == "") == (to == ""):
		c.invalid(at, "", "set from, for a field that only the spoke has, or to, for one that only the hub has")
		return "", false, nil, false
	case from == "":
		return to, true, at.Child("to"), true
	}
	return from, false, at.Child("from"), true
}

// scopeOfOne finds the scope of a rule for one side. Lists and maps that it goes
// through are on the other side too.
func (c *compiler) scopeOfOne(path Path, other side, at *field.Path, text v1alpha1.Path) (*Scope, bool) {
	if prefix, _ := path.scopePrefix(); len(prefix) > 0 {
		if _, err := resolve(other.schema, prefix); err != nil {
			c.invalid(at, text, "goes through %s, which version %s does not have: name the list or map itself", prefix, other.version)
			return nil, false
		}
	}
	for i, segment := range path {
		if segment == each {
			c.passages = append(c.passages, collision{path[:i], other, at, text})
		}
	}
	return c.scopeOf(path, path, at, text)
}

// fits reports whether a value of a rule is one that the schema allows.
func (c *compiler) fits(raw []byte, s *schema.Structural, at *field.Path) bool {
	value, err := parse(raw, everything)
	switch {
	case err != nil || !value.is(s):
		c.invalid(at, string(raw), "is not of type %s: write a value that the field can have", typeName(s))
	case s.ValueValidation != nil && len(s.ValueValidation.Enum) > 0 && !inEnum(value, s.ValueValidation.Enum):
		c.invalid(at, string(raw), "is not in the enum of the field: write a value that the schema allows")
	default:
		return true
	}
	return false
}

// is reports whether a value is of the type that a schema names, with all in it.
func (n *node) is(s *schema.Structural) bool {
	_, err := strconv.ParseInt(string(n.text), 10, 64)
	switch {
	case s.XIntOrString:
		return isString(n.text) || err == nil
	case s.Type == "string":
		return isString(n.text)
	case s.Type == "integer":
		return err == nil
	case s.Type == "number":
		return len(n.text) > 0 && (n.text[0] == '-' || '0' <= n.text[0] && n.text[0] <= '9')
	case s.Type == "boolean":
		return string(n.text) == "true" || string(n.text) == "false"
	case s.Type == "array":
		return n.kind == array && n.all(func(*node) *schema.Structural { return s.Items })
	case s.Type == "object":
		return n.kind == object && n.all(func(m *node) *schema.Structural {
			if of := step(s, m.label()); of != nil || !s.XPreserveUnknownFields {
				return of
			}
			return anything
		})
	}
	return !n.isNull()
}

// all reports whether the elements or members are of the types that their schemas
// name. One without a schema would be taken away by the API server.
func (n *node) all(schemaOf func(*node) *schema.Structural) bool {
	for child := n.first; child != nil; child = child.next {
		if of := schemaOf(child); of == nil || (!of.Nullable || !child.isNull()) && !child.is(of) {
			return false
		}
	}
	return true
}

func inEnum(value *node, enum []schema.JSON) bool {
	return slices.ContainsFunc(enum, func(allowed schema.JSON) bool {
		text, err := json.Marshal(allowed.Object)
		return err == nil && canonical((&node{text: text})) == canonical(value)
	})
}
