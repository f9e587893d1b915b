//go:build integration

// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	policyv1 "k8s.io/api/policy/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
	"github.com/conversion-operator/conversion-operator/internal/plan/names"
	"github.com/conversion-operator/conversion-operator/internal/test/expect"
	"github.com/conversion-operator/conversion-operator/internal/test/testenv"
	"github.com/conversion-operator/conversion-operator/internal/webhook/probe"
)

// ownPolicy returns a policy with a converter of the user.
func ownPolicy(group, converter string) string {
	return fmt.Sprintf("metadata: {name: crontabs.%s}\nspec: {converter: {%s}, migration: {mode: OnTrigger}}", group, converter)
}

// deploymentsOf returns a policy's Deployments, by image.
func deploymentsOf(t *testing.T, policy string) map[string]appsv1.Deployment {
	t.Helper()
	list := &appsv1.DeploymentList{}
	expect.NoError(t, cluster.List(t.Context(), list, client.InNamespace(system), client.MatchingLabels{names.InstanceLabel: names.Child(policy)}, client.HasLabels{names.RevisionLabel}))
	found := map[string]appsv1.Deployment{}
	for _, deployment := range list.Items {
		found[deployment.Spec.Template.Spec.Containers[0].Image] = deployment
	}
	return found
}

// runImage starts the pods of an image after its Deployment was created.
func (k *kubelet) runImage(t *testing.T, policy, image string) {
	t.Helper()
	var deployment appsv1.Deployment
	expect.Eventually(t, "there is a Deployment of "+image, func() (bool, string) {
		found, there := deploymentsOf(t, policy)[image]
		deployment = found
		return there, "none"
	})
	for i := range *deployment.Spec.Replicas {
		testenv.RunPod(t, cluster, &deployment, testenv.Pod{Name: fmt.Sprintf("%s-%d", deployment.Name, i), IP: fmt.Sprintf("10.1.2.%d", i+1), Node: "node"})
	}
	port := deployment.Spec.Template.Spec.Containers[0].Ports[0]
	testenv.Expose(t, cluster, client.ObjectKey{Namespace: system, Name: names.Child(policy)}, map[string]string{names.InstanceLabel: names.Child(policy)},
		"10.1.2.1", map[string]int32{port.Name: port.ContainerPort})
}

// TestImage activates an image, and changes it. A bad image does not replace the one that serves.
func TestImage(t *testing.T) {
	const group, name = "image.example.com", "crontabs.image.example.com"
	create(t, manifest(group, "v1beta1", "v1"), &apiextensionsv1.CustomResourceDefinition{})
	create(t, ownPolicy(group, "image: {reference: 'example.com/crontab:1', env: [{name: A, value: b}], path: /their/convert}"), &v1alpha1.ConversionPolicy{})
	pods.runImage(t, name, "example.com/crontab:1")
	waitFor(t, name, v1alpha1.ReadyCondition, metav1.ConditionTrue, v1alpha1.ReasonSucceeded)
	if verified := waitFor(t, name, v1alpha1.ConversionVerifiedCondition, metav1.ConditionTrue, v1alpha1.ReasonVerified); !strings.Contains(verified.Message, "warning: it is a fake") {
		t.Errorf("the probe's warning is missing: %s", verified.Message)
	}
	first := getCRD(t, name).Spec.Conversion.Webhook.ClientConfig.Service
	if *first.Path != "/their/convert" || *first.Port != 444 {
		t.Errorf("the CustomResourceDefinition calls %s at port %d", *first.Path, *first.Port)
	}
	checkIdle(t, name)

	serverName := names.ServerName(name, system)
	pods.refuseOwn.Store(serverName, &probe.Error{Reason: probe.ReasonCanaryFailed, Message: "metadata.name is another"})
	setImage(t, name, "example.com/crontab:2")
	pods.runImage(t, name, "example.com/crontab:2")
	refused := waitFor(t, name, v1alpha1.ConversionVerifiedCondition, metav1.ConditionFalse, string(probe.ReasonCanaryFailed))
	if !strings.Contains(refused.Message, "metadata.name is another; still uses the previous image") {
		t.Errorf("the message is %s", refused.Message)
	}
	if port := *getCRD(t, name).Spec.Conversion.Webhook.ClientConfig.Service.Port; port != 444 || len(deploymentsOf(t, name)) != 2 {
		t.Errorf("the CustomResourceDefinition calls port %d, Deployments are %v", port, deploymentsOf(t, name))
	}

	pods.refuseOwn.Delete(serverName)
	expect.Eventually(t, "the new image serves", func() (bool, string) {
		port := *getCRD(t, name).Spec.Conversion.Webhook.ClientConfig.Service.Port
		return port == 445, fmt.Sprint(port)
	})
	expect.Eventually(t, "the old image is gone", func() (bool, string) {
		_, there := deploymentsOf(t, name)["example.com/crontab:1"]
		return !there, "still there"
	})
	budget := &policyv1.PodDisruptionBudget{}
	expect.Eventually(t, "the PodDisruptionBudget is of the new pods", func() (bool, string) {
		expect.NoError(t, cluster.Get(t.Context(), client.ObjectKey{Namespace: system, Name: names.Child(name)}, budget))
		deployment := deploymentsOf(t, name)["example.com/crontab:2"]
		return budget.Spec.Selector.MatchLabels[names.RevisionLabel] == deployment.Labels[names.RevisionLabel], budget.Spec.Selector.String()
	})
}

