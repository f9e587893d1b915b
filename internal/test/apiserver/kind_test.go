//go:build integration

// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"context"
	"fmt"
	"path"
	"strconv"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/json"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/yaml"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
	"github.com/conversion-operator/conversion-operator/internal/engine/conversion"
	"github.com/conversion-operator/conversion-operator/internal/engine/conversion/compile"
	"github.com/conversion-operator/conversion-operator/internal/test/expect"
)

const (
	namespace = "default"
	plural    = "gadgets"
	// aside is a namespace for objects that no scenario counts.
	aside = "kube-public"
)

// kind is a CRD of gadgets in a group of its own, and its converter.
type kind struct {
	*apiServer
	*converter
	group string
	crd   string
}

// install creates a kind with rules, and waits until all of its versions are served. versions and
// rules are YAML of a CRD and of a policy.
func (s *apiServer) install(t *testing.T, name, versions, rules string) *kind {
	t.Helper()
	k := &kind{apiServer: s, group: name + ".example.com", crd: plural + "." + name + ".example.com"}
	crd := &apiextensionsv1.CustomResourceDefinition{
		ObjectMeta: metav1.ObjectMeta{Name: k.crd},
		Spec: apiextensionsv1.CustomResourceDefinitionSpec{
			Group: k.group, Scope: apiextensionsv1.NamespaceScoped,
			Names: apiextensionsv1.CustomResourceDefinitionNames{Plural: plural, Kind: "Gadget", ListKind: "GadgetList"},
		},
	}
	expect.NoError(t, yaml.UnmarshalStrict([]byte(versions), &crd.Spec.Versions))
	k.converter = newConverter(t, compileRules(t, crd, rules))
	crd.Spec.Conversion = k.conversion()
	_, err := s.crds.Create(t.Context(), crd, metav1.CreateOptions{})
	expect.NoError(t, err)
	for _, version := range crd.Spec.Versions {
		if version.Served {
			k.awaitServed(t, version.Name)
		}
	}
	return k
}

func compileRules(t *testing.T, crd *apiextensionsv1.CustomResourceDefinition, rules string) *conversion.Ruleset {
	t.Helper()
	declarative := &v1alpha1.DeclarativeConverter{}
	expect.NoError(t, yaml.UnmarshalStrict([]byte(rules), declarative))
	result := compile.Compile(crd, declarative)
	if result.Ruleset == nil {
		t.Fatalf("the rules are refused: %v, missing: %v", result.Errors, result.Missing)
	}
	return result.Ruleset
}

func (k *kind) awaitServed(t *testing.T, version string) {
	t.Helper()
	expect.Success(t, version+" is served", func(ctx context.Context) error {
		_, err := k.at(version).List(ctx, metav1.ListOptions{})
		return err
	})
}

func (k *kind) awaitNotServed(t *testing.T, version string) {
	t.Helper()
	expect.Success(t, version+" is not served", func(ctx context.Context) error {
		_, err := k.at(version).List(ctx, metav1.ListOptions{})
		if apierrors.IsNotFound(err) {
			return nil
		}
		return fmt.Errorf("a list was answered with: %w", err)
	})
}

// at returns the client for gadgets of one version.
func (k *kind) at(version string) dynamic.ResourceInterface { return k.in(namespace, version) }

func (k *kind) in(namespace, version string) dynamic.ResourceInterface {
	return k.objects.Resource(schema.GroupVersionResource{Group: k.group, Version: version, Resource: plural}).Namespace(namespace)
}

// gadget returns an object with the fields of the YAML.
func (k *kind) gadget(t *testing.T, version, name, fields string) *unstructured.Unstructured {
	t.Helper()
	object := &unstructured.Unstructured{Object: fieldsOf(t, fields)}
	object.SetAPIVersion(k.group + "/" + version)
	object.SetKind("Gadget")
	object.SetName(name)
	return object
}

// fieldsOf parses YAML like clients of the API server: with int64.
func fieldsOf(t *testing.T, text string) map[string]any {
	t.Helper()
	encoded, err := yaml.YAMLToJSONStrict([]byte(text))
	expect.NoError(t, err)
	fields := map[string]any{}
	expect.NoError(t, json.Unmarshal(encoded, &fields))
	return fields
}

func (k *kind) create(t *testing.T, version, name, fields string) *unstructured.Unstructured {
	t.Helper()
	created, err := k.at(version).Create(t.Context(), k.gadget(t, version, name, fields), metav1.CreateOptions{})
	expect.NoError(t, err)
	return created
}

