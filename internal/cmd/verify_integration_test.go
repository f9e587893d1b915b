// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build integration

package cmd

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
	"github.com/conversion-operator/conversion-operator/internal/test/expect"
	"github.com/conversion-operator/conversion-operator/internal/test/testenv"
	"github.com/conversion-operator/conversion-operator/internal/verify"
)

// objectsEach is the number of objects in each of two namespaces.
const objectsEach = 160

// TestLive runs the commands on objects of an API server.
func TestLive(t *testing.T) {
	writer, kubeconfig := startAPIServer(t)
	fill(t, writer)
	check := func(args ...string) (report verify.Report, stderr string, err error) {
		t.Helper()
		args = append([]string{"verify", "--live", "--kubeconfig", kubeconfig, "--page-size=100", "-o=json"}, args...)
		stdout, stderr, err := run(args...)
		if stdout != "" {
			expect.NoError(t, json.Unmarshal([]byte(stdout), &report))
		}
		return report, stderr, err
	}
	files := []string{"--policy", sampleFile("2-policy.yaml"), "--crd", sampleFile("3-crd-both.yaml")}
	withFiles := func(args ...string) []string { return slices.Concat(files, args) }

	t.Run("before anything is applied", func(t *testing.T) {
		report, stderr, err := check(files...)
		expect.NoError(t, err)
		if stderr != "320 objects read\n" {
			t.Errorf("stderr is %q", stderr)
		}
		if report.Objects != 2*objectsEach || report.Outcome != verify.Passed || report.ObjectsFrom != "the cluster, at version v1beta1" {
			t.Errorf("report is %+v", report)
		}
		// A third has a note, and another third no colon.
		want := []verify.PreservedField{
			{From: "v1beta1", To: "v1", Path: ".hostPort", Objects: 106, MaxBytes: 8},
			{From: "v1beta1", To: "v1", Path: ".note", Objects: 108, MaxBytes: 6},
		}
		if diff := cmp.Diff(want, report.PreservedFields); diff != "" {
			t.Errorf("kept (-want +got):\n%s", diff)
		}
	})
	for name, test := range map[string]struct {
		args    []string
		objects int
		from    string
	}{
		"a namespace":           {[]string{"--namespace=a"}, objectsEach, "the cluster, at version v1beta1, in namespace a"},
		"labels":                {[]string{"-l", "third=1"}, 106, "the cluster, at version v1beta1, with labels third=1"},
		"a sample":              {[]string{"--sample=130"}, 130, "the cluster, at version v1beta1, the first 130 at most"},
		"an empty namespace":    {[]string{"-n", "default"}, 0, "the cluster, at version v1beta1, in namespace default"},
		"a sample of too few":   {[]string{"--sample=500", "-n=b"}, objectsEach, "the cluster, at version v1beta1, in namespace b, the first 500 at most"},
		"a sample of one page":  {[]string{"--sample=100"}, 100, "the cluster, at version v1beta1, the first 100 at most"},
		"a sample of one label": {[]string{"--sample=1", "-l=third=2"}, 1, "the cluster, at version v1beta1, with labels third=2, the first 1 at most"},
	} {
		t.Run(name, func(t *testing.T) {
			report, stderr, err := check(withFiles(test.args...)...)
			if err != nil || report.Objects != test.objects || report.ObjectsFrom != test.from {
				t.Errorf("%v; %d objects from %q", err, report.Objects, report.ObjectsFrom)
			}
			if want := fmt.Sprintf("%d objects read\n", test.objects); stderr != want {
				t.Errorf("stderr is %q, want %q", stderr, want)
			}
		})
	}
	t.Run("what is not there", func(t *testing.T) {
		_, stderr, err := check("crontabs.example.com")
		if want := "Error: the cluster has no ConversionPolicy crontabs.example.com: pass one with --policy\n"; stderr != want || ExitCode(err) != 2 {
			t.Errorf("stderr is %q, want %q", stderr, want)
		}
	})
	t.Run("without the right to list", func(t *testing.T) {
		_, stderr, err := check(withFiles("--as=nobody")...)
		if !strings.Contains(stderr, `cannot get resource "customresourcedefinitions"`) || ExitCode(err) != 2 {
			t.Errorf("stderr is %q", stderr)
		}
	})

	apply(t, writer, sampleFile("2-policy.yaml"), &v1alpha1.ConversionPolicy{})
	t.Run("the policy is applied, and its version is not there", func(t *testing.T) {
		report, _, err := check("crontabs.example.com")
		if ExitCode(err) != 2 || report.Outcome != verify.Invalid || len(report.Errors) != 1 || report.Errors[0].Path != "spec.converter.declarative.hub" {
			t.Errorf("%v; report is %+v", err, report)
		}
	})
	extend(t, writer)
	t.Run("all is applied", func(t *testing.T) {
		report, _, err := check("crontabs.example.com")
		if err != nil || report.Objects != 2*objectsEach || report.Outcome != verify.Passed {
			t.Errorf("%v; report is %+v", err, report)
		}
	})
	t.Run("reports", func(t *testing.T) { reportLive(t, writer, kubeconfig) })
	t.Run("several contexts", func(t *testing.T) { contextsLive(t, kubeconfig) })
	t.Run("an audit", func(t *testing.T) { auditLive(t, kubeconfig) })
	t.Run("an audit by its role", func(t *testing.T) { auditAsItsRole(t, writer, kubeconfig) })
	t.Run("dependents", func(t *testing.T) { dependentsLive(t, writer, kubeconfig) })
	t.Run("a playground", func(t *testing.T) { playLive(t, kubeconfig) })
	t.Run("differences", func(t *testing.T) { diffLive(t, kubeconfig) })
	t.Run("completion", func(t *testing.T) { completeLive(t, kubeconfig) })
	t.Run("a policy that is operated", func(t *testing.T) { operateLive(t, writer, kubeconfig) })
	t.Run("a schema that refuses", func(t *testing.T) {
		text, err := os.ReadFile(sampleFile("3-crd-both.yaml"))
		expect.NoError(t, err)
		strict := write(t, "crd.yaml", strings.Replace(string(text), "port: {type: string}", "port: {type: string, maxLength: 1}", 1))
		report, _, err := check("crontabs.example.com", "--crd", strict)
		if ExitCode(err) != 1 || len(report.Findings) != 1 {
			t.Fatalf("%v; report is %+v", err, report)
		}
		finding := report.Findings[0]
		// Of each namespace 107 objects have a port, and of these 7 have one below 10.
		if finding.Kind != verify.InvalidAtTarget || finding.Path != ".port" || finding.Objects != 200 {
			t.Errorf("finding is %+v", finding)
		}
	})
}

