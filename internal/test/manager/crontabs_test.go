//go:build integration

// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"fmt"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
	"github.com/conversion-operator/conversion-operator/internal/operator/crds"
	"github.com/conversion-operator/conversion-operator/internal/operator/plan/names"
	"github.com/conversion-operator/conversion-operator/internal/test/expect"
	"github.com/conversion-operator/conversion-operator/internal/test/testenv"
	"github.com/conversion-operator/conversion-operator/internal/webhook"
)

// versionsOf returns versions of a CRD, the first of them stored. v1 has host and port, the others
// hostPort.
func versionsOf(t *testing.T, all ...string) []apiextensionsv1.CustomResourceDefinitionVersion {
	t.Helper()
	var list strings.Builder
	for i, name := range all {
		fields := "hostPort: {type: string}"
		if name == "v1" {
			fields = "host: {type: string}, port: {type: string}"
		}
		fmt.Fprintf(&list, "- {name: %s, served: true, storage: %t, schema: {openAPIV3Schema: {type: object, properties: {%s, replicas: {type: integer}}}}}\n", name, i == 0, fields)
	}
	var versions []apiextensionsv1.CustomResourceDefinitionVersion
	expect.NoError(t, yaml.UnmarshalStrict([]byte(list.String()), &versions))
	return versions
}

// manifest returns a CRD with these versions, the first of them stored.
func manifest(t *testing.T, group string, versions ...string) *apiextensionsv1.CustomResourceDefinition {
	t.Helper()
	return &apiextensionsv1.CustomResourceDefinition{
		ObjectMeta: metav1.ObjectMeta{Name: "crontabs." + group},
		Spec: apiextensionsv1.CustomResourceDefinitionSpec{
			Group: group, Scope: apiextensionsv1.NamespaceScoped, Versions: versionsOf(t, versions...),
			Names: apiextensionsv1.CustomResourceDefinitionNames{Plural: "crontabs", Singular: "crontab", Kind: "CronTab", ListKind: "CronTabList"},
		},
	}
}

// define creates a CRD of these versions, and waits until it is established and its objects can be created.
func define(t *testing.T, group string, versions ...string) *apiextensionsv1.CustomResourceDefinition {
	t.Helper()
	return establish(t, manifest(t, group, versions...))
}

func establish(t *testing.T, crd *apiextensionsv1.CustomResourceDefinition) *apiextensionsv1.CustomResourceDefinition {
	t.Helper()
	expect.NoError(t, cluster.Create(t.Context(), crd))
	expect.Eventually(t, crd.Name+" is established, and its status at rest", func() (bool, string) {
		before := crd.ResourceVersion
		crd = getCRD(t, crd.Name)
		return crds.Condition(crd, apiextensionsv1.Established) && before == crd.ResourceVersion, "not yet"
	})
	expect.Eventually(t, crd.Name+" is served", func() (bool, string) {
		list := &unstructured.UnstructuredList{Object: map[string]any{"apiVersion": crd.Spec.Group + "/" + crd.Spec.Versions[0].Name, "kind": "CronTabList"}}
		err := cluster.List(t.Context(), list)
		return err == nil, fmt.Sprint(err)
	})
	return getCRD(t, crd.Name)
}

// get reads an object: if its kind has namespaces, the one in the operator's.
func get[T client.Object](t *testing.T, name string, object T) T {
	t.Helper()
	expect.NoError(t, cluster.Get(t.Context(), client.ObjectKey{Namespace: system, Name: name}, object))
	return object
}

// waitGone waits until there is no object that get would read.
func waitGone(t *testing.T, name string, object client.Object) {
	t.Helper()
	expect.Eventually(t, fmt.Sprintf("%T %s is gone", object, name), func() (bool, string) {
		err := cluster.Get(t.Context(), client.ObjectKey{Namespace: system, Name: name}, object)
		return apierrors.IsNotFound(err), fmt.Sprint(err)
	})
}

func getCRD(t *testing.T, name string) *apiextensionsv1.CustomResourceDefinition {
	t.Helper()
	return get(t, name, &apiextensionsv1.CustomResourceDefinition{})
}

// changeCRD changes the latest definition.
func changeCRD(t *testing.T, name string, change func(*apiextensionsv1.CustomResourceDefinition)) {
	t.Helper()
	testenv.ChangeCRD(t, cluster, name, change)
}

func createCronTab(t *testing.T, group, version, name, hostPort string) {
	t.Helper()
	fields := fmt.Sprintf("{hostPort: %q, replicas: 3}", hostPort)
	if version == "v1" {
		host, port, _ := strings.Cut(hostPort, ":")
		fields = fmt.Sprintf("{host: %q, port: %q, replicas: 3}", host, port)
	}
	object := cronTab(group, version, name)
	object.SetLabels(map[string]string{name: "x"})
	createObject(t, object, fields)
}

// cronTab returns an object without fields.
func cronTab(group, version, name string) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{"apiVersion": group + "/" + version, "kind": "CronTab",
		"metadata": map[string]any{"name": name, "namespace": "default"}}}
}

