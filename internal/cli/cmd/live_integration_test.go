// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build integration

package cmd

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
	"github.com/conversion-operator/conversion-operator/internal/cli/overview"
	"github.com/conversion-operator/conversion-operator/internal/test/expect"
	"github.com/conversion-operator/conversion-operator/internal/test/testenv"
)

const (
	crontabs = "crontabs.example.com"
	// objectsEach is the number of objects in each of two namespaces.
	objectsEach = 160
)

// TestLive runs the commands on objects of an API server. testdata/commands/live has most of them.
func TestLive(t *testing.T) {
	sample, err := filepath.Abs(sampleFile("1-crd-v1beta1.yaml"))
	expect.NoError(t, err)
	server := testenv.For(t, testenv.Options{CRDs: []string{testenv.OperatorCRDs, sample}})
	writer, kubeconfig := server.Client, server.KubeconfigFile(t)
	t.Setenv("KUBECONFIG", kubeconfig)
	play := func(name string) {
		t.Run(name, func(t *testing.T) {
			runCommands(t, "testdata/commands/live/"+name+".txt", map[string]string{"CONTEXTS": contextsOfLive(t, kubeconfig)})
		})
	}
	fill(t, writer)
	play("before")
	expect.NoError(t, writer.Create(t.Context(), expect.YAML[v1alpha1.ConversionPolicy](t, sampleFile("2-policy.yaml"))))
	play("version-missing")
	extend(t, writer)
	setConditions(t, writer, metav1.ConditionFalse, v1alpha1.ReasonMigrating, metav1.ConditionFalse)
	play("applied")
	t.Run("dependents", func(t *testing.T) { dependentsLive(t, writer) })
	t.Run("a playground", func(t *testing.T) { playLive(t) })
	play("operated")
	policy := &v1alpha1.ConversionPolicy{}
	expect.NoError(t, writer.Get(t.Context(), client.ObjectKey{Name: crontabs}, policy))
	if !slices.ContainsFunc(policy.ManagedFields, func(entry metav1.ManagedFieldsEntry) bool {
		return entry.Manager == fieldManager && owns(entry, "spec.migration.trigger")
	}) {
		t.Errorf("no field manager is %s: %v", fieldManager, policy.ManagedFields)
	}
	applied := &unstructured.Unstructured{}
	applied.SetGroupVersionKind(v1alpha1.GroupVersion.WithKind("ConversionPolicy"))
	applied.SetName(crontabs)
	expect.NoError(t, unstructured.SetNestedField(applied.Object, false, "spec", "migration", "suspend"))
	expect.NoError(t, writer.Apply(t.Context(), client.ApplyConfigurationFromUnstructured(applied), client.FieldOwner("gitops"), client.ForceOwnership))
	play("operated-beside-gitops")
	t.Run("a policy that becomes Ready", func(t *testing.T) { followLive(t, writer) })
}

// setConditions writes conditions as the operator would.
func setConditions(t *testing.T, writer client.Client, ready metav1.ConditionStatus, reason string, stalled metav1.ConditionStatus) {
	t.Helper()
	policy := &v1alpha1.ConversionPolicy{}
	expect.NoError(t, writer.Get(t.Context(), client.ObjectKey{Name: crontabs}, policy))
	policy.Status.ObservedGeneration = policy.Generation
	for condition, status := range map[string]metav1.ConditionStatus{v1alpha1.ReadyCondition: ready, v1alpha1.StalledCondition: stalled} {
		apimeta.SetStatusCondition(&policy.Status.Conditions, metav1.Condition{
			Type: condition, Status: status, Reason: reason, Message: "as the test says", ObservedGeneration: policy.Generation,
		})
	}
	expect.NoError(t, writer.Status().Update(t.Context(), policy))
}

// contextsOfLive writes a kubeconfig in which the contexts one and two are of the API server, and down does
// not answer.
func contextsOfLive(t *testing.T, kubeconfig string) string {
	t.Helper()
	config, err := clientcmd.LoadFromFile(kubeconfig)
	expect.NoError(t, err)
	one := config.Contexts[config.CurrentContext]
	config.Clusters["down"] = &clientcmdapi.Cluster{Server: "https://127.0.0.1:1"}
	config.Contexts = map[string]*clientcmdapi.Context{"one": one, "two": one, "down": {Cluster: "down"}}
	file := write(t, "kubeconfig", "")
	expect.NoError(t, clientcmd.WriteToFile(*config, file))
	return file
}