func setImage(t *testing.T, name, image string) {
	t.Helper()
	changePolicy(t, name, func(spec *v1alpha1.ConversionPolicySpec) { spec.Converter.Image.Reference = image })
}

// changePolicy changes the spec, and retries after a conflict.
func changePolicy(t *testing.T, name string, change func(*v1alpha1.ConversionPolicySpec)) {
	t.Helper()
	policy := getPolicy(t, name)
	base := policy.DeepCopy()
	change(&policy.Spec)
	expect.NoError(t, cluster.Patch(t.Context(), policy, client.MergeFrom(base)))
}

// TestForeignService: each endpoint of a converter that users run is probed.
func TestForeignService(t *testing.T) {
	const group, name, theirs = "service.example.com", "crontabs.service.example.com", "crontab-system"
	expect.NoError(t, cluster.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: theirs}}))
	pods.refuseOwn.Store("webhook.crontab-system.svc", &probe.Error{Reason: probe.ReasonTLSVerificationFailed, Message: "x509: certificate signed by unknown authority"})
	create(t, manifest(group, "v1beta1", "v1"), &apiextensionsv1.CustomResourceDefinition{})
	create(t, ownPolicy(group, "service: {namespace: crontab-system, name: webhook, port: 8443}"), &v1alpha1.ConversionPolicy{})
	missing := waitFor(t, name, v1alpha1.WebhookAvailableCondition, metav1.ConditionFalse, v1alpha1.ReasonServiceNotFound)
	if !strings.Contains(missing.Message, "Service crontab-system/webhook does not exist") {
		t.Errorf("the message is %s", missing.Message)
	}
	checkDescription(t, "missing-service", name)

	service := create(t, "metadata: {namespace: crontab-system, name: webhook}\nspec: {ports: [{name: https, port: 443}]}", &corev1.Service{})
	expect.Eventually(t, "the port is missed", func() (bool, string) {
		condition := waitFor(t, name, v1alpha1.WebhookAvailableCondition, metav1.ConditionFalse, v1alpha1.ReasonServiceNotFound)
		return strings.Contains(condition.Message, "has no port 8443: it has [443]"), condition.Message
	})
	service.Spec.Ports[0].Port = 8443
	expect.NoError(t, cluster.Update(t.Context(), service))
	waitFor(t, name, v1alpha1.WebhookAvailableCondition, metav1.ConditionFalse, v1alpha1.ReasonWaitingForEndpoints)

	create(t, `
metadata: {namespace: crontab-system, name: webhook-1, labels: {kubernetes.io/service-name: webhook}}
addressType: IPv4
ports: [{name: https, port: 9443}, {name: metrics, port: 8080}]
endpoints: [{addresses: [10.9.9.1], conditions: {ready: true}}, {addresses: [10.9.9.2], conditions: {ready: false}}]
`, &discoveryv1.EndpointSlice{})
	refused := waitFor(t, name, v1alpha1.ConversionVerifiedCondition, metav1.ConditionFalse, string(probe.ReasonTLSVerificationFailed))
	if !strings.Contains(refused.Message, "endpoint 10.9.9.1:9443 of Service crontab-system/webhook: x509") {
		t.Errorf("the message is %s", refused.Message)
	}
	if getCRD(t, name).Generation != 1 {
		t.Error("the CustomResourceDefinition was changed")
	}
	checkDescription(t, "refused-certificate", name)
	pods.refuseOwn.Delete("webhook.crontab-system.svc")
	waitFor(t, name, v1alpha1.ReadyCondition, metav1.ConditionTrue, v1alpha1.ReasonSucceeded)
	called := getCRD(t, name).Spec.Conversion.Webhook.ClientConfig
	if called.Service.Namespace != theirs || called.Service.Name != "webhook" || *called.Service.Port != 8443 || *called.Service.Path != "/convert" || len(called.CABundle) == 0 {
		t.Errorf("the CustomResourceDefinition calls %+v", called.Service)
	}
}

