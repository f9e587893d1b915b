// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package chart

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"encoding/json"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"helm.sh/helm/v4/pkg/action"
	"helm.sh/helm/v4/pkg/chart/v2/loader"
	release "helm.sh/helm/v4/pkg/release/v1"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"

	"github.com/conversion-operator/conversion-operator/internal/test/expect"
)

// everything has the values of all components except granted-rights and single-replica, which remove
// objects.
func everything(t *testing.T) values {
	t.Helper()
	with := values{}
	for _, component := range namesIn(t, "components") {
		if component != "granted-rights" && component != "single-replica" {
			maps.Copy(with, valuesOf(component))
		}
	}
	return with
}

// TestLint: Helm's own checks find nothing, not even something to recommend except an icon.
func TestLint(t *testing.T) {
	lint := action.NewLint()
	lint.Strict = true
	for _, with := range []values{nil, everything(t)} {
		result := lint.Run([]string{folder}, with)
		for _, message := range result.Messages {
			if !strings.Contains(message.Err.Error(), "icon is recommended") {
				t.Errorf("%v", message)
			}
		}
		for _, err := range result.Errors {
			t.Error(err)
		}
	}
}

// TestRefused: wrong values are refused by name.
func TestRefused(t *testing.T) {
	for _, c := range []struct {
		values values
		want   string
	}{
		{values{"replicaCount": 3}, "additional properties 'replicaCount' not allowed"},
		{values{"image": values{"pullPolicy": "Always"}}, "at '/image': additional properties 'pullPolicy' not allowed"},
		{values{"replicas": 0}, "at '/replicas': minimum: got 0, want 1"},
		{values{"rights": "none"}, "at '/rights': value must be one of 'managed', 'granted'"},
		{values{"image": values{"digest": "abc"}}, "at '/image/digest': 'abc' does not match pattern"},
		{values{"commonLabels": values{"app.kubernetes.io/name": "other"}}, "invalid propertyName 'app.kubernetes.io/name'"},
		{values{"metricsCertificate": values{"enabled": true}}, "metricsCertificate.enabled needs certManager.enabled"},
		{values{"priorityClassName": "high", "critical": values{"enabled": true}}, "priorityClassName and critical.enabled exclude each other"},
		{values{"uninstallGuard": values{"enabled": "yes"}}, "at '/uninstallGuard/enabled': got string, want boolean"},
	} {
		if _, err := render("elsewhere", c.values); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("with %v, the error is %v, want %s", c.values, err, c.want)
		}
	}
}

// TestEveryValueIsDescribed: each value of the schema is in values.yaml. The schema refuses others.
func TestEveryValueIsDescribed(t *testing.T) {
	chart, err := loader.Load(folder)
	expect.NoError(t, err)
	schema := map[string]any{}
	expect.NoError(t, json.Unmarshal(chart.Schema, &schema))
	unstructured.RemoveNestedField(schema, "properties", "global")
	// Their fields are those of Kubernetes.
	unstructured.RemoveNestedField(schema, "properties", "resources", "properties")
	unstructured.RemoveNestedField(schema, "properties", "affinity", "properties")
	checkDescribed(t, "", schema, chart.Values)
}

func checkDescribed(t *testing.T, path string, schema map[string]any, value any) {
	t.Helper()
	properties, _, _ := unstructured.NestedMap(schema, "properties")
	for key, inner := range properties {
		fields, _ := value.(map[string]any)
		if _, has := fields[key]; !has {
			t.Errorf("values.yaml lacks %s.%s", path, key)
		}
		checkDescribed(t, path+"."+key, inner.(map[string]any), fields[key]) //nolint:forcetypeassert // a schema
	}
}

// TestElsewhere: in another namespace, everything is the same, except for its name.
func TestElsewhere(t *testing.T) {
	texts := func(namespace string) string {
		rendered, err := render(namespace, everything(t), optionalKinds...)
		expect.NoError(t, err)
		result := rendered.Manifest + rendered.Info.Notes
		for _, hook := range rendered.Hooks {
			result += hook.Manifest
		}
		return result
	}
	if diff := cmp.Diff(strings.ReplaceAll(texts("conversion-system"), "conversion-system", "elsewhere"), texts("elsewhere")); diff != "" {
		t.Errorf("in another namespace (-want +got):\n%s", diff)
	}
}

func convert[T any](t *testing.T, object unstructured.Unstructured) T {
	t.Helper()
	var result T
	expect.NoError(t, runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, &result))
	return result
}

// hookPods returns the pod of the test, and that of the Job before an uninstallation.
func hookPods(t *testing.T, of *release.Release) (test, check corev1.PodSpec) {
	t.Helper()
	for _, hook := range of.Hooks {
		for name, object := range decode(t, hook.Manifest) {
			if strings.HasPrefix(name, "Job ") {
				check = convert[batchv1.Job](t, object).Spec.Template.Spec
			} else {
				test = convert[corev1.Pod](t, object).Spec
			}
		}
	}
	return test, check
}

