//go:build integration

// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package compatibility

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/go-logr/logr"
	"github.com/google/go-cmp/cmp"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
	"sigs.k8s.io/yaml"

	"github.com/conversion-operator/conversion-operator/internal/test/expect"
	"github.com/conversion-operator/conversion-operator/internal/test/testenv"
)

// server is an empty API server.
type server struct {
	*testenv.Server
	client.Client
	installed int
}

func start(t *testing.T) *server {
	t.Helper()
	ctrl.SetLogger(logr.Discard())
	started := testenv.For(t, testenv.Options{})
	return &server{Server: started, Client: started.Client}
}

// TestPolicies: policies of each earlier version, with their status, are unchanged after an update
// to the current CRDs. They can be updated, and could be created today. Policies with moved fields
// can be created with the new fields.
func TestPolicies(t *testing.T) {
	cluster := start(t)
	for _, version := range find(t, "*") {
		t.Run(filepath.Base(version), func(t *testing.T) {
			cluster.install(t, filepath.Join(version, "crds"))
			written, moved := map[string]*unstructured.Unstructured{}, map[string]*unstructured.Unstructured{}
			for _, file := range find(t, filepath.Join(filepath.Base(version), "policies", "*.yaml")) {
				if policy, renamed := read(t, file); renamed {
					moved[file] = policy
				} else {
					written[file] = cluster.create(t, policy)
				}
			}
			cluster.install(t, filepath.Join("..", "..", "..", "config", "crd", "bases"))
			for file, policy := range written {
				t.Run(filepath.Base(file), func(t *testing.T) { cluster.check(t, policy) })
			}
			for file, policy := range moved {
				t.Run(filepath.Base(file), func(t *testing.T) { compare(t, "is created", policy, cluster.create(t, policy)) })
			}
		})
	}
}

// read reads a policy as it would be written today: without the fields that were removed since,
// and with the names of moved fields. The API servers of its time refuse moved fields.
func read(t *testing.T, file string) (policy *unstructured.Unstructured, moved bool) {
	t.Helper()
	policy = &unstructured.Unstructured{}
	unmarshal(t, file, policy) // numbers as the API server gives them
	dropRemoved(t, policy)
	for _, one := range breaks(t) {
		from, to := strings.Split(one.Field, "."), strings.Split(one.MovedTo, ".")
		value, found, _ := unstructured.NestedFieldCopy(policy.Object, from...)
		if one.MovedTo == "" || !found {
			continue
		}
		unstructured.RemoveNestedField(policy.Object, from...)
		expect.NoError(t, unstructured.SetNestedField(policy.Object, value, to...))
		moved = true
	}
	return policy, moved
}

// change is an entry of breaks.yaml.
type change struct {
	Field   string
	Removed bool
	MovedTo string
}

func breaks(t *testing.T) (declared []change) {
	t.Helper()
	text, err := os.ReadFile("breaks.yaml")
	expect.NoError(t, err)
	expect.NoError(t, yaml.Unmarshal(text, &declared))
	return declared
}

// dropRemoved removes the removed fields of breaks.yaml.
func dropRemoved(t *testing.T, policy *unstructured.Unstructured) {
	t.Helper()
	for _, one := range breaks(t) {
		if one.Removed {
			remove(policy.Object, strings.Split(one.Field, "."))
		}
	}
}

// remove removes the fields with a path, of all elements of the lists in it.
func remove(value any, path []string) {
	switch value := value.(type) {
	case []any:
		for _, each := range value {
			remove(each, path)
		}
	case map[string]any:
		name := strings.TrimSuffix(path[0], "[*]")
		if len(path) == 1 {
			delete(value, name)
			return
		}
		remove(value[name], path[1:])
	}
}

