// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package dependents

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/conversion-operator/conversion-operator/internal/test/expect"
)

// TestReport writes what names from a cluster, which may try to control a terminal.
func TestReport(t *testing.T) {
	target := target(t)
	report := &Report{CRD: "crontabs.example.com", More: 2, Cost: Cost{Requests: 3, Bytes: 5 << 10, Objects: 1}, Skipped: []string{"Helm"},
		NotChecked: []NotChecked{{"b", "no\nrights"}, {"a", "gone"}}}
	report.Dependents = append(report.Dependents,
		Sources[0].In(target, map[string]any{"kind": "K", "metadata": map[string]any{"name": "n"}, "spec": map[string]any{"apiVersion": "example.com/v1beta1", "kind": "CronTab"}})...)
	report.Dependents = append(report.Dependents, target.OfOwners(Object{Kind: "Secret", Namespace: "a", Name: "b"},
		[]metav1.OwnerReference{{APIVersion: "example.com/v1", Kind: "CronTab"}, {APIVersion: "example.com/v1beta1", Kind: "CronTab", Name: "x\x1b[31m"}})...)
	report.Repairs = []Repair{
		{Object: Object{Kind: "Secret", Name: "a"}, Field: "f", Before: "b", After: "a"},
		{Object: Object{Kind: "Secret", Name: "a"}, Field: "f", Before: "b", After: "a", DryRun: true},
		{Object: Object{Kind: "Secret", Name: "a"}, Field: "f", Failure: "no"},
	}
	report.Finish()
	var out, wide strings.Builder
	for _, err := range []error{report.WriteTable(&out, false), report.WriteSummary(&out), report.WriteTable(&wide, true)} {
		expect.NoError(t, err)
	}
	want := `IMPACT     DEPENDENCY       VERSION   OBJECT       FIELD
Breaks     OwnerReference   v1beta1   Secret a/b   .metadata.ownerReferences[1].apiVersion
Harmless   Autoscaler       v1beta1   K n          .spec
REPAIR     OBJECT     FIELD   CHANGE
done       Secret a   f       b → a
possible   Secret a   f       b → a
failed     Secret a   f       no
4 dependents of crontabs.example.com; 1 object read in 3 requests, 5 KiB
2 further dependents not shown
not read: Helm
not checked: a: gone
not checked: b: no rights
`
	expect.Equal(t, "output", want, out.String())
	if strings.Contains(wide.String(), "\x1b") || !strings.Contains(wide.String(), "CURE") {
		t.Errorf("wide output is %q", wide.String())
	}
	done, failed := report.Repaired()
	expect.Equal(t, "repairs done and failed", [2]int{2, 1}, [2]int{done, failed})
}
