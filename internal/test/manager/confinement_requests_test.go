//go:build integration

// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"context"
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
	"github.com/conversion-operator/conversion-operator/internal/operator/plan/names"
	"github.com/conversion-operator/conversion-operator/internal/test/expect"
)

// TestConfinementOfRequests: what was accepted once, and requests for objects that the manager does not
// create, which TestConfinementOfFields does not try.
func TestConfinementOfRequests(t *testing.T) {
	t.Parallel()
	manager := asManager(t)
	accepted, refused := confinedRequests(t, manager, "requests")
	for name, write := range accepted {
		expect.Success(t, name+" is accepted", write)
	}
	for name, write := range refused {
		t.Run("refused: "+name, func(t *testing.T) { refuse(t, "the operator may", write) })
	}
}

// confinedRequests are dry runs. They are about objects that the manager did not create, and that have the name.
func confinedRequests(t *testing.T, manager client.Client, name string) (accepted, refused map[string]func(context.Context) error) {
	t.Helper()
	here := func(name string) metav1.ObjectMeta {
		return metav1.ObjectMeta{Namespace: system, Name: name, Labels: names.FleetLabels(name)}
	}
	event := func(namespace, by string) *eventsv1.Event {
		return &eventsv1.Event{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name + "-" + by}, EventTime: metav1.NowMicro(), ReportingController: by,
			ReportingInstance: "a", Action: "A", Reason: "A", Type: "Normal", Regarding: corev1.ObjectReference{Namespace: namespace}}
	}
	theirs, own := event("default", "theirs"), event(system, names.ManagedBy)
	foreign := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: system, Name: name}}
	policy := create(t, `{metadata: {name: "crontabs.`+name+`.example.com", finalizers: [conversion-operator.io/policy]}, spec: {paused: true, converter: {type: None}}}`, &v1alpha1.ConversionPolicy{})
	for _, object := range []client.Object{theirs, own, foreign} {
		expect.NoError(t, cluster.Create(t.Context(), object))
	}
	t.Cleanup(func() {
		ctx := context.WithoutCancel(t.Context())
		expect.NoError(t, cluster.Patch(ctx, policy, client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`))))
		for _, object := range []client.Object{theirs, own, foreign, policy} {
			expect.NoError(t, cluster.Delete(ctx, object))
		}
	})
	made := func(object client.Object) func(context.Context) error { return creating(manager, object) }
	patched := func(object client.Object, text string) func(context.Context) error {
		return func(ctx context.Context) error {
			return manager.Patch(ctx, object.DeepCopyObject().(client.Object), client.RawPatch(types.MergePatchType, []byte(text)), client.DryRunAll) //nolint:forcetypeassert // a copy is of the same type
		}
	}
	converter := func(change func(*corev1.PodSpec)) func(context.Context) error {
		labels := names.FleetLabels(name)
		pod := corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: restrictedPod(change)}
		return made(&appsv1.Deployment{ObjectMeta: here(name), Spec: appsv1.DeploymentSpec{Selector: &metav1.LabelSelector{MatchLabels: labels}, Template: pod}})
	}
	accepted = map[string]func(context.Context) error{
		"its event":      made(event("default", names.ManagedBy)),
		"its Lease":      made(&coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: system, Name: names.ManagedBy}}),
		"its finalizer":  patched(policy, `{"metadata": {"finalizers": null}}`),
		"its Deployment": converter(nil),
	}
	refused = map[string]func(context.Context) error{
		"a role in an aggregate": made(changed(granted(), func(r *rbacv1.ClusterRole) { r.Labels["rbac.authorization.k8s.io/aggregate-to-view"] = "true" })),
		"a Secret with a token": made(changed(&corev1.Secret{ObjectMeta: here("token"), Type: corev1.SecretTypeServiceAccountToken}, func(s *corev1.Secret) {
			s.Annotations = map[string]string{corev1.ServiceAccountNameKey: names.ManagedBy}
		})),
		"a Secret of another type": made(&corev1.Secret{ObjectMeta: here("opaque")}),
		"a Secret that is immutable": made(&corev1.Secret{ObjectMeta: here("immutable"), Type: corev1.SecretTypeTLS, Immutable: new(true),
			Data: map[string][]byte{corev1.TLSCertKey: {}, corev1.TLSPrivateKeyKey: {}}}),
		"a ConfigMap of another": made(changed(&corev1.ConfigMap{ObjectMeta: here("owned")}, func(c *corev1.ConfigMap) {
			c.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "Namespace", Name: "gone", UID: "84fc43f2-5ee2-4ffc-9e1d-6e5fdb4da2f1"}}
		})),
		"a Service with addresses": made(&corev1.Service{ObjectMeta: here("addresses"), Spec: corev1.ServiceSpec{ExternalIPs: []string{"192.0.2.1"},
			Ports: []corev1.ServicePort{{Port: 443}}, Selector: map[string]string{names.InstanceLabel: names.Fleet("addresses"), names.ComponentLabel: names.ConverterComponent}}}),
		"a Service for other pods": made(&corev1.Service{ObjectMeta: here("others"), Spec: corev1.ServiceSpec{
			Ports: []corev1.ServicePort{{Port: 443}}, Selector: map[string]string{"app": "another"}}}),
		"a pod":                           made(&corev1.Pod{ObjectMeta: here("pod"), Spec: restrictedPod(nil)}),
		"a pod with the host's processes": converter(func(pod *corev1.PodSpec) { pod.HostPID = true }),
		"a pod of any user":               converter(func(pod *corev1.PodSpec) { pod.SecurityContext = nil }),
		"a container with capabilities":   converter(func(pod *corev1.PodSpec) { pod.Containers[0].SecurityContext = nil }),
		"a port of the node": converter(func(pod *corev1.PodSpec) {
			pod.Containers[0].Ports = []corev1.ContainerPort{{ContainerPort: 8443, HostPort: 8443}}
		}),
		"a converter as the manager": converter(func(pod *corev1.PodSpec) { pod.ServiceAccountName = names.ManagedBy }),
		"a Job of no migration":      made(&batchv1.Job{ObjectMeta: here("job"), Spec: batchv1.JobSpec{Template: corev1.PodTemplateSpec{Spec: restrictedPod(func(pod *corev1.PodSpec) { pod.RestartPolicy = corev1.RestartPolicyNever })}}}),
		"a missing owner": patched(policy, `{"metadata": {"finalizers": null, "ownerReferences": [{"apiVersion": "v1", "kind": "Namespace", "name": "gone",
			"uid": "84fc43f2-5ee2-4ffc-9e1d-6e5fdb4da2f1"}]}}`),
		"a label of a policy":           patched(policy, `{"metadata": {"labels": {"a": "b"}}}`),
		"a label of its event":          patched(own, `{"metadata": {"labels": {"a": "b"}}}`),
		"a ConfigMap elsewhere":         made(changed(&corev1.ConfigMap{ObjectMeta: here("elsewhere")}, func(c *corev1.ConfigMap) { c.Namespace = "default" })),
		"the deletion of a foreign one": func(ctx context.Context) error { return manager.Delete(ctx, foreign.DeepCopy(), client.DryRunAll) },
		"a foreign event":               patched(theirs, `{"metadata": {"labels": {"a": "b"}}}`),
		"an event by another":           made(event("kube-system", "theirs")),
		"a Lease elsewhere":             made(&coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: names.ManagedBy}}),
		"another Lease":                 made(&coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: system, Name: "theirs"}}),
		"a webhook of another kind of name": made(changed(sizeWebhooks(), func(c *admissionregistrationv1.ValidatingWebhookConfiguration) {
			c.Name = "another"
		})),
		"a webhook that waits": made(webhookOf(func(w *admissionregistrationv1.ValidatingWebhook) { w.TimeoutSeconds = new(int32(30)) })),
		"a probe that stays": func(ctx context.Context) error {
			return manager.Create(ctx, &unstructured.Unstructured{Object: map[string]any{"apiVersion": "probe.conversion-operator.io/v1", "kind": "ConversionProbe",
				"metadata": map[string]any{"name": name}}})
		},
	}
	return accepted, refused
}

// restrictedPod is what the restricted Pod Security Standard allows, with a change.
func restrictedPod(change func(*corev1.PodSpec)) corev1.PodSpec {
	pod := corev1.PodSpec{
		ServiceAccountName: "conversion-operator-converter",
		SecurityContext:    &corev1.PodSecurityContext{RunAsNonRoot: new(true), SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault}},
		Containers: []corev1.Container{{Name: "converter", Image: "a", SecurityContext: &corev1.SecurityContext{
			AllowPrivilegeEscalation: new(false), Capabilities: &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}}}}},
	}
	if change != nil {
		change(&pod)
	}
	return pod
}