// createObject creates an object with fields, in YAML. An API server that does not know the fields yet
// refuses it, instead of pruning them.
func createObject(t *testing.T, object *unstructured.Unstructured, fields string) {
	t.Helper()
	expect.NoError(t, yaml.Unmarshal([]byte(fields), &object.Object))
	expect.Eventually(t, object.GetName()+" is created", func() (bool, string) {
		err := cluster.Create(t.Context(), object.DeepCopy(), client.FieldValidation("Strict"))
		return err == nil, fmt.Sprint(err)
	})
}

func createPolicy(t *testing.T, group string, change func(*v1alpha1.ConversionPolicy)) {
	t.Helper()
	expect.NoError(t, cluster.Create(t.Context(), newPolicy(t, group, change)))
}

func newPolicy(t *testing.T, group string, change func(*v1alpha1.ConversionPolicy)) *v1alpha1.ConversionPolicy {
	t.Helper()
	policy := &v1alpha1.ConversionPolicy{}
	expect.NoError(t, yaml.UnmarshalStrict(fmt.Appendf(nil, `
metadata: {name: crontabs.%s}
spec:
  converter: {type: Declarative, declarative: {hub: v1, spokes: [{version: v1beta1, rules: [{format: {from: .hostPort, template: "{host}:{port}", to: {host: .host, port: .port}}}]}]}}
  workload: {type: Dedicated, dedicated: {replicas: 1}}
  migration: {mode: OnTrigger}
`, group), policy))
	if change != nil {
		change(policy)
	}
	return policy
}

// shared has the rules served by the fleet default, whose pods all such policies share.
func shared(policy *v1alpha1.ConversionPolicy) { policy.Spec.Workload = nil }

// activate creates a CustomResourceDefinition with v1, which is stored, and v1beta1, and a policy with a pod
// of its own, unless it is shared. It waits until the conversion is active.
func activate(t *testing.T, group string, change func(*v1alpha1.ConversionPolicy)) *apiextensionsv1.CustomResourceDefinition {
	t.Helper()
	name := define(t, group, "v1", "v1beta1").Name
	createPolicy(t, group, change)
	waitFor(t, name, v1alpha1.ConversionConfiguredCondition, metav1.ConditionTrue, v1alpha1.ReasonConfigured, nil)
	return getCRD(t, name)
}

// create creates an object from a manifest.
func create[T client.Object](t *testing.T, manifest string, object T) T {
	t.Helper()
	expect.NoError(t, yaml.UnmarshalStrict([]byte(manifest), object))
	expect.NoError(t, cluster.Create(t.Context(), object))
	return object
}

func getPolicy(t *testing.T, name string) *v1alpha1.ConversionPolicy {
	t.Helper()
	return get(t, name, &v1alpha1.ConversionPolicy{})
}

func waitFor(t *testing.T, policy, condition string, status metav1.ConditionStatus, reason string, message []string) {
	t.Helper()
	expect.Eventually(t, fmt.Sprintf("%s of %s is %s %s and says %q", condition, policy, status, reason, message), func() (bool, string) {
		conditions := getPolicy(t, policy).Status.Conditions
		found := apimeta.FindStatusCondition(conditions, condition)
		if found == nil {
			return false, "no such condition: " + summaryOf(conditions)
		}
		says := found.Status == status && found.Reason == reason
		for _, part := range message {
			says = says && strings.Contains(found.Message, part)
		}
		return says, fmt.Sprintf("%s %s: %s", found.Status, found.Reason, found.Message)
	})
}

// summaryOf lists conditions with their reasons and messages.
func summaryOf(conditions []metav1.Condition) string {
	var all []string
	for _, each := range conditions {
		all = append(all, fmt.Sprintf("%s %s %s: %s", each.Type, each.Status, each.Reason, each.Message))
	}
	return strings.Join(all, "; ")
}

func waitReady(t *testing.T, policy, reason string) {
	t.Helper()
	waitFor(t, policy, v1alpha1.ReadyCondition, metav1.ConditionTrue, reason, nil)
}

// checkAtRest: when a policy is idle, it has no right to read objects, and the operator's own kind
// has no webhook and no objects.
func checkAtRest(t *testing.T, policy string) {
	t.Helper()
	waitGone(t, names.ReadRights(policy), &rbacv1.ClusterRole{})
	list := &unstructured.UnstructuredList{Object: map[string]any{"apiVersion": webhook.ProbeGroup + "/v2", "kind": webhook.ProbeKind + "List"}}
	expect.NoError(t, cluster.List(t.Context(), list))
	expect.Equal(t, "objects of the operator's own kind", 0, len(list.Items))
}

// dns turns the name of a test into a DNS label.
func dns(name string) string { return strings.ReplaceAll(strings.ToLower(name), " ", "-") }

func patch(t *testing.T, object client.Object, text string) {
	t.Helper()
	expect.NoError(t, cluster.Patch(t.Context(), object, client.RawPatch(types.MergePatchType, []byte(text))))
}

func patchStatus(t *testing.T, object client.Object, text string) {
	t.Helper()
	expect.NoError(t, cluster.Status().Patch(t.Context(), object, client.RawPatch(types.MergePatchType, []byte(text))))
}
