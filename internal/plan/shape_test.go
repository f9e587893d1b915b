// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package plan_test

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	appsv1apply "k8s.io/client-go/applyconfigurations/apps/v1"
	corev1apply "k8s.io/client-go/applyconfigurations/core/v1"
	policyv1apply "k8s.io/client-go/applyconfigurations/policy/v1"
	"k8s.io/utils/ptr"

	"github.com/conversion-operator/conversion-operator/internal/plan/names"
	"github.com/conversion-operator/conversion-operator/internal/plan/podspec"
	"github.com/conversion-operator/conversion-operator/internal/plan/step"
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

// TestInherited: converter and migration pods take from the manager's pod what their policy does not
// set. A toleration of the manager does not keep converter pods on a lost node.
func TestInherited(t *testing.T) {
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
	const inherited = `
imagePullSecrets: [{name: registry}]
priorityClassName: platform
nodeSelector: {pool: platform, kubernetes.io/os: linux}
affinity: {nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: [{matchExpressions: [{key: arch, operator: In, values: [amd64]}]}]}}}
tolerations:
- {operator: Exists}
`
	const own = `
imagePullSecrets: [{name: registry}]
priorityClassName: mine
nodeSelector: {pool: mine, kubernetes.io/os: linux}
affinity: {}
tolerations:
- {key: mine, operator: Exists}
`
	const leaves = `
- {key: node.kubernetes.io/not-ready, operator: Exists, effect: NoExecute, tolerationSeconds: 30}
- {key: node.kubernetes.io/unreachable, operator: Exists, effect: NoExecute, tolerationSeconds: 30}
`
	cases := map[string]struct {
		policy func(*world)
		pod    func(*world) corev1.PodSpec
		want   string
	}{
		"a converter":               {func(*world) {}, converterPod, inherited + leaves},
		"a converter with settings": {func(w *world) { read(w.t, placement, w.observed.Policy.Spec.Workload) }, converterPod, own + leaves},
		"a migration":               {func(*world) {}, migrationPod, inherited},
		"a migration with settings": {func(w *world) { read(w.t, placement, &w.observed.Policy.Spec.Migration.Workload) }, migrationPod, own},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, policyYAML)
			w.observed.Settings.Inherited = podspec.InheritedFrom(manager)
			c.policy(w)
			var want corev1.PodSpec
			read(t, c.want, &want)
			got := c.pod(w)
			if diff := cmp.Diff(want, corev1.PodSpec{
				ImagePullSecrets: got.ImagePullSecrets, PriorityClassName: got.PriorityClassName, NodeSelector: got.NodeSelector,
				Affinity: got.Affinity, Tolerations: got.Tolerations,
			}); diff != "" {
				t.Errorf("pod (-want +got):\n%s", diff)
			}
		})
	}
}

func converterPod(w *world) corev1.PodSpec {
	w.define(bothStoredNew)
	return podsOf(w.t, w).Spec
}

func migrationPod(w *world) corev1.PodSpec {
	w.migrating()
	return w.observed.Runs[0].Job.Spec.Template.Spec
}

// TestShape: what spec.workload says of the pods is in the Deployment.
func TestShape(t *testing.T) {
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
	w := active(t)
	read(t, everything, &w.observed.Policy.Spec.Workload)
	d := deploymentOf(t, w)
	var want corev1apply.PodSpecApplyConfiguration
	read(t, `
priorityClassName: system-cluster-critical
nodeSelector: {pool: system, kubernetes.io/os: linux}
tolerations:
- {key: dedicated, operator: Equal, value: system, effect: NoSchedule}
- {key: node.kubernetes.io/not-ready, operator: Exists, effect: NoExecute, tolerationSeconds: 30}
- {key: node.kubernetes.io/unreachable, operator: Exists, effect: NoExecute, tolerationSeconds: 30}
affinity: {nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: [{matchExpressions: [{key: arch, operator: In, values: [amd64]}]}]}}}
topologySpreadConstraints:
- {maxSkew: 2, topologyKey: rack, whenUnsatisfiable: DoNotSchedule, labelSelector: {matchLabels: {app.kubernetes.io/component: converter, app.kubernetes.io/instance: crontabs-example-com-d884ab8c}}}
- {maxSkew: 1, topologyKey: zone, whenUnsatisfiable: ScheduleAnyway, labelSelector: {matchLabels: {a: b}}}
hostNetwork: true
`, &want)
	got := d.Spec.Template.Spec
	if diff := cmp.Diff(want, corev1apply.PodSpecApplyConfiguration{
		PriorityClassName: got.PriorityClassName, NodeSelector: got.NodeSelector, Tolerations: got.Tolerations, Affinity: got.Affinity,
		TopologySpreadConstraints: got.TopologySpreadConstraints, HostNetwork: got.HostNetwork,
	}); diff != "" {
		t.Errorf("pod (-want +got):\n%s", diff)
	}
	container := got.Containers[0]
	if diff := cmp.Diff([]string{"serve", "--rulesets=/etc/conversion-operator/rulesets", "--certificates=/etc/conversion-operator/tls",
		"--bind-address=:10250", "--metrics-bind-address=0", "--drain=100s"}, container.Args); diff != "" {
		t.Errorf("arguments (-want +got):\n%s", diff)
	}
	if len(container.Ports) != 1 || *container.Ports[0].ContainerPort != 10250 || container.ReadinessProbe.HTTPGet.Port.IntVal != 10250 {
		t.Errorf("ports are %v, readiness is asked at %v", container.Ports, container.ReadinessProbe.HTTPGet.Port)
	}
	if *d.Spec.Replicas != 3 || d.Spec.Strategy.RollingUpdate.MaxUnavailable.IntVal != 1 || container.Resources.Requests.Cpu().String() != "1" {
		t.Errorf("replicas, strategy or resources are not as they should be: %v", d.Spec)
	}
}

