// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package report

import (
	"reflect"
	"strings"
	"testing"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
)

// TestEveryKindOfRule checks that each kind of rule has a name and a description.
func TestEveryKindOfRule(t *testing.T) {
	for member := range reflect.TypeFor[v1alpha1.Rule]().Fields() {
		want, _, _ := strings.Cut(member.Tag.Get("json"), ",")
		of := &v1alpha1.Rule{}
		reflect.ValueOf(of).Elem().FieldByIndex(member.Index).Set(reflect.New(member.Type.Elem()))
		if got := kindOf(of); got != want || kinds[got].Does == "" {
			t.Errorf("a rule %s is called %q, which does %q", want, got, kinds[got].Does)
		}
	}
}
