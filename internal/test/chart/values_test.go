// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package chart

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"helm.sh/helm/v4/pkg/action"
	"helm.sh/helm/v4/pkg/chart/v2/loader"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"

	"github.com/conversion-operator/conversion-operator/internal/test/expect"
)

// TestLint: Helm's own checks find nothing, not even something to recommend except an icon.
func TestLint(t *testing.T) {
	lint := action.NewLint()
	lint.Strict = true
	for _, with := range []values{nil, everything()} {
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

// everything has the values of all components except granted-rights and single-replica, which remove
// objects.
func everything() values {
	with := values{}
	for component, value := range componentValues {
		if component != "granted-rights" && component != "single-replica" {
			maps.Copy(with, value)
		}
	}
	return with
}

// TestRefused: wrong values are refused by name.
func TestRefused(t *testing.T) {
	cases := map[string]struct {
		values values
		want   string
	}{
		"unknown value":           {values{"replicaCount": 3}, "additional properties 'replicaCount' not allowed"},
		"unknown value inside":    {values{"image": values{"pullPolicy": "Always"}}, "at '/image': additional properties 'pullPolicy' not allowed"},
		"no manager":              {values{"replicas": 0}, "at '/replicas': minimum: got 0, want 1"},
		"rights":                  {values{"rights": "none"}, "at '/rights': value must be one of 'managed', 'granted'"},
		"digest":                  {values{"image": values{"digest": "abc"}}, "at '/image/digest': 'abc' does not match pattern"},
		"a label of the chart":    {values{"commonLabels": values{"app.kubernetes.io/name": "other"}}, "invalid propertyName 'app.kubernetes.io/name'"},
		"metrics certificate":     {values{"metricsCertificate": values{"enabled": true}}, "metricsCertificate.enabled needs certManager.enabled"},
		"two priority classes":    {values{"priorityClassName": "high", "critical": values{"enabled": true}}, "priorityClassName and critical.enabled exclude each other"},
		"a component as a string": {values{"uninstallGuard": values{"enabled": "yes"}}, "at '/uninstallGuard/enabled': got string, want boolean"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			_, err := installed{release: "operator", namespace: "elsewhere", values: c.values}.render()
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("error is %v, want %s", err, c.want)
			}
		})
	}
}

// TestEveryValueIsDescribed: each value is in the schema, and the other way round.
func TestEveryValueIsDescribed(t *testing.T) {
	chart, err := loader.Load(folder)
	expect.NoError(t, err)
	schema := map[string]any{}
	expect.NoError(t, json.Unmarshal(chart.Schema, &schema))
	properties, _, _ := unstructured.NestedMap(schema, "properties")
	delete(properties, "global")
	if diff := cmp.Diff(pathsOfSchema("", properties), pathsOf("", chart.Values)); diff != "" {
		t.Errorf("values (-schema +values.yaml):\n%s", diff)
	}
}

// free are values whose fields are those of Kubernetes or of the user.
var free = []string{".resources", ".nodeSelector", ".affinity", ".commonLabels"}

func pathsOf(path string, value any) []string {
	fields, is := value.(map[string]any)
	if !is || slices.Contains(free, path) {
		return []string{path}
	}
	var paths []string
	for _, key := range slices.Sorted(maps.Keys(fields)) {
		paths = append(paths, pathsOf(path+"."+key, fields[key])...)
	}
	return paths
}

func pathsOfSchema(path string, properties map[string]any) []string {
	var paths []string
	for _, key := range slices.Sorted(maps.Keys(properties)) {
		at := path + "." + key
		inner, _, _ := unstructured.NestedMap(properties, key, "properties")
		if inner == nil || slices.Contains(free, at) {
			paths = append(paths, at)
			continue
		}
		paths = append(paths, pathsOfSchema(at, inner)...)
	}
	return paths
}

// TestElsewhere: in another namespace, as another release, all objects refer to each other.
func TestElsewhere(t *testing.T) {
	rendered, err := installed{"my-release", "elsewhere", everything(), optionalKinds}.render()
	expect.NoError(t, err)
	all := decode(t, rendered.Manifest)
	for name, object := range all {
		if object.GetKind() == "CustomResourceDefinition" {
			continue // describes the default
		}
		text, err := object.MarshalJSON()
		expect.NoError(t, err)
		if at := object.GetNamespace(); strings.Contains(string(text), "conversion-system") || at != "" && at != "elsewhere" {
			t.Errorf("%s names another namespace than elsewhere:\n%s", name, text)
		}
		for _, reference := range references(t, object) {
			if _, found := all[reference]; !found {
				t.Errorf("%s refers to %s, which is not there", name, reference)
			}
		}
	}
	if want := "serverName: conversion-operator-metrics.elsewhere.svc"; !strings.Contains(rendered.Manifest, want) {
		t.Errorf("nothing says %s", want)
	}
	for _, hook := range rendered.Hooks {
		if !strings.Contains(hook.Manifest, `namespace: "elsewhere"`) {
			t.Errorf("%s is not in the namespace:\n%s", hook.Name, hook.Manifest)
		}
	}
	if text := "installed in the namespace elsewhere"; !strings.Contains(rendered.Info.Notes, text) {
		t.Errorf("the notes do not say %q:\n%s", text, rendered.Info.Notes)
	}
}