func (k *kind) get(t *testing.T, version, name string) *unstructured.Unstructured {
	t.Helper()
	object, err := k.at(version).Get(t.Context(), name, metav1.GetOptions{})
	expect.NoError(t, err)
	return object
}

// mergePatch sends a JSON merge patch, as YAML, for the object or a subresource.
func (k *kind) mergePatch(t *testing.T, version, name, patch string, subresources ...string) *unstructured.Unstructured {
	t.Helper()
	text, err := yaml.YAMLToJSONStrict([]byte(patch))
	expect.NoError(t, err)
	object, err := k.at(version).Patch(t.Context(), name, types.MergePatchType, text, metav1.PatchOptions{}, subresources...)
	expect.NoError(t, err)
	return object
}

// stored returns a gadget as etcd has it.
func (k *kind) stored(t *testing.T, name string) *unstructured.Unstructured {
	t.Helper()
	return k.storedIn(t, namespace, name)
}

func (k *kind) storedIn(t *testing.T, namespace, name string) *unstructured.Unstructured {
	t.Helper()
	entry, err := k.Etcd.Get(t.Context(), k.key(namespace, name))
	expect.NoError(t, err)
	object := &unstructured.Unstructured{}
	expect.NoError(t, object.UnmarshalJSON(entry.Value))
	return object
}

// setStored writes directly into etcd.
func (k *kind) setStored(t *testing.T, object *unstructured.Unstructured) {
	t.Helper()
	text, err := object.MarshalJSON()
	expect.NoError(t, err)
	expect.NoError(t, k.Etcd.Put(t.Context(), k.key(object.GetNamespace(), object.GetName()), string(text)))
}

func (k *kind) key(namespace, name string) string {
	return path.Join("/registry", k.group, plural, namespace, name)
}

// left returns the keys of gadgets in etcd.
func (k *kind) left(t *testing.T) []string {
	t.Helper()
	entries, _, err := k.Etcd.List(t.Context(), path.Join("/registry", k.group)+"/")
	expect.NoError(t, err)
	var keys []string
	for _, found := range entries {
		keys = append(keys, string(found.Key))
	}
	return keys
}

func versionOf(object *unstructured.Unstructured) string { return path.Base(object.GetAPIVersion()) }

func (k *kind) change(t *testing.T, edit func(*apiextensionsv1.CustomResourceDefinition)) {
	t.Helper()
	expect.NoError(t, retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		crd, err := k.crds.Get(t.Context(), k.crd, metav1.GetOptions{})
		if err != nil {
			return err
		}
		edit(crd)
		_, err = k.crds.Update(t.Context(), crd, metav1.UpdateOptions{})
		return err
	}))
}

// store changes the storage version, and waits until the API server uses it.
func (k *kind) store(t *testing.T, version string) {
	t.Helper()
	k.change(t, func(crd *apiextensionsv1.CustomResourceDefinition) {
		for i := range crd.Spec.Versions {
			crd.Spec.Versions[i].Storage = crd.Spec.Versions[i].Name == version
		}
	})
	turn := 0
	expect.Success(t, "objects are stored at "+version, func(ctx context.Context) error {
		turn++
		if err := k.writeMarker(ctx, t, version, turn); err != nil {
			return err
		}
		if stored := versionOf(k.storedIn(t, aside, "marker")); stored != version {
			return fmt.Errorf("the marker is stored at %s", stored)
		}
		return nil
	})
}

// writeMarker writes an object whose stored version the test inspects.
func (k *kind) writeMarker(ctx context.Context, t *testing.T, version string, turn int) error {
	t.Helper()
	_, err := k.in(aside, version).Create(ctx, k.gadget(t, version, "marker", "{}"), metav1.CreateOptions{})
	if apierrors.IsAlreadyExists(err) {
		patch := `{"metadata": {"labels": {"turn": ` + strconv.Quote(strconv.Itoa(turn)) + `}}}`
		_, err = k.in(aside, version).Patch(ctx, "marker", types.MergePatchType, []byte(patch), metav1.PatchOptions{})
	}
	return err
}

// wantFields compares an object without metadata with YAML.
func wantFields(t *testing.T, what string, object *unstructured.Unstructured, fields string) {
	t.Helper()
	got := object.DeepCopy().Object
	for _, head := range []string{"apiVersion", "kind", "metadata"} {
		delete(got, head)
	}
	expect.Equal(t, what, fieldsOf(t, fields), got)
}
