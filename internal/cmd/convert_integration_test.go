// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build integration

package cmd

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
	"github.com/conversion-operator/conversion-operator/internal/test/expect"
	"github.com/conversion-operator/conversion-operator/internal/test/testenv"
)

// TestRestoreOldBackup archives a policy and backs up the objects of one cluster, and restores them
// into another one, whose CustomResourceDefinition has never had their version. Real Velero does the
// same in internal/test/velero.
func TestRestoreOldBackup(t *testing.T) {
	old := testenv.For(t, testenv.Options{CRDs: []string{testenv.OperatorCRDs, absolute(t, sampleFile("3-crd-both.yaml"))}})
	apply(t, old.Client, sampleFile("2-policy.yaml"), &v1alpha1.ConversionPolicy{})
	createSamples(t, old.Client)
	archive, stderr, err := run("archive", "crontabs.example.com", "--kubeconfig", old.KubeconfigFile(t))
	if err != nil {
		t.Fatal(stderr)
	}
	saved := backUp(t, old.Client, "v1beta1")

	recent := testenv.For(t, testenv.Options{CRDs: []string{onlyV1(t)}})
	restored, missing := restoreBackup(t, recent.Client, saved)
	if restored != 1 || missing != 6 { // the ConfigMap, and both files of each object
		t.Fatalf("without a conversion, %d files were restored and %d not", restored, missing)
	}
	rules := write(t, "archive.yaml", archive)
	converted, stderr, err := runWith(string(saved), "convert", "--policy", rules, "--to=v1")
	if err != nil || stderr != "crontabs.example.com: objects converted to v1: 3, at v1 before: 0; other files, unchanged: 2\n" {
		t.Fatalf("%v; stderr is %q", err, stderr)
	}
	if restored, missing = restoreBackup(t, recent.Client, []byte(converted)); restored != 7 || missing != 0 {
		t.Fatalf("after the conversion, %d files were restored and %d not", restored, missing)
	}

	// The objects in the new cluster, at the old version, are those of the old cluster.
	live, err := json.Marshal(cronTabs(t, recent.Client, "v1"))
	expect.NoError(t, err)
	back, stderr, err := runWith(string(live), "convert", "--policy", rules, "--to=v1beta1")
	if err != nil {
		t.Fatal(stderr)
	}
	got := &unstructured.UnstructuredList{}
	expect.NoError(t, json.Unmarshal([]byte(back), got))
	if diff := cmp.Diff(contents(cronTabs(t, old.Client, "v1beta1")), contents(got)); diff != "" {
		t.Errorf("restored objects (-old cluster +new cluster):\n%s", diff)
	}
	if first := cronTabs(t, recent.Client, "v1").Items[0].Object; first["host"] != "localhost" || first["port"] != "1234" || first["hostPort"] != nil {
		t.Errorf("at v1, the first object is %v", first)
	}
}

func absolute(t *testing.T, file string) string {
	t.Helper()
	path, err := filepath.Abs(file)
	expect.NoError(t, err)
	return path
}

// onlyV1 returns a file with the definition without the old version.
func onlyV1(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile(sampleFile("3-crd-both.yaml"))
	expect.NoError(t, err)
	crd := &apiextensionsv1.CustomResourceDefinition{}
	expect.NoError(t, yaml.UnmarshalStrict(text, crd))
	crd.Spec.Versions = slices.DeleteFunc(crd.Spec.Versions, func(v apiextensionsv1.CustomResourceDefinitionVersion) bool { return v.Name != "v1" })
	crd.Spec.Versions[0].Storage = true
	text, err = yaml.Marshal(crd)
	expect.NoError(t, err)
	return write(t, "crd.yaml", string(text))
}

