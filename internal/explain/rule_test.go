// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"reflect"
	"strings"
	"testing"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
)

// TestEveryKindOfRule checks that each kind of rule has its name.
func TestEveryKindOfRule(t *testing.T) {
	for member := range reflect.TypeFor[v1alpha1.Rule]().Fields() {
		want, _, _ := strings.Cut(member.Tag.Get("json"), ",")
		of := &v1alpha1.Rule{}
		reflect.ValueOf(of).Elem().FieldByIndex(member.Index).Set(reflect.New(member.Type.Elem()))
		if got := ruleOf(of).kind; got != want {
			t.Errorf("a rule %s is called %s", want, got)
		}
	}
}