// playLive begins with what the cluster has, and tests it on its objects.
func playLive(t *testing.T) {
	t.Helper()
	ask := playing(t, "crontabs.example.com", "--live")
	start := startOf(t, ask)
	for _, without := range []string{"status:", "managedFields", "resourceVersion", "uid"} {
		expect.Equal(t, "there is "+without, false, strings.Contains(start.Texts.CRD+start.Texts.Policy, without))
	}
	question, err := json.Marshal(start.Texts)
	expect.NoError(t, err)
	if checked := ask("POST", "/api/check", string(question)); start.Live == "" || !strings.Contains(checked, `"problems":[]`) || !strings.Contains(checked, `"outcome":"Passed"`) {
		t.Errorf("the texts of the cluster: %s", checked)
	}
	expect.Contains(t, "the check of its objects", ask("POST", "/api/live", string(question)), "320 objects from the cluster")
}

// followLive follows a policy until it becomes Ready.
func followLive(t *testing.T, writer client.Client) {
	setConditions(t, writer, metav1.ConditionFalse, v1alpha1.ReasonObjectsFailed, metav1.ConditionTrue)
	_, stderr, err := run("status", "--until-ready")
	checkEnd(t, 1, err, stderr, "does not become Ready by itself: ObjectsFailed")
	setConditions(t, writer, metav1.ConditionFalse, v1alpha1.ReasonMigrating, metav1.ConditionFalse)
	reading, written := io.Pipe()
	ended := make(chan error)
	go func() {
		root := NewCommand([]string{pluginFile, "status", crontabs, "--until-ready"})
		root.SetOut(written)
		ended <- root.ExecuteContext(t.Context())
	}()
	lines := bufio.NewReader(reading)
	expectEnd := func(want string) {
		t.Helper()
		if line, err := lines.ReadString('\n'); err != nil || !strings.HasSuffix(line, want) {
			t.Errorf("line is %q, %v, want one with %q", line, err, want)
		}
	}
	expectEnd("crontabs.example.com: Ready=False Migrating: as the test says\n")
	setConditions(t, writer, metav1.ConditionTrue, v1alpha1.ReasonSucceeded, metav1.ConditionFalse)
	expectEnd("crontabs.example.com: Ready=True Succeeded: as the test says\n")
	expect.NoError(t, <-ended)
	stdout, _, err := run("status", "--until-ready", "-o=json")
	found := overview.Report{}
	expect.NoError(t, json.Unmarshal([]byte(stdout), &found))
	if err != nil || len(found.Policies) != 1 || !found.Policies[0].Settled || found.Policies[0].Ready != metav1.ConditionTrue {
		t.Errorf("%v; report is %s", err, stdout)
	}
}

// fill creates objects in two namespaces. One third of them has a note, and another third has no
// port.
func fill(t *testing.T, writer client.Client) {
	t.Helper()
	for _, namespace := range []string{"a", "b"} {
		expect.NoError(t, writer.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}))
		for i := range objectsEach {
			object := &unstructured.Unstructured{Object: map[string]any{"replicas": int64(i), "hostPort": fmt.Sprintf("host:%d", i)}}
			object.SetAPIVersion("example.com/v1beta1")
			object.SetKind("CronTab")
			object.SetNamespace(namespace)
			object.SetName(fmt.Sprintf("c%03d", i))
			object.SetLabels(map[string]string{"third": fmt.Sprint(i % 3)})
			switch i % 3 {
			case 0:
				object.Object["note"] = "note"
			case 1:
				object.Object["hostPort"] = "host01"
			}
			expect.NoError(t, writer.Create(t.Context(), object))
		}
	}
}

// extend adds the new version to the CustomResourceDefinition.
func extend(t *testing.T, writer client.Client) {
	t.Helper()
	wanted := expect.YAML[apiextensionsv1.CustomResourceDefinition](t, sampleFile("3-crd-both.yaml"))
	testenv.ChangeCRD(t, writer, wanted.Name, func(crd *apiextensionsv1.CustomResourceDefinition) { crd.Spec.Versions = wanted.Spec.Versions })
	expect.Success(t, "v1 is served", func(ctx context.Context) error {
		list := &unstructured.UnstructuredList{}
		list.SetGroupVersionKind(schema.GroupVersionKind{Group: wanted.Spec.Group, Version: "v1", Kind: wanted.Spec.Names.Kind + "List"})
		return writer.List(ctx, list)
	})
}
