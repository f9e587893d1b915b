// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package plan_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	appsv1apply "k8s.io/client-go/applyconfigurations/apps/v1"
	corev1apply "k8s.io/client-go/applyconfigurations/core/v1"
	policyv1apply "k8s.io/client-go/applyconfigurations/policy/v1"
	"sigs.k8s.io/yaml"

	"github.com/conversion-operator/conversion-operator/internal/operator/plan/names"
	"github.com/conversion-operator/conversion-operator/internal/operator/plan/podspec"
	"github.com/conversion-operator/conversion-operator/internal/operator/plan/step"
	"github.com/conversion-operator/conversion-operator/internal/test/expect"
	"github.com/conversion-operator/conversion-operator/internal/test/golden"
)

// applied is the one object of a type that is to be applied, nil where there is none.
func applied[T any](t *testing.T, steps []step.Step) *T {
	t.Helper()
	var found *T
	for _, s := range steps {
		apply, ok := s.(step.Apply)
		if !ok {
			continue
		}
		if object, ok := apply.Object.(any).(*T); ok {
			if found != nil {
				t.Fatalf("there are two of type %T", found)
			}
			found = object
		}
	}
	return found
}

func deploymentOf(t *testing.T, w *world) *appsv1apply.DeploymentApplyConfiguration {
	t.Helper()
	return applied[appsv1apply.DeploymentApplyConfiguration](t, w.plan().Steps)
}

func serviceOf(t *testing.T, w *world) *corev1apply.ServiceApplyConfiguration {
	t.Helper()
	return applied[corev1apply.ServiceApplyConfiguration](t, w.plan().Steps)
}

func budgetOf(t *testing.T, w *world) *policyv1apply.PodDisruptionBudgetApplyConfiguration {
	t.Helper()
	return applied[policyv1apply.PodDisruptionBudgetApplyConfiguration](t, w.plan().Steps)
}

// TestPlacement records where pods run. Converter and migration pods take from the manager's pod what their policy
// does not set, but a toleration of the manager does not keep converter pods on a lost node: they leave it after
// 30 seconds, or when the policy says.
func TestPlacement(t *testing.T) {
	manager := &corev1.PodSpec{}
	read(t, `
imagePullSecrets: [{name: registry}]
priorityClassName: platform
nodeSelector: {pool: platform}
tolerations: [{operator: Exists}, {key: node.kubernetes.io/not-ready, operator: Exists, effect: NoExecute, tolerationSeconds: 300}]
affinity:
  nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: [{matchExpressions: [{key: arch, operator: In, values: [amd64]}]}]}}
  podAntiAffinity: {requiredDuringSchedulingIgnoredDuringExecution: [{topologyKey: kubernetes.io/hostname, labelSelector: {matchLabels: {app: manager}}}]}
`, manager)
	const placement = `{priorityClassName: mine, nodeSelector: {pool: mine}, tolerations: [{key: mine, operator: Exists}], affinity: {}}`
	inherits := func(w *world) { w.observed.Settings.Inherited = podspec.InheritedFrom(manager) }
	cases := map[string]struct {
		policy func(*world)
		pod    func(*world) corev1.PodSpec
	}{
		"a converter": {inherits, converterPod},
		"a converter with settings": {func(w *world) {
			inherits(w)
			read(w.t, placement, w.observed.Policy.Spec.Workload.Dedicated)
		}, converterPod},
		"a migration": {inherits, migrationPod},
		"a migration with settings": {func(w *world) {
			inherits(w)
			read(w.t, placement, &w.observed.Policy.Spec.Migration.Workload)
		}, migrationPod},
	}
	for name, tolerations := range map[string]string{
		"by default":                "[]",
		"of another taint":          "[{key: dedicated, operator: Exists}]",
		"one of them":               "[{key: node.kubernetes.io/unreachable, operator: Exists, effect: NoExecute, tolerationSeconds: 5}]",
		"without an effect":         "[{key: node.kubernetes.io/unreachable, operator: Exists, tolerationSeconds: 5}]",
		"not for running pods":      "[{key: node.kubernetes.io/unreachable, operator: Exists, effect: NoSchedule}]",
		"every taint":               "[{operator: Exists}]",
		"every taint for a while":   "[{operator: Exists, effect: NoExecute, tolerationSeconds: 7}]",
		"every taint when starting": "[{operator: Exists, effect: NoSchedule}]",
	} {
		cases["tolerations: "+name] = struct {
			policy func(*world)
			pod    func(*world) corev1.PodSpec
		}{func(w *world) { read(w.t, "tolerations: "+tolerations, w.observed.Policy.Spec.Workload.Dedicated) }, converterPod}
	}
	placed := map[string]corev1.PodSpec{}
	for name, c := range cases {
		w := newWorld(t, policyYAML)
		c.policy(w)
		pod := c.pod(w)
		placed[name] = corev1.PodSpec{ImagePullSecrets: pod.ImagePullSecrets, PriorityClassName: pod.PriorityClassName,
			NodeSelector: pod.NodeSelector, Affinity: pod.Affinity, Tolerations: pod.Tolerations}
	}
	text, err := yaml.Marshal(placed)
	expect.NoError(t, err)
	golden.Check(t, string(text), "shapes", "placement.yaml")
}

func converterPod(w *world) corev1.PodSpec {
	w.define(bothStoredNew)
	return podsOf(w.t, w).Spec
}

func migrationPod(w *world) corev1.PodSpec {
	w.migrating()
	return w.observed.Runs[0].Job.Spec.Template.Spec
}