// references returns the objects that an object refers to.
func references(t *testing.T, object unstructured.Unstructured) []string {
	t.Helper()
	var result []string
	switch object.GetKind() {
	case "RoleBinding", "ClusterRoleBinding":
		binding := convert[rbacv1.RoleBinding](t, object)
		namespace := object.GetNamespace()
		if binding.RoleRef.Kind == "ClusterRole" {
			namespace = ""
		}
		result = append(result, strings.Join([]string{binding.RoleRef.Kind, namespace, binding.RoleRef.Name}, " "))
		for _, subject := range binding.Subjects {
			if subject.Kind == "ServiceAccount" && !strings.HasPrefix(subject.Name, "prometheus") {
				result = append(result, strings.Join([]string{subject.Kind, subject.Namespace, subject.Name}, " "))
			}
		}
	case "Deployment":
		pod := convert[appsv1.Deployment](t, object).Spec.Template.Spec
		result = append(result, "ServiceAccount "+object.GetNamespace()+" "+pod.ServiceAccountName)
		for _, variable := range pod.Containers[0].Env {
			switch variable.Name {
			case "CONVERTER_SERVICE_ACCOUNT":
				result = append(result, "ServiceAccount "+object.GetNamespace()+" "+variable.Value)
			case "MIGRATION_PRIORITY_LEVEL":
				result = append(result, "PriorityLevelConfiguration  "+variable.Value)
			}
		}
	case "ValidatingAdmissionPolicyBinding":
		result = append(result, "ValidatingAdmissionPolicy  "+text(object, "spec", "policyName"))
		if name := text(object, "spec", "paramRef", "name"); name != "" {
			result = append(result, "ServiceAccount "+text(object, "spec", "paramRef", "namespace")+" "+name)
		}
	case "Certificate":
		result = append(result, "Issuer "+object.GetNamespace()+" "+text(object, "spec", "issuerRef", "name"))
	}
	return result
}

func text(object unstructured.Unstructured, path ...string) string {
	found, _, _ := unstructured.NestedString(object.Object, path...)
	return found
}

func convert[T any](t *testing.T, object unstructured.Unstructured) T {
	t.Helper()
	var result T
	expect.NoError(t, runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, &result))
	return result
}

