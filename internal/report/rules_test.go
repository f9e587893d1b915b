// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package report

import (
	"reflect"
	"strings"
	"testing"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
)

// TestEveryKindOfRule checks that the report describes each kind of rule under its name.
func TestEveryKindOfRule(t *testing.T) {
	for member := range reflect.TypeFor[v1alpha1.Rule]().Fields() {
		want, _, _ := strings.Cut(member.Tag.Get("json"), ",")
		if got := kinds[want]; got.Name != want || got.Does == "" {
			t.Errorf("rules.go describes a rule %s as %q: %q", want, got.Name, got.Does)
		}
	}
}
