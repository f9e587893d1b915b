// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"reflect"
	"strings"
	"testing"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
)

// TestEveryKindOfRule checks that each kind of rule has its name, and that the policy of the tests has
// a rule of it. A use is the rules of its group.
func TestEveryKindOfRule(t *testing.T) {
	policy := &v1alpha1.ConversionPolicy{}
	load(t, policy, "rules", "policy.yaml")
	explained := map[string]bool{}
	for at, rule := range rulesOf(policy.Spec.Converter.Declarative) {
		explained[rule.kind] = true
		explained["use"] = explained["use"] || strings.HasSuffix(at, "ruleGroups[0].rules[0] (used by spokes[0].rules[10])")
	}
	for member := range reflect.TypeFor[v1alpha1.Rule]().Fields() {
		want, _, _ := strings.Cut(member.Tag.Get("json"), ",")
		of := &v1alpha1.Rule{}
		reflect.ValueOf(of).Elem().FieldByIndex(member.Index).Set(reflect.New(member.Type.Elem()))
		if got := ruleOf(of).kind; got != want && want != "use" {
			t.Errorf("a rule %s is called %s", want, got)
		}
		if !explained[want] {
			t.Errorf("testdata/rules/policy.yaml has no rule %s", want)
		}
	}
}