// TestURL: a converter outside the cluster.
func TestURL(t *testing.T) {
	const group, name = "url.example.com", "crontabs.url.example.com"
	create(t, manifest(group, "v1beta1", "v1"), &apiextensionsv1.CustomResourceDefinition{})
	create(t, ownPolicy(group, "url: 'https://converter.example.org/crontabs', conversionReviewVersions: [v1beta1, v1]"), &v1alpha1.ConversionPolicy{})
	waitFor(t, name, v1alpha1.ReadyCondition, metav1.ConditionTrue, v1alpha1.ReasonSucceeded)
	webhook := getCRD(t, name).Spec.Conversion.Webhook
	if *webhook.ClientConfig.URL != "https://converter.example.org/crontabs" || fmt.Sprint(webhook.ConversionReviewVersions) != "[v1beta1 v1]" {
		t.Errorf("the CustomResourceDefinition has %+v", webhook)
	}
}

// TestNone: strategy None is used if no field is lost, or only fields that the policy gives up.
func TestNone(t *testing.T) {
	const group, name = "none.example.com", "crontabs.none.example.com"
	create(t, manifest(group, "v1beta1", "v1"), &apiextensionsv1.CustomResourceDefinition{})
	create(t, ownPolicy(group, "none: {acceptedLosses: [.hostPort]}"), &v1alpha1.ConversionPolicy{})
	differ := waitFor(t, name, v1alpha1.RulesValidCondition, metav1.ConditionFalse, v1alpha1.ReasonSchemasDiffer)
	if !strings.Contains(differ.Message, "v1:.host, v1:.port") || strings.Contains(differ.Message, ".hostPort") {
		t.Errorf("the message does not name what would be lost: %s", differ.Message)
	}
	changePolicy(t, name, func(spec *v1alpha1.ConversionPolicySpec) {
		spec.Converter.None.AcceptedLosses = []string{".hostPort", ".host", ".port"}
	})
	waitFor(t, name, v1alpha1.RulesValidCondition, metav1.ConditionTrue, v1alpha1.ReasonLossAccepted)
	waitFor(t, name, v1alpha1.ReadyCondition, metav1.ConditionTrue, v1alpha1.ReasonSucceeded)
	if crd := getCRD(t, name); crd.Generation != 1 || crd.Spec.Conversion.Strategy != apiextensionsv1.NoneConverter {
		t.Errorf("the conversion is %+v", crd.Spec.Conversion)
	}
	err := cluster.Get(t.Context(), client.ObjectKey{Namespace: system, Name: names.Child(name)}, &corev1.Service{})
	if !apierrors.IsNotFound(err) {
		t.Errorf("a Service was made: %v", err)
	}
}

