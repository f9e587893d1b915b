// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package converter

import (
	"encoding/json"
	"fmt"

	"k8s.io/apimachinery/pkg/runtime"
	appsv1apply "k8s.io/client-go/applyconfigurations/apps/v1"
	corev1apply "k8s.io/client-go/applyconfigurations/core/v1"
	policyv1apply "k8s.io/client-go/applyconfigurations/policy/v1"
	kjson "sigs.k8s.io/json"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
	"github.com/conversion-operator/conversion-operator/internal/plan/converter/patch"
)

// workload has the objects that are deployed for a converter.
type workload struct {
	service    *corev1apply.ServiceApplyConfiguration
	budget     *policyv1apply.PodDisruptionBudgetApplyConfiguration
	deployment *appsv1apply.DeploymentApplyConfiguration
}

// render returns the workload with the patches of the policy. It restores the fields that the
// operator needs (reassert.go). An error names the patch that cannot be applied.
func (c *Converter) render() (workload, error) {
	ours := c.unpatched()
	if len(c.Policy.Spec.Workload.Patches) == 0 {
		return ours, nil
	}
	patched := ours
	for i, one := range c.Policy.Spec.Workload.Patches {
		var err error
		if patched, err = patched.with(one); err != nil {
			return workload{}, fmt.Errorf("spec.workload.patches[%d]: %w", i, err)
		}
	}
	patched.reassert(ours, c.Rulesets())
	return patched, nil
}

func (c *Converter) unpatched() workload {
	return workload{c.service(), c.disruptionBudget(), c.kind.deployment()}
}

// with returns the workload with one patch applied. Each object must keep its kind.
func (w workload) with(one v1alpha1.Patch) (workload, error) {
	var contents []map[string]any
	for _, object := range []runtime.ApplyConfiguration{w.service, w.budget, w.deployment} {
		content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(object)
		if err != nil {
			return workload{}, err
		}
		contents = append(contents, content)
	}
	patched, err := patch.Apply(contents, one)
	if err != nil {
		return workload{}, err
	}
	var result workload
	for i, into := range []any{&result.service, &result.budget, &result.deployment} {
		if err := typed(patched[i], into); err != nil {
			return workload{}, fmt.Errorf("it makes no %s: %w", contents[i]["kind"], err)
		}
	}
	return result, result.usable()
}

// typed decodes an object, and rejects fields that its kind does not have.
func typed(content map[string]any, into any) error {
	text, err := json.Marshal(content)
	if err != nil {
		return err
	}
	unknown, err := kjson.UnmarshalStrict(text, into)
	if err == nil && len(unknown) > 0 {
		err = unknown[0]
	}
	return err
}
