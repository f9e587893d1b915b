// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package report

import (
	"fmt"
	"slices"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
	"github.com/conversion-operator/conversion-operator/internal/test/expect"
)

func TestProse(t *testing.T) {
	for text, want := range map[string]string{
		"":                      "",
		"plain & <b>":           "plain &amp; &lt;b&gt;",
		"the field `.a<b>` is":  "the field <code>.a&lt;b&gt;</code> is",
		"`a` and `b`":           "<code>a</code> and <code>b</code>",
		"`` has a ` in it `` x": "<code>has a ` in it</code> x",
		"not `closed <b>":       "not `closed &lt;b&gt;",
	} {
		expect.Equal(t, text, want, string(prose(text)))
	}
}

func TestSplit(t *testing.T) {
	for path, want := range map[string][]string{
		".spec":                               {".spec"},
		".spec.ports[*].name":                 {".spec", ".ports[*]", ".name"},
		".a[*][*]":                            {".a[*][*]"},
		`.metadata.labels["example.com/a.b"]`: {".metadata", ".labels", `["example.com/a.b"]`},
		`.a["b"c"]`:                           {`.a["b"c"]`},
		"no path":                             {"no path"},
	} {
		expect.Equal(t, path, want, split(path))
	}
}

func TestNumbers(t *testing.T) {
	for n, want := range map[int64]string{0: "0", 999: "999", 1000: "1\u202f000", 1234567: "1\u202f234\u202f567", -123: "-123", -1234: "-1\u202f234"} {
		expect.Equal(t, fmt.Sprint(n), want, number(n))
	}
	expect.Equal(t, "counts", "1 rule, 2 rules", count(1, "rule")+", "+count(2, "rule"))
}

// TestCurves has links with one or several fields on each side, and on one side only.
func TestCurves(t *testing.T) {
	for name, test := range map[string]struct {
		from, to []int
		want     []curve
	}{
		"one to one": {[]int{0}, []int{2}, []curve{{Path: "M0 0.5 C50 0.5 50 2.5 100 2.5", From: 0, To: 2}}},
		"one to two": {[]int{1}, []int{0, 3}, []curve{
			{Path: "M0 1.5 C50 1.5 50 0.5 100 0.5", From: 1, To: 0}, {Path: "M0 1.5 C50 1.5 50 3.5 100 3.5", From: 1, To: 3},
		}},
		"two to two": {[]int{0, 1}, []int{2, 4}, []curve{
			{Path: "M0 0.5 C25 0.5 25 2.25 50 2.25", From: 0, To: -1}, {Path: "M0 1.5 C25 1.5 25 2.25 50 2.25", From: 1, To: -1},
			{Path: "M50 2.25 C75 2.25 75 2.5 100 2.5", From: -1, To: 2}, {Path: "M50 2.25 C75 2.25 75 4.5 100 4.5", From: -1, To: 4},
		}},
		"spoke alone": {[]int{3}, nil, []curve{{Path: "M0 3.5 H12", From: 3, To: -1}}},
		"hub alone":   {nil, []int{3}, []curve{{Path: "M88 3.5 H100", From: -1, To: 3}}},
	} {
		expect.Equal(t, name, test.want, curvesOf(nil, test.from, test.to))
	}
}

// TestTones has conditions whose status True is good, and others for which it is bad.
func TestTones(t *testing.T) {
	for _, test := range []struct {
		condition string
		want      []string
	}{
		{v1alpha1.ReadyCondition, []string{"good", "bad", "plain"}},
		{v1alpha1.StorageMigratedCondition, []string{"good", "bad", "plain"}},
		{v1alpha1.StalledCondition, []string{"bad", "good", "plain"}},
		{v1alpha1.DeletionBlockedCondition, []string{"bad", "good", "plain"}},
		{v1alpha1.ReconcilingCondition, []string{"plain", "good", "plain"}},
		{v1alpha1.ConversionsFailingCondition, []string{"bad", "good", "plain"}},
		{v1alpha1.BootstrapDependencyCondition, []string{"bad", "good", "plain"}},
	} {
		var got []string
		for status := range slices.Values([]metav1.ConditionStatus{metav1.ConditionTrue, metav1.ConditionFalse, metav1.ConditionUnknown}) {
			got = append(got, toneOf(metav1.Condition{Type: test.condition, Status: status}))
		}
		expect.Equal(t, test.condition, test.want, got)
	}
}

// TestBar checks that the parts of a bar are adjacent, and fill it.
func TestBar(t *testing.T) {
	r := runOf(&v1alpha1.MigrationStatus{State: v1alpha1.MigrationRunning, Total: 9, Rewritten: 2, Unchanged: 1, Failed: 1})
	x := int64(0)
	for _, p := range r.Parts {
		expect.Equal(t, "the begin of "+p.Name, x, p.X)
		x += p.Width
	}
	expect.Equal(t, "the end of the bar, and objects that are left", []int64{1000, 5}, []int64{x, r.Parts[len(r.Parts)-1].Objects})
}
