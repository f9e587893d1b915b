// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package compile

import (
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
)

func (c *compiler) addDrop(rule *v1alpha1.DropRule, at *field.Path) {
	text, ofHub, at, ok := c.oneOf(rule.From, rule.To, at)
	if !ok {
		return
	}
	own, other := c.sides(ofHub)
	path, _, ok := c.claim(own, text, at)
	if !ok {
		return
	}
	scope, ok := c.scopeOfOne(path, other, at, text)
	if !ok {
		return
	}
	_, local := splitScope(path)
	if ofHub {
		scope.DropHub = append(scope.DropHub, local)
	} else {
		scope.DropSpoke = append(scope.DropSpoke, local)
	}
}
