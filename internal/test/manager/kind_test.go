//go:build integration

// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
	"github.com/conversion-operator/conversion-operator/internal/operator/crds"
	"github.com/conversion-operator/conversion-operator/internal/test/expect"
)

// kind is a kind of two versions with the same fields, so that its objects need no converter.
type kind struct {
	group, name string
	objects     dynamic.Interface
}

// newKind creates a kind with v1beta1, which is stored, and v1.
func newKind(t *testing.T, group string) *kind {
	t.Helper()
	crd := manifest(t, group, "v1beta1", "v1")
	crd.Spec.Versions[0].Schema = crd.Spec.Versions[1].Schema
	return kindOf(t, crd)
}

func kindOf(t *testing.T, crd *apiextensionsv1.CustomResourceDefinition) *kind {
	t.Helper()
	objects, err := dynamic.NewForConfig(server.Kubeconfig)
	expect.NoError(t, err)
	establish(t, crd)
	return &kind{group: crd.Spec.Group, name: crd.Name, objects: objects}
}

func (k *kind) at(version string) dynamic.ResourceInterface {
	return k.objects.Resource(schema.GroupVersionResource{Group: k.group, Version: version, Resource: "crontabs"}).Namespace("default")
}

// apply applies one object server-side, once its version and its fields are served.
func (k *kind) apply(t *testing.T, version, name, manager string, fields map[string]any) {
	t.Helper()
	object := &unstructured.Unstructured{Object: fields}
	object.SetAPIVersion(k.group + "/" + version)
	object.SetKind("CronTab")
	object.SetName(name)
	expect.Eventually(t, name+" is applied at "+version, func() (bool, string) {
		_, err := k.at(version).Apply(t.Context(), name, object, metav1.ApplyOptions{FieldManager: manager})
		return err == nil, fmt.Sprint(err)
	})
}

// stored counts the stored objects by version, from the bytes in etcd.
func (k *kind) stored(t *testing.T) map[string]int {
	t.Helper()
	entries, _, err := storage.List(t.Context(), "/registry/"+k.group+"/crontabs/")
	expect.NoError(t, err)
	versions := map[string]int{}
	for _, entry := range entries {
		object := struct{ APIVersion string }{}
		expect.NoError(t, json.Unmarshal(entry.Value, &object))
		versions[strings.TrimPrefix(object.APIVersion, k.group+"/")]++
	}
	return versions
}

// follow creates a policy for the kind.
func (k *kind) follow(t *testing.T, spec string) {
	t.Helper()
	create(t, "metadata: {name: "+k.name+"}\nspec: {converter: {type: None}, "+spec+"}", &v1alpha1.ConversionPolicy{})
}

// backdate moves the times in the status of a retirement into the past.
func backdate(t *testing.T, policy string, change func(*v1alpha1.RetirementStatus, metav1.Time)) {
	t.Helper()
	expect.Eventually(t, "the status is written", func() (bool, string) {
		current := getPolicy(t, policy)
		if len(current.Status.Retirement) == 0 {
			return false, "nothing is remembered"
		}
		change(&current.Status.Retirement[0], metav1.NewTime(time.Now().Add(-30*24*time.Hour)).Rfc3339Copy())
		err := cluster.Status().Update(t.Context(), current)
		return err == nil, fmt.Sprint(err)
	})
}

func (k *kind) version(t *testing.T, name string) *apiextensionsv1.CustomResourceDefinitionVersion {
	t.Helper()
	version, _ := crds.Version(getCRD(t, k.name), name)
	return version
}

// status returns the status of a version.
func (k *kind) status(t *testing.T, name string) v1alpha1.VersionStatus {
	t.Helper()
	for _, version := range getPolicy(t, k.name).Status.Versions {
		if version.Name == name {
			return version
		}
	}
	return v1alpha1.VersionStatus{}
}

// namedBy returns the objects that name a version in managedFields.
func (k *kind) namedBy(t *testing.T, version string) []string {
	t.Helper()
	list, err := k.at("v1").List(t.Context(), metav1.ListOptions{})
	expect.NoError(t, err)
	var all []string
	for _, object := range list.Items {
		for _, entry := range object.GetManagedFields() {
			if entry.APIVersion == k.group+"/"+version {
				all = append(all, object.GetName())
			}
		}
	}
	return all
}
