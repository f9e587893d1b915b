// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package plan_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
	"github.com/conversion-operator/conversion-operator/internal/conversion/compile"
	"github.com/conversion-operator/conversion-operator/internal/plan"
)

// TestRulesValidSays is what the condition says of the rules: the first of
// everything, and how many more there are.
func TestRulesValidSays(t *testing.T) {
	verdict := v1alpha1.Verdict{Version: "v1beta1", ToHub: v1alpha1.FidelityLossy, FromHub: v1alpha1.FidelityPreserved}
	dropped := verdict
	dropped.Dropped = []v1alpha1.VersionedField{{Version: "v1beta1", Path: ".a"}}
	dropped.Preserved = []v1alpha1.VersionedField{{Version: "v1beta1", Path: ".b"}, {Version: "v1", Path: ".c"}, {Version: "v1", Path: ".d"}, {Version: "v1", Path: ".e"}}
	invalid := func(count int, detail string) (errs field.ErrorList) {
		for i := range count {
			errs = append(errs, field.Invalid(field.NewPath("spec").Index(i), "x", detail))
		}
		return errs
	}
	numbered := func(text string, from, to int) (lines []string) {
		for i := from; i <= to; i++ {
			lines = append(lines, fmt.Sprintf(text, i))
		}
		return lines
	}
	for name, test := range map[string]struct {
		change func(*compile.Result)
		want   string
	}{
		"verdicts": {
			func(r *compile.Result) { r.Verdicts = []v1alpha1.Verdict{verdict, dropped} },
			"v1beta1: Lossy to the hub, Preserved from it; v1beta1: Lossy to the hub, Preserved from it, drops v1beta1:.a, preserves v1beta1:.b, v1:.c, v1:.d and more",
		},
		"a warning": {
			func(r *compile.Result) { r.Verdicts, r.Warnings = []v1alpha1.Verdict{verdict}, []string{"beware"} },
			"v1beta1: Lossy to the hub, Preserved from it; warning 1 of 1: beware",
		},
		"many warnings": {
			func(r *compile.Result) { r.Verdicts, r.Warnings = nil, numbered("w%d", 1, 7) },
			strings.Join(numbered("warning %[1]d of 7: w%[1]d", 1, 5), "; "),
		},
		"a long warning": {
			func(r *compile.Result) { r.Verdicts, r.Warnings = nil, []string{strings.Repeat("é", 400)} },
			"warning 1 of 1: " + strings.Repeat("é", 298) + "...",
		},
		"many errors": {
			func(r *compile.Result) { r.Errors = invalid(12, "no") },
			strings.Join(numbered(`spec[%d]: Invalid value: "x": no`, 0, 9), "; ") + "; and 2 more",
		},
		"a long error": {
			func(r *compile.Result) { r.Errors = invalid(1, strings.Repeat("n", 700)) },
			`spec[0]: Invalid value: "x": ` + strings.Repeat("n", 568) + "...",
		},
		"a version that is missing": {
			func(r *compile.Result) {
				r.Verdicts, r.Warnings, r.Missing = []v1alpha1.Verdict{verdict}, []string{"beware"}, invalid(1, "no")
			},
			`spec[0]: Invalid value: "x": no; the converter is ready for it; v1beta1: Lossy to the hub, Preserved from it; warning 1 of 1: beware`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := active(t)
			test.change(&w.observed.Rules)
			condition := apimeta.FindStatusCondition(plan.Make(w.observed).Status.Conditions, v1alpha1.RulesValidCondition)
			if diff := cmp.Diff(test.want, condition.Message); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}