// TestLostNodes: pods leave a lost node after 30 seconds, or when the policy says.
func TestLostNodes(t *testing.T) {
	cases := map[string]struct {
		tolerations string
		want        []int64
	}{
		"by default":       {"[]", []int64{30, 30}},
		"of another taint": {"[{key: dedicated, operator: Exists}]", []int64{0, 30, 30}},
		"one of them": {"[{key: node.kubernetes.io/unreachable, operator: Exists, effect: NoExecute, tolerationSeconds: 5}]",
			[]int64{5, 30}},
		"without an effect":         {"[{key: node.kubernetes.io/unreachable, operator: Exists, tolerationSeconds: 5}]", []int64{5, 30}},
		"not for running pods":      {"[{key: node.kubernetes.io/unreachable, operator: Exists, effect: NoSchedule}]", []int64{0, 30, 30}},
		"every taint":               {"[{operator: Exists}]", []int64{0}},
		"every taint for a while":   {"[{operator: Exists, effect: NoExecute, tolerationSeconds: 7}]", []int64{7}},
		"every taint when starting": {"[{operator: Exists, effect: NoSchedule}]", []int64{0, 30, 30}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			w := active(t)
			read(t, "tolerations: "+tc.tolerations, &w.observed.Policy.Spec.Workload)
			var got []int64
			for _, toleration := range podsOf(t, w).Spec.Tolerations {
				got = append(got, ptr.Deref(toleration.TolerationSeconds, 0))
			}
			if !slices.Equal(got, tc.want) {
				t.Errorf("pods tolerate for %v seconds, want %v", got, tc.want)
			}
		})
	}
}

// hostile patches change all that the operator needs, and one thing that it does not.
const hostile = `
- target: {kind: Deployment}
  patch: |
    apiVersion: apps/v1
    kind: Deployment
    metadata: {name: any}
    spec:
      replicas: 7
      paused: true
      strategy: {type: Recreate, rollingUpdate: null}
      template:
        spec:
          serviceAccountName: cluster-admin
          serviceAccount: cluster-admin
          automountServiceAccountToken: true
          hostNetwork: true
          securityContext: {runAsUser: 0, runAsNonRoot: false}
          volumes: [{name: tls, secret: {secretName: another}}]
          containers:
          - {name: side, image: theirs}
          - name: converter
            image: theirs
            command: [sh]
            args: [none]
            env: [{name: GODEBUG, value: x509negativeserial=1}]
            ports: [{name: https, containerPort: 9443, hostPort: 9443}]
            securityContext: {privileged: true}
            readinessProbe: {httpGet: {path: /, port: 1}}
- target: {kind: Deployment|Service|PodDisruptionBudget}
  patch: |
    - {op: replace, path: /metadata/name, value: another}
    - {op: replace, path: /metadata/namespace, value: another}
    - {op: remove, path: /metadata/labels}
    - {op: remove, path: /metadata/annotations}
    - {op: remove, path: /spec/selector}
- target: {kind: Deployment}
  patch: |
    - {op: remove, path: /spec/template/metadata}
    - {op: remove, path: /spec/template/spec/containers/1/volumeMounts}
- target: {kind: Service}
  patch: |
    - {op: replace, path: /spec/ports, value: [{name: other, port: 80}]}
    - {op: add, path: /spec/type, value: NodePort}
- target: {kind: PodDisruptionBudget}
  patch: '[{op: add, path: /spec/minAvailable, value: 1}]'
`

// TestReassert: patches cannot take from the operator what it needs, and can do all else.
func TestReassert(t *testing.T) {
	plain, patched := active(t), active(t)
	for _, w := range []*world{plain, patched} {
		read(t, "{requests: {cpu: 50m}, limits: {memory: 256Mi}}", &w.observed.Policy.Spec.Workload.Resources)
	}
	read(t, hostile, &patched.observed.Policy.Spec.Workload.Patches)

	want, got := deploymentOf(t, plain), deploymentOf(t, patched)
	if len(got.Spec.Template.Spec.Containers) != 2 {
		t.Fatalf("containers are %v, want one more", got.Spec.Template.Spec.Containers)
	}
	container := &want.Spec.Template.Spec.Containers[0]
	container.WithEnv(corev1apply.EnvVar().WithName("GODEBUG").WithValue("x509negativeserial=1"))
	want.Spec.Template.Spec.Containers = append([]corev1apply.ContainerApplyConfiguration{
		*corev1apply.Container().WithName("side").WithImage("theirs")}, *container)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("Deployment (-want +got):\n%s", diff)
	}

	service := serviceOf(t, plain)
	service.Spec.WithType("NodePort").WithPorts(corev1apply.ServicePort().WithName("other").WithPort(80))
	if diff := cmp.Diff(service, serviceOf(t, patched)); diff != "" {
		t.Errorf("Service (-want +got):\n%s", diff)
	}
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
		all[name] = func(w *world) { read(w.t, "["+good+", "+patch+"]", &w.observed.Policy.Spec.Workload.Patches) }
	}
	return all
}