// playLive begins with what the cluster has, and tests it on its objects.
func playLive(t *testing.T, kubeconfig string) {
	t.Helper()
	ask := playing(t, "crontabs.example.com", "--live", "--kubeconfig", kubeconfig)
	start := startOf(t, ask)
	for _, without := range []string{"status:", "managedFields", "resourceVersion", "uid"} {
		if strings.Contains(start.Texts.CRD, without) || strings.Contains(start.Texts.Policy, without) {
			t.Errorf("there is %s in %+v", without, start.Texts)
		}
	}
	question, err := json.Marshal(start.Texts)
	expect.NoError(t, err)
	if checked := ask("POST", "/api/check", string(question)); start.Live == "" || !strings.Contains(checked, `"problems":[]`) || !strings.Contains(checked, `"outcome":"Passed"`) {
		t.Errorf("the texts of the cluster: %s", checked)
	}
	if tested := ask("POST", "/api/live", string(question)); !strings.Contains(tested, "320 objects from the cluster") {
		t.Errorf("its objects: %s", tested)
	}
}

// startAPIServer returns a client that writes, and a kubeconfig.
func startAPIServer(t *testing.T) (client.Client, string) {
	t.Helper()
	sample, err := filepath.Abs(sampleFile("1-crd-v1beta1.yaml"))
	expect.NoError(t, err)
	server := testenv.For(t, testenv.Options{CRDs: []string{testenv.OperatorCRDs, sample}})
	return server.Client, server.KubeconfigFile(t)
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

// apply creates the objects in a file.
func apply(t *testing.T, writer client.Client, file string, object client.Object) {
	t.Helper()
	text, err := os.ReadFile(file)
	expect.NoError(t, err)
	expect.NoError(t, yaml.UnmarshalStrict(text, object))
	expect.NoError(t, writer.Create(t.Context(), object))
}

// extend adds the new version to the CustomResourceDefinition.
func extend(t *testing.T, writer client.Client) {
	t.Helper()
	text, err := os.ReadFile(sampleFile("3-crd-both.yaml"))
	expect.NoError(t, err)
	wanted, there := &apiextensionsv1.CustomResourceDefinition{}, &apiextensionsv1.CustomResourceDefinition{}
	expect.NoError(t, yaml.UnmarshalStrict(text, wanted))
	expect.NoError(t, writer.Get(t.Context(), client.ObjectKeyFromObject(wanted), there))
	there.Spec.Versions = wanted.Spec.Versions
	expect.NoError(t, writer.Update(t.Context(), there))
	expect.Success(t, "v1 is served", func(ctx context.Context) error {
		list := &unstructured.UnstructuredList{}
		list.SetGroupVersionKind(schema.GroupVersionKind{Group: wanted.Spec.Group, Version: "v1", Kind: wanted.Spec.Names.Kind + "List"})
		return writer.List(ctx, list)
	})
}