// install applies the CRDs of a folder, with changes, and waits until the API server uses them, which it detects
// by a field that only these have.
func (s *server) install(t *testing.T, folder string, changes ...func(*apiextensionsv1.CustomResourceDefinition)) {
	t.Helper()
	options := envtest.CRDInstallOptions{Paths: []string{folder}, ErrorIfPathMissing: true}
	expect.NoError(t, envtest.ReadCRDFiles(&options))
	s.installed++
	mark := fmt.Sprint("mark", s.installed)
	for _, crd := range options.CRDs {
		for _, change := range changes {
			change(crd)
		}
		for _, version := range crd.Spec.Versions {
			version.Schema.OpenAPIV3Schema.Properties["spec"].Properties[mark] = apiextensionsv1.JSONSchemaProps{Type: "string"}
		}
	}
	if _, err := envtest.InstallCRDs(s.Kubeconfig, envtest.CRDInstallOptions{CRDs: options.CRDs}); err != nil {
		t.Fatal(err)
	}
	marked := &unstructured.Unstructured{}
	text := "apiVersion: conversion-operator.io/v1alpha1\nkind: ConversionPolicy\nmetadata: {name: marked.example.com}\nspec: {converter: {none: {}}, " + mark + ": here}"
	expect.NoError(t, yaml.Unmarshal([]byte(text), &marked.Object))
	expect.Success(t, "the API server goes by "+folder, func(ctx context.Context) error {
		return s.Create(ctx, marked.DeepCopy(), client.DryRunAll, client.FieldValidation("Strict"))
	})
}

// create creates a policy with its status, and returns it as stored.
func (s *server) create(t *testing.T, policy *unstructured.Unstructured) *unstructured.Unstructured {
	t.Helper()
	created := policy.DeepCopy()
	for _, field := range []string{"uid", "resourceVersion", "creationTimestamp", "generation"} {
		unstructured.RemoveNestedField(created.Object, "metadata", field)
	}
	expect.NoError(t, s.Create(t.Context(), created, client.FieldValidation("Strict")))
	created.Object["status"] = policy.Object["status"]
	expect.NoError(t, s.Status().Update(t.Context(), created, client.FieldValidation("Strict")))
	if diff := cmp.Diff(policy.Object["status"], created.Object["status"]); diff != "" {
		t.Errorf("the status is not what was written (-want +got):\n%s", diff)
	}
	dropRemoved(t, created) // defaults of the earlier version
	return created
}

// check compares an earlier policy with the one in the API server.
func (s *server) check(t *testing.T, policy *unstructured.Unstructured) {
	found := policy.DeepCopy()
	expect.NoError(t, s.Get(t.Context(), client.ObjectKeyFromObject(policy), found))
	compare(t, "is read", policy, found)
	found.SetLabels(map[string]string{"touched": "true"})
	expect.NoError(t, s.Update(t.Context(), found, client.FieldValidation("Strict")))
	compare(t, "is written", policy, found)
	// An update may keep invalid values of the old object. A create may not.
	found.SetFinalizers(nil)
	expect.NoError(t, s.Update(t.Context(), found))
	expect.NoError(t, s.Delete(t.Context(), found))
	compare(t, "is created", policy, s.create(t, policy))
}

// compare ignores defaults of new fields.
func compare(t *testing.T, how string, was, is *unstructured.Unstructured) {
	t.Helper()
	for _, part := range []string{"spec", "status"} {
		if lost := missing(part, was.Object[part], is.Object[part]); len(lost) > 0 {
			t.Errorf("when it %s, %v is not as it was", how, lost)
		}
	}
}

// missing returns the paths of values that are gone or different.
func missing(path string, was, is any) []string {
	var lost []string
	switch was := was.(type) {
	case map[string]any:
		now, _ := is.(map[string]any)
		for key, value := range was {
			lost = append(lost, missing(path+"."+key, value, now[key])...)
		}
	case []any:
		now, _ := is.([]any)
		if len(was) != len(now) {
			return []string{fmt.Sprintf("%s: %v, now %v", path, was, is)}
		}
		for i, value := range was {
			lost = append(lost, missing(fmt.Sprintf("%s[%d]", path, i), value, now[i])...)
		}
	default:
		if !cmp.Equal(was, is) {
			return []string{fmt.Sprintf("%s: %v, now %v", path, was, is)}
		}
	}
	return lost
}