// TestPatches: the API server accepts the patched objects. A bad patch is reported and changes
// nothing.
func TestPatches(t *testing.T) {
	const group, name = "patched.example.com", "crontabs.patched.example.com"
	create(t, manifest(group, "v1beta1"), &apiextensionsv1.CustomResourceDefinition{})
	patched := &v1alpha1.ConversionPolicy{}
	unmarshal(t, policy(group), patched)
	unmarshal(t, `
priorityClassName: system-cluster-critical
tolerations: [{operator: Exists}]
topologySpreadConstraints: [{maxSkew: 1, topologyKey: rack, whenUnsatisfiable: ScheduleAnyway}]
affinity: {podAntiAffinity: {requiredDuringSchedulingIgnoredDuringExecution: [{topologyKey: kubernetes.io/hostname, labelSelector: {matchLabels: {a: b}}}]}}
port: 10250
patches:
- target: {kind: Deployment}
  patch: |
    apiVersion: apps/v1
    kind: Deployment
    metadata: {name: any}
    spec: {template: {spec: {containers: [{name: converter, image: evil, env: [{name: A, value: b}]}, {name: side, image: side}]}}}
- target: {kind: Service}
  patch: '[{op: add, path: /spec/trafficDistribution, value: PreferClose}]'
- target: {kind: PodDisruptionBudget}
  patch: '[{op: add, path: /spec/minAvailable, value: 1}]'
`, &patched.Spec.Workload)
	expect.NoError(t, cluster.Create(t.Context(), patched))
	pods.run(t, name)
	waitFor(t, name, v1alpha1.ReadyCondition, metav1.ConditionTrue, v1alpha1.ReasonWaitingForVersion)
	deployment := &appsv1.Deployment{}
	key := client.ObjectKey{Namespace: system, Name: names.Child(name)}
	expect.NoError(t, cluster.Get(t.Context(), key, deployment))
	spec := deployment.Spec.Template.Spec
	if len(spec.Containers) != 2 || spec.Containers[0].Image != "conversion-operator:test" || len(spec.Containers[0].Env) != 1 || spec.PriorityClassName != "system-cluster-critical" {
		t.Errorf("the pods are %+v", spec)
	}
	budget := &policyv1.PodDisruptionBudget{}
	expect.NoError(t, cluster.Get(t.Context(), key, budget))
	if budget.Spec.MaxUnavailable != nil || budget.Spec.MinAvailable.IntValue() != 1 {
		t.Errorf("the PodDisruptionBudget is %+v", budget.Spec)
	}
	checkIdle(t, name)

	changePolicy(t, name, func(spec *v1alpha1.ConversionPolicySpec) {
		spec.Workload.Patches[1].Patch = "[{op: remove, path: /spec/nothing}]"
	})
	condition := waitFor(t, name, v1alpha1.RulesValidCondition, metav1.ConditionFalse, v1alpha1.ReasonInvalidPatch)
	if !strings.HasPrefix(condition.Message, "spec.workload.patches[1]: ") {
		t.Errorf("the message is %s", condition.Message)
	}
	checkIdle(t, name)
	after := &appsv1.Deployment{}
	expect.NoError(t, cluster.Get(t.Context(), key, after))
	if after.Generation != deployment.Generation {
		t.Error("the Deployment was changed")
	}
}

