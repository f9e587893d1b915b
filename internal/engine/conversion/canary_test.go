// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package conversion_test

import (
	"encoding/json"
	"testing"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
	"github.com/conversion-operator/conversion-operator/internal/engine/conversion"
	"github.com/conversion-operator/conversion-operator/internal/engine/conversion/compile"
	"github.com/conversion-operator/conversion-operator/internal/test/expect"
	"github.com/conversion-operator/conversion-operator/internal/test/rulecases"
)

// TestCanaryOfKinds checks that a canary object is converted by every rule, so that probes detect a pod which cannot apply it. A third
// version has none of the fields, so it preserves all of them.
func TestCanaryOfKinds(t *testing.T) {
	for _, kind := range rulecases.All(t) {
		for _, of := range kind.Conversions {
			c := converterOf(t, compile.Compile(widgets(t, map[string]string{"v1": string(of.V1), "v2": string(of.V2), "v3": ""}),
				from[v1alpha1.DeclarativeConverter](t, "{hub: v2, spokes: [{version: v1, rules: ["+string(of.Rules)+"]}, {version: v3}]}")))
			toHub, toSpoke := canaryAt(t, c, "v1", "v2"), canaryAt(t, c, "v2", "v1")
			for _, exchange := range c.Ruleset().Spokes[0].Root.Exchanges {
				if !hasOne(toHub, exchange.Hub) {
					t.Errorf("%s: the canary of v1 has nothing that becomes a value of %v: see canary.go", kind.Name, exchange.Hub[0].Path)
				}
				if !hasOne(toSpoke, exchange.Spoke) {
					t.Errorf("%s: the canary of v2 has nothing that becomes a value of %v: see canary.go", kind.Name, exchange.Spoke[0].Path)
				}
			}
		}
	}
}

// canaryAt converts the canary object of one version to another.
func canaryAt(t *testing.T, c *conversion.Converter, from, to string) map[string]json.RawMessage {
	t.Helper()
	text, err := c.Convert(nil, c.Canary(from, to), to)
	expect.NoError(t, err)
	object := map[string]json.RawMessage{}
	expect.NoError(t, json.Unmarshal(text, &object))
	return object
}

// hasOne reports whether an object has one of the fields at its root.
func hasOne(object map[string]json.RawMessage, fields []conversion.Field) bool {
	for _, field := range fields {
		if object[field.Path[0]] != nil {
			return true
		}
	}
	return false
}
