//go:build integration

// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package live

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/conversion-operator/conversion-operator/internal/engine/manifest"
	"github.com/conversion-operator/conversion-operator/internal/operator/dependents"
	"github.com/conversion-operator/conversion-operator/internal/test/expect"
	"github.com/conversion-operator/conversion-operator/internal/test/testenv"
)

// cluster is a real API server, without controllers.
type cluster struct {
	*testenv.Server
}

// anything is a schema that accepts everything.
func anything() *apiextensionsv1.CustomResourceValidation {
	return &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{Type: "object", XPreserveUnknownFields: new(true)}}
}

// define creates a definition with versions, the last of which stores objects.
func (c *cluster) define(t *testing.T, scope apiextensionsv1.ResourceScope, group, plural, kind string, versions ...string) *apiextensionsv1.CustomResourceDefinition {
	t.Helper()
	crd := &apiextensionsv1.CustomResourceDefinition{ObjectMeta: metav1.ObjectMeta{Name: plural + "." + group}}
	crd.Spec.Group, crd.Spec.Scope = group, scope
	crd.Spec.Names = apiextensionsv1.CustomResourceDefinitionNames{Plural: plural, Kind: kind}
	for i, version := range versions {
		crd.Spec.Versions = append(crd.Spec.Versions, apiextensionsv1.CustomResourceDefinitionVersion{
			Name: version, Served: true, Storage: i == len(versions)-1, Schema: anything(),
			Subresources: &apiextensionsv1.CustomResourceSubresources{Status: &apiextensionsv1.CustomResourceSubresourceStatus{}},
		})
	}
	expect.NoError(t, c.Client.Create(t.Context(), crd))
	for _, version := range versions {
		c.served(t, group, version, kind)
	}
	return crd
}

// served waits until a version is served.
func (c *cluster) served(t *testing.T, group, version, kind string) {
	t.Helper()
	expect.Success(t, group+"/"+version+" is served", func(ctx context.Context) error {
		list := &unstructured.UnstructuredList{}
		list.SetAPIVersion(group + "/" + version)
		list.SetKind(kind + "List")
		return c.Client.List(ctx, list)
	})
}

// custom returns an object.
func custom(apiVersion, kind, name string) *unstructured.Unstructured {
	object := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"replicas": int64(1)}}}
	object.SetAPIVersion(apiVersion)
	object.SetKind(kind)
	object.SetNamespace("default")
	object.SetName(name)
	return object
}

func (c *cluster) create(t *testing.T, object *unstructured.Unstructured) *unstructured.Unstructured {
	t.Helper()
	expect.NoError(t, c.Client.Create(t.Context(), object, client.FieldOwner("not-manager")))
	return object
}

// createFrom creates the objects of a file.
func (c *cluster) createFrom(t *testing.T, name string) {
	t.Helper()
	text, err := os.ReadFile(name)
	expect.NoError(t, err)
	documents, err := manifest.Parse(name, text)
	expect.NoError(t, err)
	for _, document := range documents {
		objects, err := document.Objects()
		expect.NoError(t, err)
		for _, object := range objects {
			content := &unstructured.Unstructured{}
			expect.NoError(t, content.UnmarshalJSON(object.JSON))
			expect.NoError(t, c.Client.Create(t.Context(), content))
			c.createStatus(t, content, object.JSON)
		}
	}
}

// createStatus writes the status, which is a subresource.
func (c *cluster) createStatus(t *testing.T, object *unstructured.Unstructured, text []byte) {
	t.Helper()
	wanted := map[string]any{}
	expect.NoError(t, json.Unmarshal(text, &wanted))
	if status, has := wanted["status"]; has {
		object.Object["status"] = status
		expect.NoError(t, c.Client.Status().Update(t.Context(), object))
	}
}

// ownedBy creates a ConfigMap with an ownerReference.
func (c *cluster) ownedBy(t *testing.T, name string, owner *unstructured.Unstructured, apiVersion string) *corev1.ConfigMap {
	t.Helper()
	object := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, OwnerReferences: []metav1.OwnerReference{
		reference(owner, apiVersion),
	}}}
	expect.NoError(t, c.Client.Create(t.Context(), object))
	return object
}

func reference(owner *unstructured.Unstructured, apiVersion string) metav1.OwnerReference {
	return metav1.OwnerReference{APIVersion: apiVersion, Kind: owner.GetKind(), Name: owner.GetName(), UID: owner.GetUID()}
}

// release creates the record of a revision, in Helm's format.
func (c *cluster) release(t *testing.T, name string, revision int, status, text string) {
	t.Helper()
	content, err := json.Marshal(map[string]any{
		"name": name, "namespace": "default", "version": revision, "manifest": text,
		"info": map[string]any{"status": status, "description": "Install complete"}, "chart": map[string]any{"metadata": map[string]any{"name": name}},
	})
	expect.NoError(t, err)
	var compressed bytes.Buffer
	writer := gzip.NewWriter(&compressed)
	_, err = writer.Write(content)
	expect.NoError(t, err)
	expect.NoError(t, writer.Close())
	record := &corev1.Secret{Type: "helm.sh/release.v1", Data: map[string][]byte{
		"release": []byte(base64.StdEncoding.EncodeToString(compressed.Bytes())),
	}}
	record.Namespace, record.Name = "default", fmt.Sprintf("sh.helm.release.v1.%s.v%d", name, revision)
	record.Labels = map[string]string{"owner": "helm", "name": name, "status": status, "version": fmt.Sprint(revision)}
	expect.NoError(t, c.Client.Create(t.Context(), record))
}

// find returns the report for version v1beta1 of crontabs.example.com.
func find(t *testing.T, config *rest.Config, change func(*Options)) *dependents.Report {
	t.Helper()
	options := Options{
		CRD: "crontabs.example.com", Versions: []string{"v1beta1"}, Helm: true, Also: []string{"configmaps"}, QPS: 1000, PageSize: 3, Most: 1000,
		Progress: func(string, int64) {},
	}
	change(&options)
	_, report, err := Find(t.Context(), config, options)
	expect.NoError(t, err)
	return report
}

// lines describes dependents, one a line.
func lines(report *dependents.Report) []string {
	all := []string{}
	for _, d := range report.Dependents {
		all = append(all, strings.TrimSpace(fmt.Sprintf("%s %s %s %s %s %s", d.Impact, d.Dependency, d.Version, d.Client, d.Object, d.Field)))
	}
	return all
}