// createSamples creates the objects of the sample, and one of another kind.
func createSamples(t *testing.T, writer client.Client) {
	t.Helper()
	text, err := os.ReadFile(sampleFile("objects.yaml"))
	expect.NoError(t, err)
	for document := range strings.SplitSeq(string(text), "\n---\n") {
		object := &unstructured.Unstructured{}
		expect.NoError(t, yaml.Unmarshal([]byte(document), object))
		object.SetNamespace("default")
		expect.NoError(t, writer.Create(t.Context(), object))
	}
	expect.NoError(t, writer.Create(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "other"}, Data: map[string]string{"a": "example.com/v1beta1"}}))
}

func cronTabs(t *testing.T, reader client.Client, version string) *unstructured.UnstructuredList {
	t.Helper()
	found := &unstructured.UnstructuredList{}
	found.SetGroupVersionKind(schema.GroupVersionKind{Group: "example.com", Version: version, Kind: "CronTabList"})
	expect.NoError(t, reader.List(t.Context(), found))
	return found
}

// contents returns what users wrote, without metadata other than the name.
func contents(objects *unstructured.UnstructuredList) (found []map[string]any) {
	for _, item := range objects.Items {
		content := item.DeepCopy().Object
		content["metadata"] = item.GetName()
		found = append(found, content)
	}
	return found
}

// backUp returns a backup in the layout of Velero.
func backUp(t *testing.T, reader client.Client, version string) []byte {
	t.Helper()
	var text bytes.Buffer
	compressed := gzip.NewWriter(&text)
	archive := tar.NewWriter(compressed)
	add := func(name string, content []byte) {
		expect.NoError(t, archive.WriteHeader(&tar.Header{Name: name, Size: int64(len(content)), Typeflag: tar.TypeReg, Mode: 0o755}))
		_, err := archive.Write(content)
		expect.NoError(t, err)
	}
	add("metadata/version", []byte("1.1.0\n"))
	other := &unstructured.Unstructured{}
	other.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("ConfigMap"))
	expect.NoError(t, reader.Get(t.Context(), client.ObjectKey{Namespace: "default", Name: "other"}, other))
	content, err := json.Marshal(other.Object)
	expect.NoError(t, err)
	add("resources/configmaps/namespaces/default/other.json", content)
	for _, item := range cronTabs(t, reader, version).Items {
		content, err := json.Marshal(item.Object)
		expect.NoError(t, err)
		for _, folder := range []string{"", version + "-preferredversion/"} {
			add("resources/crontabs.example.com/"+folder+"namespaces/default/"+item.GetName()+".json", content)
		}
	}
	expect.NoError(t, errors.Join(archive.Close(), compressed.Close()))
	return text.Bytes()
}

// restoreBackup creates the objects in a backup that do not exist, each with the metadata that Velero
// restores, and counts those whose kind and version the cluster does not have.
func restoreBackup(t *testing.T, writer client.Client, backup []byte) (restored, missing int) {
	t.Helper()
	compressed, err := gzip.NewReader(bytes.NewReader(backup))
	expect.NoError(t, err)
	archive := tar.NewReader(compressed)
	for {
		header, err := archive.Next()
		if errors.Is(err, io.EOF) {
			return restored, missing
		}
		expect.NoError(t, err)
		content, err := io.ReadAll(archive)
		expect.NoError(t, err)
		if !strings.HasPrefix(header.Name, "resources/") {
			continue
		}
		object := &unstructured.Unstructured{}
		expect.NoError(t, json.Unmarshal(content, object))
		namespace, name, labels, annotations := object.GetNamespace(), object.GetName(), object.GetLabels(), object.GetAnnotations()
		object.Object["metadata"] = map[string]any{"namespace": namespace, "name": name}
		object.SetLabels(labels)
		object.SetAnnotations(annotations)
		switch err := writer.Create(t.Context(), object); {
		case meta.IsNoMatchError(err):
			missing++
		case client.IgnoreAlreadyExists(err) != nil: // an object has two files
			t.Fatalf("%s: %v", header.Name, err)
		default:
			restored++
		}
	}
}
