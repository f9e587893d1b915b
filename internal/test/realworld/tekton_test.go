// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package realworld

import (
	"testing"

	v1 "github.com/tektoncd/pipeline/pkg/apis/pipeline/v1"
	"github.com/tektoncd/pipeline/pkg/apis/pipeline/v1beta1"
)

// TestTask: Tekton's v1.
func TestTask(t *testing.T) {
	values := []any{"text", []any{"a", "b"}, map[string]any{"key": "value"}}
	const (
		paramType     = "theirs sets the default type of a parameter, which their admission webhook has set in every stored Task; a conversion by rules sets no defaults for what both versions have"
		restartPolicy = "theirs forgets the field, in both directions, and it is lost; ours copies it"
	)
	filled := func(theirs, ours any) bool { return theirs == "string" && ours == absent }
	forgotten := func(theirs, ours any) bool { return theirs == absent && ours != absent }
	p := project{
		sample:  "tekton-tasks",
		module:  "github.com/tektoncd/pipeline",
		crd:     "config/300-crds/300-task.yaml",
		spoke:   version{"v1beta1", func() any { return &v1beta1.Task{} }},
		hub:     version{"v1", func() any { return &v1.Task{} }},
		toHub:   func(from, to any) error { return from.(*v1beta1.Task).ConvertTo(t.Context(), to.(*v1.Task)) },
		fromHub: func(from, to any) error { return to.(*v1beta1.Task).ConvertFrom(t.Context(), from.(*v1.Task)) },
		differences: []difference{
			{"v1", ".spec.params[*].type", filled, paramType},
			{"v1beta1", ".spec.params[*].type", filled, paramType},
			{"v1", ".spec.sidecars[*].restartPolicy", forgotten, restartPolicy},
			{"v1beta1", ".spec.sidecars[*].restartPolicy", forgotten, restartPolicy},
		},
		keeps: []string{v1beta1.TaskDeprecationsAnnotationKey, "tekton.dev/v1beta1Resources"},
		examples: map[string][]any{
			quantity:                             quantities,
			".spec.params[*].default":            values,
			".spec.results[*].value":             values,
			".spec.steps[*].params[*].value":     values,
			".spec.steps[*].ref.params[*].value": values,
			".spec.volumes":                      {[]any{map[string]any{"name": "work", "emptyDir": map[string]any{}}}},
			".spec.steps[*].timeout":             {"5m0s", "300s"},
		},
	}
	p.check(t)
}
