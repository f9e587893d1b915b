//go:build integration

// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"fmt"
	"slices"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/conversion-operator/conversion-operator/internal/test/expect"
)

// testWatch watches gadgets at each version while others write them.
func testWatch(t *testing.T, s *apiServer) {
	k := s.installGadgets(t, "watch")
	k.create(t, "v1beta1", "old", spec("v1beta1", "a"))
	k.store(t, "v1alpha1")
	for _, read := range versions {
		// Without a resource version, a watch begins with the existing objects.
		events := k.watch(t, read, metav1.ListOptions{})
		events.want(t, watch.Added, "old", seen("v1beta1", read, "a"))
		for _, written := range versions {
			name := "at-" + read + "-from-" + written
			k.create(t, written, name, spec(written, "a"))
			events.want(t, watch.Added, name, seen(written, read, "a"))
			expect.NoError(t, k.replace(t, written, name, spec(written, "b")))
			events.want(t, watch.Modified, name, seen(written, read, "b"))
			expect.NoError(t, k.at(written).Delete(t.Context(), name, metav1.DeleteOptions{}))
			events.want(t, watch.Deleted, name, seen(written, read, "b"))
		}
	}
}

// replace reads a gadget and writes it with other fields.
func (k *kind) replace(t *testing.T, version, name, fields string) error {
	t.Helper()
	object := k.gadget(t, version, name, fields)
	read := k.get(t, version, name)
	object.Object["metadata"] = read.Object["metadata"]
	_, err := k.at(version).Update(t.Context(), object, metav1.UpdateOptions{})
	return err
}

type events struct {
	version string
	watch.Interface
}

func (k *kind) watch(t *testing.T, version string, options metav1.ListOptions) *events {
	t.Helper()
	opened, err := k.at(version).Watch(t.Context(), options)
	expect.NoError(t, err)
	t.Cleanup(opened.Stop)
	return &events{version: version, Interface: opened}
}

// want expects this event next.
func (e *events) want(t *testing.T, event watch.EventType, name, fields string) {
	t.Helper()
	select {
	case got, open := <-e.ResultChan():
		object, ok := got.Object.(*unstructured.Unstructured)
		if !open || !ok {
			t.Fatalf("the watch of %s ended instead of telling that %s is %s: %v", e.version, name, event, got)
		}
		if got.Type != event || object.GetName() != name || versionOf(object) != e.version {
			t.Fatalf("the watch of %s tells that %s of %s is %s, want %s to be %s",
				e.version, object.GetName(), versionOf(object), got.Type, name, event)
		}
		wantFields(t, fmt.Sprintf("%s %s at %s", name, event, e.version), object, fields)
	case <-time.After(expect.Patience):
		t.Fatalf("the watch of %s does not tell that %s is %s", e.version, name, event)
	}
}

// names returns the sorted names in a list.
func (k *kind) names(t *testing.T, version string, options metav1.ListOptions) []string {
	t.Helper()
	list, err := k.at(version).List(t.Context(), options)
	expect.NoError(t, err)
	var names []string
	for i := range list.Items {
		names = append(names, list.Items[i].GetName())
	}
	return slices.Sorted(slices.Values(names))
}