// TestValues: values for pods reach the manager, the pods of hooks, and converter pods, whose account
// has the credentials of the registry. Every object has the labels, and any account of Prometheus can be
// admitted.
func TestValues(t *testing.T) {
	const repository, digest = "registry.example.com/operator", "sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
	rendered, err := render("elsewhere", values{
		"image":             values{"repository": repository, "digest": digest, "pullSecrets": []any{values{"name": "registry"}}},
		"replicas":          1,
		"resources":         values{"limits": values{"memory": "1Gi"}},
		"nodeSelector":      values{"node": "infra"},
		"tolerations":       []any{values{"key": "infra", "operator": "Exists"}},
		"affinity":          values{"podAffinity": values{}},
		"priorityClassName": "high",
		"extraArgs":         []any{"--propagation-delay=5m"},
		"commonLabels":      values{"team": "platform"},
		"prometheus":        values{"enabled": true, "serviceAccount": values{"name": "stack", "namespace": "metrics"}},
	})
	expect.NoError(t, err)
	all := decode(t, rendered.Manifest)
	manager := convert[appsv1.Deployment](t, all["Deployment elsewhere conversion-operator"])
	test, check := hookPods(t, rendered)
	secrets := []corev1.LocalObjectReference{{Name: "registry"}}
	for i, pod := range []corev1.PodSpec{manager.Spec.Template.Spec, test, check} {
		got := []any{pod.Containers[0].Image, pod.ImagePullSecrets, pod.NodeSelector, pod.Tolerations}
		want := []any{repository + "@" + digest, secrets, map[string]string{"kubernetes.io/os": "linux", "node": "infra"}, []corev1.Toleration{{Key: "infra", Operator: "Exists"}}}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("pod %d (-want +got):\n%s", i, diff)
		}
	}
	pod := manager.Spec.Template.Spec
	container := pod.Containers[0]
	got := []any{*manager.Spec.Replicas, container.Resources.Limits.Memory().String(), pod.PriorityClassName,
		pod.Affinity != nil, container.Args[len(container.Args)-2:], manager.Spec.Template.Labels["team"]}
	if diff := cmp.Diff([]any{int32(1), "1Gi", "high", true, []string{"--converter-priority-class=high", "--propagation-delay=5m"}, "platform"}, got); diff != "" {
		t.Errorf("the manager (-want +got):\n%s", diff)
	}
	account := convert[corev1.ServiceAccount](t, all["ServiceAccount elsewhere conversion-operator-converter"])
	if diff := cmp.Diff(secrets, account.ImagePullSecrets); diff != "" {
		t.Errorf("secrets of converter pods (-want +got):\n%s", diff)
	}
	for _, name := range []string{"ClusterRoleBinding  conversion-operator-scrape", "RoleBinding elsewhere conversion-operator-scrape"} {
		want := []rbacv1.Subject{{Kind: "ServiceAccount", Name: "stack", Namespace: "metrics"}}
		if diff := cmp.Diff(want, convert[rbacv1.RoleBinding](t, all[name]).Subjects); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
	for name, object := range all {
		if labels := object.GetLabels(); labels["team"] != "platform" || labels["app.kubernetes.io/instance"] != "operator" {
			t.Errorf("labels of %s: %v", name, labels)
		}
	}
}

// TestOptionalObjects: some objects are there only if a value says so, or if the cluster knows the kind.
func TestOptionalObjects(t *testing.T) {
	const (
		priorityLevel = "PriorityLevelConfiguration  conversion-migrations"
		definition    = "CustomResourceDefinition  conversionpolicies.conversion-operator.io"
		mutating      = "MutatingAdmissionPolicy  keep-conversion.conversion-operator.io"
	)
	for _, c := range []struct {
		values      values
		apiVersions []string
		want        []string
	}{
		{nil, nil, []string{definition, priorityLevel}},
		{nil, optionalKinds, []string{definition, priorityLevel, mutating}},
		{values{"crds": values{"enabled": false}}, nil, []string{priorityLevel}},
		{values{"flowcontrol": values{"enabled": false}}, nil, []string{definition}},
	} {
		all := helm(t, c.values, c.apiVersions...)
		for _, each := range []string{priorityLevel, definition, mutating} {
			if _, has := all[each]; has != slices.Contains(c.want, each) {
				t.Errorf("with %v on a cluster with %v: there is %s: %t", c.values, c.apiVersions, each, has)
			}
		}
	}
}

// TestReleaseFits: Helm stores a release in one Secret, which may have 1 MiB.
func TestReleaseFits(t *testing.T) {
	rendered, err := render("elsewhere", everything(t), optionalKinds...)
	expect.NoError(t, err)
	var compressed bytes.Buffer
	zip := gzip.NewWriter(&compressed)
	expect.NoError(t, json.NewEncoder(zip).Encode(rendered))
	expect.NoError(t, zip.Close())
	// It is in base64.
	if size, limit := base64.StdEncoding.EncodedLen(compressed.Len()), 1<<19; size > limit {
		t.Errorf("the release has %d bytes, and should have %d at most", size, limit)
	}
}

// TestChartFile: Chart.yaml says the same as the operator's description in catalogues.
func TestChartFile(t *testing.T) {
	chart, err := loader.Load(folder)
	expect.NoError(t, err)
	catalogue := struct {
		Metadata struct{ Annotations map[string]string }
		Spec     struct {
			MinKubeVersion, Version string
			Keywords                []string
		}
	}{}
	text, err := os.ReadFile(config + "/manifests/bases/conversion-operator.clusterserviceversion.yaml")
	expect.NoError(t, err)
	expect.NoError(t, yaml.Unmarshal(text, &catalogue))
	spec, is := catalogue.Spec, chart.Metadata
	// Prereleases, too: the versions of many providers look like them.
	want := []any{">=" + spec.MinKubeVersion + "-0", spec.Version, spec.Version, spec.Keywords, catalogue.Metadata.Annotations["description"], catalogue.Metadata.Annotations["repository"]}
	if diff := cmp.Diff(want, []any{is.KubeVersion, is.Version, is.AppVersion, is.Keywords, is.Description, is.Home}); diff != "" {
		t.Errorf("Chart.yaml (-want +got):\n%s", diff)
	}
}
