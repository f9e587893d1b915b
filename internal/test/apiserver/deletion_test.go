//go:build integration

// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/conversion-operator/conversion-operator/internal/test/expect"
)

// mix creates gadgets that are stored in all versions.
func (k *kind) mix(t *testing.T, namespace string) {
	t.Helper()
	for _, storage := range versions {
		k.store(t, storage)
		for _, written := range versions {
			object := k.gadget(t, written, storage+"-"+written, spec(written, "a"))
			_, err := k.in(namespace, written).Create(t.Context(), object, metav1.CreateOptions{})
			expect.NoError(t, err)
		}
	}
	for _, storage := range versions {
		if got := versionOf(k.storedIn(t, namespace, storage+"-v1beta1")); got != storage {
			t.Fatalf("%s-v1beta1 is stored at %s", storage, got)
		}
	}
}

// testDeleteDefinition deletes the CRD with its gadgets. One of them has a finalizer that its owner
// removes at the old version.
func testDeleteDefinition(t *testing.T, s *apiServer) {
	k := s.installGadgets(t, "deleted")
	k.mix(t, namespace)
	k.mergePatch(t, "v1", "v1-v1", "metadata: {finalizers: [example.com/hold]}")
	expect.NoError(t, k.crds.Delete(t.Context(), k.crd, metav1.DeleteOptions{}))
	held := []string{k.key(namespace, "v1-v1")}
	expect.Success(t, "all gadgets but the held one are gone", func(context.Context) error {
		if left := k.left(t); len(left) != len(held) || left[0] != held[0] {
			return fmt.Errorf("etcd has %v", left)
		}
		return nil
	})
	k.mergePatch(t, "v1alpha1", "v1-v1", "metadata: {finalizers: null}")
	expect.Success(t, "the definition is gone", func(ctx context.Context) error {
		_, err := k.crds.Get(ctx, k.crd, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			return nil
		}
		return errors.Join(errors.New("it was found"), err)
	})
	if left := k.left(t); len(left) > 0 {
		t.Errorf("etcd still has %v", left)
	}
}

// testDeleteCollection empties a terminating namespace like the namespace controller: with one
// request at one of the versions.
func testDeleteCollection(t *testing.T, s *apiServer) {
	k := s.installGadgets(t, "emptied")
	for _, version := range versions {
		namespaces := k.objects.Resource(schema.GroupVersionResource{Version: "v1", Resource: "namespaces"})
		name := "emptied-at-" + version
		object := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "Namespace"}}
		object.SetName(name)
		_, err := namespaces.Create(t.Context(), object, metav1.CreateOptions{})
		expect.NoError(t, err)
		k.mix(t, name)
		expect.NoError(t, namespaces.Delete(t.Context(), name, metav1.DeleteOptions{}))
		_, err = k.in(name, version).Create(t.Context(), k.gadget(t, version, "late", "{}"), metav1.CreateOptions{})
		if !apierrors.IsForbidden(err) {
			t.Errorf("creating in a namespace that is being deleted: %v", err)
		}
		expect.NoError(t, k.in(name, version).DeleteCollection(t.Context(), metav1.DeleteOptions{}, metav1.ListOptions{}))
		for _, key := range k.left(t) {
			if strings.HasPrefix(key, k.key(name, "")+"/") {
				t.Errorf("etcd still has %s after a deletion at %s", key, version)
			}
		}
	}
}
