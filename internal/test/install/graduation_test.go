//go:build integration

// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package install

import (
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
	"github.com/conversion-operator/conversion-operator/internal/cli/cmd"
	"github.com/conversion-operator/conversion-operator/internal/test/expect"
)

// alpha and stable are the versions of the operator's own kinds, before and after the graduation.
const alpha, stable = "v1alpha1", "v1"

// ownKinds are those that graduate.
var ownKinds = map[string]string{
	"ConversionPolicy": "conversionpolicies.conversion-operator.io",
	"ConverterFleet":   "converterfleets.conversion-operator.io",
}

// version is one of spec.versions in a release; admission policies read the policies at one of them.
type version struct {
	name            string
	served, storage bool
}

// TestGraduation installs the releases of the graduation, one over the other with kubectl apply, which
// stores both versions in an annotation. Objects stay as they were, and the operator's admission
// policies protect conversions before and after it. It is the plan of internal/decisions/0071.
func TestGraduation(t *testing.T) {
	w := graduating(t)
	before := w.ownObjects(t, alpha)

	w.release(t, alpha, version{alpha, true, true}, version{stable, true, false})
	expect.Equal(t, "objects, which are served at both versions", before, w.ownObjects(t, stable))
	w.release(t, stable, version{alpha, true, false}, version{stable, true, true})
	w.rewrite(t)
	w.waitFor(t, nameIn("graduation"), refused)
	w.release(t, stable, version{alpha, false, false}, version{stable, true, true})
	w.moveFieldsOwners(t)
	w.release(t, stable, version{stable, true, true})

	expect.Equal(t, "objects, which are served at one version", before, w.ownObjects(t, stable))
	w.waitFor(t, nameIn("graduation"), refused)
	w.run(t, "apply", "-f", file(t, sampleAt(stable, 0)))
	w.run(t, "apply", "--server-side", "-f", file(t, sampleAt(stable, 1)))
	expect.Equal(t, "objects, whose manifests are applied at the new version", before, w.ownObjects(t, stable))
	_, err := w.try(t, "apply", "-f", file(t, strings.ReplaceAll(sampleAt(stable, 2), "podAntiAffinity", "podAntiAffinty")))
	expect.Contains(t, "the answer to a misspelt field of a core type", fmt.Sprint(err), `unknown field "spec.workload.affinity.podAntiAffinty"`)
}

// graduating is an API server with v1alpha1 alone, and objects of both kinds: a policy with a status,
// and others that were applied in both ways.
func graduating(t *testing.T) world {
	t.Helper()
	w := installGuard(t)
	w.run(t, "apply", "-k", config+"/default")
	w.activate(t, "graduation", conversions["service"])
	w.waitFor(t, nameIn("graduation"), refused)
	w.run(t, "apply", "-f", file(t, sampleAt(alpha, 0)))
	w.run(t, "apply", "--server-side", "-f", file(t, sampleAt(alpha, 1)))
	return w
}

// sampleAt is a fleet and a policy of the samples, at a version. Each number has objects of its own.
func sampleAt(version string, number int) string {
	return strings.NewReplacer("NUMBER", fmt.Sprint(number), "VERSION", version).Replace(`
apiVersion: conversion-operator.io/VERSION
kind: ConverterFleet
metadata: {name: fleet-NUMBER}
spec:
  workload:
    affinity: {podAntiAffinity: {requiredDuringSchedulingIgnoredDuringExecution: [{topologyKey: kubernetes.io/hostname}]}}
    tolerations: [{key: dedicated, operator: Exists}]
---
apiVersion: conversion-operator.io/VERSION
kind: ConversionPolicy
metadata: {name: widgets-NUMBER.example.com}
spec:
  converter:
    type: Declarative
    declarative:
      hub: v1
      spokes:
      - version: v1beta1
        rules:
        - format: {from: .hostPort, template: "{host}:{port}", to: {host: .host, port: .port}}
`)
}

// ownObjects are the specs and states of the objects of the operator's kinds, by their names.
func (w world) ownObjects(t *testing.T, version string) map[string]any {
	t.Helper()
	objects := map[string]any{}
	for _, object := range w.list(t, version) {
		objects[object.GetKind()+"/"+object.GetName()] = []any{object.GetUID(), object.GetGeneration(), object.Object["spec"], object.Object["status"]}
	}
	return objects
}