// TestShapes records the objects of pods with settings: what spec.workload says is in the Deployment. An image gets
// the certificate where it looks for it, and a token only with an account of its own; patches may change what is
// its author's.
func TestShapes(t *testing.T) {
	const everything = `
replicas: 3
resources: {requests: {cpu: 1}}
priorityClassName: system-cluster-critical
nodeSelector: {pool: system}
tolerations: [{key: dedicated, operator: Equal, value: system, effect: NoSchedule}]
affinity: {nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: [{matchExpressions: [{key: arch, operator: In, values: [amd64]}]}]}}}
topologySpreadConstraints: [{maxSkew: 2, topologyKey: rack, whenUnsatisfiable: DoNotSchedule}, {maxSkew: 1, topologyKey: zone, whenUnsatisfiable: ScheduleAnyway, labelSelector: {matchLabels: {a: b}}}]
hostNetwork: true
port: 10250
`
	const patches = `
- target: {kind: Deployment}
  patch: |
    apiVersion: apps/v1
    kind: Deployment
    metadata: {name: any}
    spec: {template: {spec: {securityContext: {runAsUser: 1234}, containers: [{name: converter, image: another, imagePullPolicy: Always}]}}}
`
	rules, image := active(t), activeBy(t, imageYAML)
	read(t, everything, &rules.observed.Policy.Spec.Workload.Dedicated)
	image.observed.Policy.Spec.Converter.Image.ServiceAccountName = "reader"
	read(t, patches, &image.observed.Policy.Spec.Workload.Dedicated.Patches)
	image.converge()
	for name, w := range map[string]*world{"rules": rules, "image": image} {
		text, err := yaml.Marshal([]any{deploymentOf(t, w), serviceOf(t, w), budgetOf(t, w)})
		expect.NoError(t, err)
		golden.Check(t, string(text), "shapes", name+".yaml")
	}
}

// TestReassert: patches cannot take from the operator what it needs, and can do all else.
func TestReassert(t *testing.T) {
	plain, patched := active(t), active(t)
	for _, w := range []*world{plain, patched} {
		read(t, "{requests: {cpu: 50m}, limits: {memory: 256Mi}}", &w.observed.Policy.Spec.Workload.Dedicated.Resources)
	}
	hostile, err := os.ReadFile(filepath.Join("testdata", "shapes", "hostile-patches.yaml"))
	expect.NoError(t, err)
	read(t, string(hostile), &patched.observed.Policy.Spec.Workload.Dedicated.Patches)

	want, got := deploymentOf(t, plain), deploymentOf(t, patched)
	if len(got.Spec.Template.Spec.Containers) != 2 {
		t.Fatalf("containers are %v, want one more", got.Spec.Template.Spec.Containers)
	}
	container := &want.Spec.Template.Spec.Containers[0]
	container.WithEnv(corev1apply.EnvVar().WithName("GODEBUG").WithValue("x509negativeserial=1"))
	want.Spec.Template.Spec.Containers = append([]corev1apply.ContainerApplyConfiguration{
		*corev1apply.Container().WithName("side").WithImage("theirs")}, *container)
	expect.Equal(t, "Deployment", want, got)

	service := serviceOf(t, plain)
	service.Spec.WithType("NodePort").WithPorts(corev1apply.ServicePort().WithName("other").WithPort(80))
	expect.Equal(t, "Service", service, serviceOf(t, patched))
	budget := budgetOf(t, patched)
	if budget.Spec.MaxUnavailable != nil || budget.Spec.MinAvailable.IntVal != 1 || *budget.Name != names.Child(crontabs) ||
		cmp.Diff(budgetOf(t, plain).Spec.Selector, budget.Spec.Selector) != "" {
		t.Errorf("the PodDisruptionBudget is %v", budget.Spec)
	}
}

// patchChanges: a patch that cannot be applied is told with its place, and what runs is left unchanged.
func patchChanges() changes {
	const good = "{target: {kind: Deployment}, patch: '[{op: add, path: /spec/minReadySeconds, value: 1}]'}"
	all := changes{}
	for name, patch := range map[string]string{
		"no patch":         "{target: {kind: Deployment}, patch: x}",
		"no such kind":     "{target: {kind: DaemonSet}, patch: '[]'}",
		"a misspelt field": "{target: {kind: Deployment}, patch: '[{op: add, path: /spec/replica, value: 1}]'}",
		"a wrong type":     "{target: {kind: Deployment}, patch: '[{op: add, path: /spec/replicas, value: many}]'}",
		"no pods":          "{target: {kind: Deployment}, patch: '[{op: remove, path: /spec/template}]'}",
		"no converter":     "{target: {kind: Deployment}, patch: '[{op: replace, path: /spec/template/spec/containers/0/name, value: x}]'}",
		"no Service":       "{target: {kind: Service}, patch: '[{op: remove, path: /spec}]'}",
		"an ExternalName":  "{target: {kind: Service}, patch: '[{op: add, path: /spec/type, value: ExternalName}]'}",
		"no budget":        "{target: {kind: PodDisruptionBudget}, patch: '[{op: remove, path: /spec}]'}",
		"deleted":          "{target: {kind: Service}, patch: '{apiVersion: v1, kind: Service, metadata: {name: x}, $patch: delete}'}",
	} {
		all[name] = func(w *world) { read(w.t, "["+good+", "+patch+"]", &w.observed.Policy.Spec.Workload.Dedicated.Patches) }
	}
	return all
}
