// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package standards

import (
	"os"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/pod-security-admission/api"
	"k8s.io/pod-security-admission/policy"
	"sigs.k8s.io/yaml"

	"github.com/conversion-operator/conversion-operator/internal/test/expect"
)

// TestPodsAreRestricted: every pod that the planner's tests record satisfies the restricted Pod
// Security Standard, by Kubernetes' own check.
func TestPodsAreRestricted(t *testing.T) {
	text, err := os.ReadFile("../../plan/testdata/pods.yaml")
	expect.NoError(t, err)
	pods := map[string]corev1.PodTemplateSpec{}
	expect.NoError(t, yaml.UnmarshalStrict(text, &pods))
	evaluator, err := policy.NewEvaluator(policy.DefaultChecks(), nil)
	expect.NoError(t, err)
	level := api.LevelVersion{Level: api.LevelRestricted, Version: api.LatestVersion()}
	for _, name := range []string{"manager", "converter", "image", "migration"} {
		pod, ok := pods[name]
		if !ok || len(pod.Spec.Containers) == 0 {
			t.Errorf("there is no pod %s", name)
		}
		for _, result := range evaluator.EvaluatePod(level, &pod.ObjectMeta, &pod.Spec) {
			if !result.Allowed {
				t.Errorf("%s: %s: %s", name, result.ForbiddenReason, result.ForbiddenDetail)
			}
		}
	}
}