// list returns the objects of the operator's kinds at a version, which may not be served yet.
func (w world) list(t *testing.T, version string) []unstructured.Unstructured {
	t.Helper()
	var objects []unstructured.Unstructured
	for kind := range ownKinds {
		list := &unstructured.UnstructuredList{}
		list.SetGroupVersionKind(schema.GroupVersionKind{Group: v1alpha1.GroupVersion.Group, Version: version, Kind: kind + "List"})
		expect.Eventually(t, kind+" is served at "+version, func() (bool, string) {
			err := w.admin.List(t.Context(), list)
			return err == nil, fmt.Sprint(err)
		})
		objects = append(objects, list.Items...)
	}
	return objects
}

// release applies the installation with these versions of the operator's kinds.
func (w world) release(t *testing.T, params string, versions ...version) {
	t.Helper()
	var documents []string
	for document := range strings.SplitSeq(w.run(t, "kustomize", config+"/default"), "\n---\n") {
		object := &unstructured.Unstructured{}
		expect.NoError(t, yaml.Unmarshal([]byte(document), object))
		switch {
		case object.GetKind() == "CustomResourceDefinition" && strings.Contains(document, "name: "+alpha):
			withVersions(t, object, versions)
		case object.GetKind() == "ValidatingAdmissionPolicy" && strings.Contains(document, "apiVersion: "+v1alpha1.GroupVersion.String()):
			expect.NoError(t, unstructured.SetNestedField(object.Object, v1alpha1.GroupVersion.Group+"/"+params, "spec", "paramKind", "apiVersion"))
		}
		text, err := yaml.Marshal(object)
		expect.NoError(t, err)
		documents = append(documents, string(text))
	}
	w.run(t, "apply", "-f", file(t, strings.Join(documents, "---\n")))
	for _, name := range ownKinds {
		applied := w.read(t, name).Annotations[corev1.LastAppliedConfigAnnotation]
		t.Logf("%s with %v: %d bytes in the annotation", name, versions, len(applied))
	}
}

// withVersions gives a definition these versions, of the same schema.
func withVersions(t *testing.T, object *unstructured.Unstructured, versions []version) {
	t.Helper()
	one, _, err := unstructured.NestedSlice(object.Object, "spec", "versions")
	expect.NoError(t, err)
	var all []any
	for _, version := range versions {
		named := runtime.DeepCopyJSON(one[0].(map[string]any)) //nolint:forcetypeassert // a version
		named["name"], named["served"], named["storage"] = version.name, version.served, version.storage
		all = append(all, named)
	}
	expect.NoError(t, unstructured.SetNestedSlice(object.Object, all, "spec", "versions"))
}

// rewrite rewrites the stored objects with the command that users have for kinds without a policy.
func (w world) rewrite(t *testing.T) {
	t.Helper()
	root := cmd.NewRootCommand()
	args := []string{"migrate", "--kubeconfig", w.kubeconfigFile, "--propagation-delay=2s", "--pace=Fast"}
	for _, name := range ownKinds {
		args = append(args, name)
	}
	root.SetArgs(args)
	root.SetOut(t.Output())
	root.SetErr(t.Output())
	expect.NoError(t, root.ExecuteContext(t.Context()))
	for _, name := range ownKinds {
		expect.Equal(t, "stored versions of "+name, []string{stable}, w.read(t, name).Status.StoredVersions)
	}
}

// moveFieldsOwners names the new version in managedFields, where an API server would otherwise look
// for the old one at the next server-side apply. Fields are the same at both versions.
func (w world) moveFieldsOwners(t *testing.T) {
	t.Helper()
	for _, object := range w.list(t, stable) {
		base := object.DeepCopy()
		entries := object.GetManagedFields()
		for i := range entries {
			entries[i].APIVersion = strings.Replace(entries[i].APIVersion, "/"+alpha, "/"+stable, 1)
		}
		object.SetManagedFields(entries)
		expect.NoError(t, w.operator.Patch(t.Context(), &object, client.MergeFrom(base), client.FieldOwner("conversion-operator")))
		for _, entry := range object.GetManagedFields() {
			expect.Equal(t, "version of the fields of "+entry.Manager, v1alpha1.GroupVersion.Group+"/"+stable, entry.APIVersion)
		}
		expect.Equal(t, "number of owners of fields of "+object.GetName(), len(entries), len(object.GetManagedFields()))
	}
}
