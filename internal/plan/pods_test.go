// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package plan_test

import (
	"os"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"

	"github.com/conversion-operator/conversion-operator/internal/plan/step"
	"github.com/conversion-operator/conversion-operator/internal/test/golden"
)

// TestPods records every pod template. Kubernetes' own code judges them by the
// restricted Pod Security Standard in internal/test/standards; they satisfy more: a file
// system that cannot be written, bounded resources, and no token where none is needed.
func TestPods(t *testing.T) {
	templates := podTemplates(t)
	text, err := yaml.Marshal(templates)
	if err != nil {
		t.Fatal(err)
	}
	golden.Check(t, string(text), "pods.yaml")
	// What a converter may take is in the policy, whose defaults the API server fills in.
	ours := map[string]bool{"manager": true, "migration": true}
	for name, template := range templates {
		t.Run(name, func(t *testing.T) {
			for _, container := range template.Spec.Containers {
				if is := container.SecurityContext.ReadOnlyRootFilesystem; name != "image" && (is == nil || !*is) {
					t.Error("its root file system can be written")
				}
				if bounds := container.Resources; ours[name] && (bounds.Requests.Cpu().IsZero() || bounds.Requests.Memory().IsZero() || bounds.Limits.Memory().IsZero()) {
					t.Errorf("its resources are %v", bounds)
				}
			}
			asksAPIServers := name == "manager" || name == "migration"
			if mounts := template.Spec.AutomountServiceAccountToken; !asksAPIServers && (mounts == nil || *mounts) {
				t.Error("it mounts a token")
			}
		})
	}
}

// podTemplates are those of all pods that there are.
func podTemplates(t *testing.T) map[string]corev1.PodTemplateSpec {
	t.Helper()
	manager := &appsv1.Deployment{}
	text, err := os.ReadFile("../../config/manager/deployment.yaml")
	if err != nil {
		t.Fatal(err)
	}
	if err := yaml.UnmarshalStrict(text, manager); err != nil {
		t.Fatal(err)
	}
	migrating, image := newWorld(t, policyYAML), newWorld(t, imageYAML)
	migrating.migrating()
	image.applyCRD(bothStoredNew)
	image.converge()
	all := map[string]corev1.PodTemplateSpec{
		"manager":   manager.Spec.Template,
		"converter": podsOf(t, active(t)),
		"image":     podsOf(t, image),
		"migration": migrating.observed.Runs[0].Job.Spec.Template,
	}
	return all
}

func podsOf(t *testing.T, w *world) corev1.PodTemplateSpec {
	t.Helper()
	for _, s := range w.plan().Steps {
		applied, ok := s.(step.Apply)
		if !ok {
			continue
		}
		content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(applied.Object)
		if err != nil {
			t.Fatal(err)
		}
		deployment := &appsv1.Deployment{}
		if content["kind"] != "Deployment" {
			continue
		}
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(content, deployment); err != nil {
			t.Fatal(err)
		}
		return deployment.Spec.Template
	}
	t.Fatal("there is no Deployment")
	return corev1.PodTemplateSpec{}
}
