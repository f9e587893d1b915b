// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package rulekinds

import (
	"reflect"
	"strings"
	"testing"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
)

// TestEveryKindOfRule checks that each kind of rule is described under its name. A use is the rules of its group.
func TestEveryKindOfRule(t *testing.T) {
	for member := range reflect.TypeFor[v1alpha1.Rule]().Fields() {
		name, _, _ := strings.Cut(member.Tag.Get("json"), ",")
		rule := &v1alpha1.Rule{}
		reflect.ValueOf(rule).Elem().FieldByIndex(member.Index).Set(reflect.New(member.Type.Elem()))
		if got := Of(rule); name != "use" && (got == nil || got.Name != name || got.Does == "" || (got.Keeps == "") != (got.Why(rule) == "")) {
			t.Errorf("rulekinds.go describes a rule %s as %+v", name, got)
		}
	}
}
