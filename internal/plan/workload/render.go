// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"encoding/json"
	"fmt"

	"k8s.io/apimachinery/pkg/runtime"
	appsv1apply "k8s.io/client-go/applyconfigurations/apps/v1"
	corev1apply "k8s.io/client-go/applyconfigurations/core/v1"
	policyv1apply "k8s.io/client-go/applyconfigurations/policy/v1"
	kjson "sigs.k8s.io/json"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
	"github.com/conversion-operator/conversion-operator/internal/plan/workload/patch"
)

// Objects are deployed for converter pods.
type Objects struct {
	Service    *corev1apply.ServiceApplyConfiguration
	Budget     *policyv1apply.PodDisruptionBudgetApplyConfiguration
	Deployment *appsv1apply.DeploymentApplyConfiguration
}

// Patched returns the objects with the patches. It restores the fields that the operator needs
// (reassert.go): more of them for the operator's own converter than for one of the user. An error
// names the patch that cannot be applied.
func (o Objects) Patched(patches []v1alpha1.Patch, own bool) (Objects, error) {
	if len(patches) == 0 {
		return o, nil
	}
	patched := o
	for i, one := range patches {
		var err error
		if patched, err = patched.with(one); err != nil {
			return Objects{}, fmt.Errorf("spec.workload.patches[%d]: %w", i, err)
		}
	}
	patched.reassert(o, own)
	return patched, nil
}

// with returns the objects with one patch applied. Each object must keep its kind.
func (o Objects) with(one v1alpha1.Patch) (Objects, error) {
	var contents []map[string]any
	for _, object := range []runtime.ApplyConfiguration{o.Service, o.Budget, o.Deployment} {
		content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(object)
		if err != nil {
			return Objects{}, err
		}
		contents = append(contents, content)
	}
	patched, err := patch.Apply(contents, one)
	if err != nil {
		return Objects{}, err
	}
	var result Objects
	for i, into := range []any{&result.Service, &result.Budget, &result.Deployment} {
		if err := typed(patched[i], into); err != nil {
			return Objects{}, fmt.Errorf("it makes no %s: %w", contents[i]["kind"], err)
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
