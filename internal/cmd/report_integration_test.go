// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build integration

package cmd

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
	"github.com/conversion-operator/conversion-operator/internal/test/expect"
)

// reportLive writes reports of an applied policy, with a status as the operator would write it.
func reportLive(t *testing.T, writer client.Client, kubeconfig string) {
	t.Helper()
	policy := &v1alpha1.ConversionPolicy{}
	expect.NoError(t, writer.Get(t.Context(), client.ObjectKey{Name: "crontabs.example.com"}, policy))
	policy.Status.Conditions = []metav1.Condition{{
		Type: v1alpha1.ReadyCondition, Status: metav1.ConditionFalse, Reason: v1alpha1.ReasonMigrating, LastTransitionTime: metav1.Now(),
	}}
	expect.NoError(t, writer.Status().Update(t.Context(), policy))
	for name, test := range map[string]struct{ args, want []string }{
		"of all objects": {
			[]string{"--live", "--sample=7"},
			[]string{"7 objects from the cluster, at version v1beta1, the first 7 at most", "Nothing is lost"},
		},
		"of none": {
			nil,
			[]string{"No objects were given", "Not ready: Migrating", "<dd>crontabs.example.com, generation 1</dd>", "<dd>the cluster</dd>"},
		},
		"of a file's rules": {
			[]string{"--policy", sampleFile("2-policy.yaml")},
			[]string{"<dd>crontabs.example.com, as in a file</dd>", "2-policy.yaml and the cluster</dd>"},
		},
	} {
		stdout, _, err := run(append([]string{"report", "crontabs.example.com", "--kubeconfig", kubeconfig}, test.args...)...)
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
		for _, want := range test.want {
			if !strings.Contains(stdout, want) {
				t.Errorf("%s: there is no %q", name, want)
			}
		}
	}
}