// TestAdmissionOfConverters checks each validation rule of converters and workload with an
// accepted and a refused policy.
func TestAdmissionOfConverters(t *testing.T) {
	cases := map[string]struct{ spec, want string }{
		"an image":                  {"converter: {image: {reference: a}}", ""},
		"all of an image":           {"converter: {image: {reference: a, command: [a], args: [b], env: [{name: A, value: b}], port: 1, path: /a/b.c/, certificateMountPath: /certs, serviceAccountName: a}, conversionReviewVersions: [v1beta1]}", ""},
		"no image":                  {"converter: {image: {}}", "image"},
		"a path without a slash":    {"converter: {image: {reference: a, path: convert}}", "path"},
		"a path with a query":       {"converter: {image: {reference: a, path: '/convert?a=b'}}", "path"},
		"a relative mount":          {"converter: {image: {reference: a, certificateMountPath: certs}}", "certificateMountPath"},
		"reviews without a webhook": {"converter: {none: {}, conversionReviewVersions: [v1]}", "conversionReviewVersions must be empty unless image, service or url is set"},
		"an unknown review":         {"converter: {image: {reference: a}, conversionReviewVersions: [v2]}", "Unsupported value"},
		"reviews of three versions": {"converter: {image: {reference: a}, conversionReviewVersions: [v1, v1beta1, v1]}", "at most 2"},
		"a Service":                 {"converter: {service: {namespace: a, name: b}}", ""},
		"a Service without a name":  {"converter: {service: {namespace: a}}", "name"},
		"a URL":                     {"converter: {url: 'https://example.com:8443/convert'}", ""},
		"a URL without TLS":         {"converter: {url: 'http://example.com'}", "url"},
		"a URL with a password":     {"converter: {url: 'https://a:b@example.com/'}", "url"},
		"a URL with a query":        {"converter: {url: 'https://example.com/?a'}", "url"},
		"none":                      {"converter: {none: {}}", ""},
		"losses":                    {"converter: {none: {acceptedLosses: [.spec.a]}}", ""},
		"losses that are no paths":  {"converter: {none: {acceptedLosses: [spec]}}", "acceptedLosses"},
		"two kinds":                 {"converter: {none: {}, url: 'https://example.com'}", "set exactly one kind of converter"},
		"a patch":                   {"converter: {none: {}}, workload: {patches: [{target: {kind: Deployment}, patch: x}]}", ""},
		"an empty patch":            {"converter: {none: {}}, workload: {patches: [{target: {kind: Deployment}, patch: ''}]}", "patch"},
		"an empty target":           {"converter: {none: {}}, workload: {patches: [{target: {}, patch: x}]}", "target"},
		"the port of the metrics":   {"converter: {none: {}}, workload: {port: 8080}", "choose another port"},
		"a port that is none":       {"converter: {none: {}}, workload: {port: 70000}", "port"},
		"a constraint twice":        {"converter: {none: {}}, workload: {topologySpreadConstraints: [{maxSkew: 1, topologyKey: a, whenUnsatisfiable: ScheduleAnyway}, {maxSkew: 2, topologyKey: a, whenUnsatisfiable: ScheduleAnyway}]}", "Duplicate value"},
	}
	for title, c := range cases {
		t.Run(title, func(t *testing.T) {
			policy := &v1alpha1.ConversionPolicy{}
			unmarshal(t, "metadata: {name: crontabs.example.com}\nspec: {"+c.spec+"}", policy)
			checkRefusal(t, policy, c.want)
		})
	}
}

// TestDocumentedPolicies: the API server accepts the policies in the documentation.
func TestDocumentedPolicies(t *testing.T) {
	var blocks [][]string
	for page, least := range map[string]int{"own-converter.md": 7, "retiring.md": 2} {
		text, err := os.ReadFile("../api/docs/" + page)
		expect.NoError(t, err)
		examples := regexp.MustCompile("(?s)```yaml\n(.*?)```").FindAllStringSubmatch(string(text), -1)
		if len(examples) < least {
			t.Fatalf("found %d examples in %s", len(examples), page)
		}
		blocks = append(blocks, examples...)
	}
	sample, err := os.ReadFile("../config/samples/crontab-image/policy.yaml")
	expect.NoError(t, err)
	for _, block := range append(blocks, []string{"", string(sample)}) {
		policy := &v1alpha1.ConversionPolicy{}
		unmarshal(t, block[1], policy)
		policy.Name = "crontabs.documented.example.com"
		if policy.Spec.Converter.Kind() == "unknown" {
			policy.Spec.Converter.None = &v1alpha1.NoneConverter{} // the example is of something else
		}
		if err := cluster.Create(t.Context(), policy, client.DryRunAll); err != nil {
			t.Errorf("%v:\n%s", err, block[1])
		}
	}
}