// TestPods: values for pods reach the manager, the pods of hooks, and converter pods, whose account
// has the credentials of the registry.
func TestPods(t *testing.T) {
	const image = "registry.example.com/operator@sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
	name, digest, _ := strings.Cut(image, "@")
	rendered, err := installed{"operator", "elsewhere", values{
		"image":             values{"repository": name, "digest": digest, "pullSecrets": []any{values{"name": "registry"}}},
		"replicas":          3,
		"resources":         values{"limits": values{"memory": "1Gi"}},
		"nodeSelector":      values{"node": "infra"},
		"tolerations":       []any{values{"key": "infra", "operator": "Exists"}},
		"affinity":          values{"podAffinity": values{}},
		"priorityClassName": "high",
		"extraArgs":         []any{"--propagation-delay=5m"},
		"commonLabels":      values{"team": "platform"},
	}, nil}.render()
	expect.NoError(t, err)
	all := decode(t, rendered.Manifest)
	manager := convert[appsv1.Deployment](t, all["Deployment elsewhere conversion-operator"])
	pods := map[string]corev1.PodSpec{"manager": manager.Spec.Template.Spec}
	for _, hook := range rendered.Hooks {
		for _, object := range decode(t, hook.Manifest) {
			if object.GetKind() == "Job" {
				pods[hook.Name] = convert[batchv1.Job](t, object).Spec.Template.Spec
			} else {
				pods[hook.Name] = convert[corev1.Pod](t, object).Spec
			}
		}
	}
	if len(pods) != 3 {
		t.Errorf("there are pods %v", slices.Sorted(maps.Keys(pods)))
	}
	secrets := []corev1.LocalObjectReference{{Name: "registry"}}
	for name, pod := range pods {
		got := []any{pod.Containers[0].Image, pod.ImagePullSecrets, pod.NodeSelector, pod.Tolerations}
		want := []any{image, secrets, map[string]string{"kubernetes.io/os": "linux", "node": "infra"}, []corev1.Toleration{{Key: "infra", Operator: "Exists"}}}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
	container := manager.Spec.Template.Spec.Containers[0]
	got := []any{*manager.Spec.Replicas, container.Resources.Limits.Memory().String(), manager.Spec.Template.Spec.PriorityClassName,
		manager.Spec.Template.Spec.Affinity != nil, container.Args[len(container.Args)-2:], manager.Spec.Template.Labels["team"]}
	if diff := cmp.Diff([]any{int32(3), "1Gi", "high", true, []string{"--converter-priority-class=high", "--propagation-delay=5m"}, "platform"}, got); diff != "" {
		t.Errorf("the manager (-want +got):\n%s", diff)
	}
	account := convert[corev1.ServiceAccount](t, all["ServiceAccount elsewhere conversion-operator-converter"])
	if diff := cmp.Diff(secrets, account.ImagePullSecrets); diff != "" {
		t.Errorf("secrets of converter pods (-want +got):\n%s", diff)
	}
	for name, object := range all {
		if labels := object.GetLabels(); labels["team"] != "platform" || labels["app.kubernetes.io/instance"] != "operator" {
			t.Errorf("labels of %s: %v", name, labels)
		}
	}
}

// TestOptionalObjects: some objects are there only if a value says so, or if the cluster knows the kind.
func TestOptionalObjects(t *testing.T) {
	kinds := func(with values, apiVersions ...string) map[string]int {
		count := map[string]int{}
		for _, object := range helm(t, with, apiVersions...) {
			count[object.GetKind()]++
		}
		return count
	}
	plain := kinds(nil)
	if plain["CustomResourceDefinition"] == 0 || plain["PriorityLevelConfiguration"] != 1 {
		t.Errorf("by default there are %v", plain)
	}
	if some := kinds(values{"crds": values{"enabled": false}}); some["CustomResourceDefinition"] != 0 {
		t.Errorf("with crds.enabled=false there are %v", some)
	}
	if some := kinds(values{"flowcontrol": values{"enabled": false}}); some["PriorityLevelConfiguration"] != 0 {
		t.Errorf("with flowcontrol.enabled=false there are %v", some)
	}
	if some := kinds(everything()); some["MutatingAdmissionPolicy"] != 0 {
		t.Errorf("on a cluster without MutatingAdmissionPolicy there are %v", some)
	}
	for keep, want := range map[bool]string{true: "keep", false: ""} {
		rendered, err := installed{"operator", "elsewhere", values{"crds": values{"keep": keep}}, nil}.render()
		expect.NoError(t, err)
		for name, object := range decode(t, rendered.Manifest) {
			is := object.GetAnnotations()["helm.sh/resource-policy"]
			expected := map[bool]string{true: want}[object.GetKind() == "CustomResourceDefinition"]
			if object.GetName() == "conversion-operator-converter" {
				expected = "keep"
			}
			if is != expected {
				t.Errorf("with crds.keep=%t, the resource policy of %s is %q", keep, name, is)
			}
		}
	}
}

// TestPrometheusAccount: any account of Prometheus can be admitted.
func TestPrometheusAccount(t *testing.T) {
	all := helm(t, values{"prometheus": values{"enabled": true, "serviceAccount": values{"name": "stack", "namespace": "metrics"}}})
	for _, name := range []string{"ClusterRoleBinding  conversion-operator-scrape", "RoleBinding conversion-system conversion-operator-scrape"} {
		want := []rbacv1.Subject{{Kind: "ServiceAccount", Name: "stack", Namespace: "metrics"}}
		if diff := cmp.Diff(want, convert[rbacv1.RoleBinding](t, all[name]).Subjects); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

// TestReleaseFits: Helm stores a release in one Secret, which may have 1 MiB.
func TestReleaseFits(t *testing.T) {
	rendered, err := installed{"operator", "elsewhere", everything(), optionalKinds}.render()
	expect.NoError(t, err)
	content, err := json.Marshal(rendered)
	expect.NoError(t, err)
	var compressed bytes.Buffer
	zip := gzip.NewWriter(&compressed)
	_, err = zip.Write(content)
	expect.NoError(t, err)
	expect.NoError(t, zip.Close())
	// It is in base64.
	if size, limit := base64.StdEncoding.EncodedLen(compressed.Len()), 1<<19; size > limit {
		t.Errorf("the release has %d bytes, and should have %d at most", size, limit)
	}
}

// TestChartOfVersion: the chart is for the Kubernetes versions of the operator.
func TestChartOfVersion(t *testing.T) {
	chart, err := loader.Load(folder)
	expect.NoError(t, err)
	csv := struct {
		Spec struct{ MinKubeVersion, Version string }
	}{}
	expect.NoError(t, yaml.Unmarshal(read(t, filepath.Join(config, "manifests", "bases", "conversion-operator.clusterserviceversion.yaml")), &csv))
	if got, want := fmt.Sprint(chart.Metadata.KubeVersion, chart.Metadata.Version), fmt.Sprint(">="+csv.Spec.MinKubeVersion+"-0", csv.Spec.Version); got != want {
		t.Errorf("kubeVersion and version are %s, want %s", got, want)
	}
}
