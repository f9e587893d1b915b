//go:build integration

// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/conversion-operator/conversion-operator/internal/test/expect"
)

// testVersions writes gadgets at each version and reads them at each, with every storage version.
// At the end, etcd has objects of many versions.
func testVersions(t *testing.T, s *apiServer) {
	k := s.installGadgets(t, "versions")
	written := map[string]string{}
	for turn, storage := range []string{"v1", "v1alpha1", "v1beta1", "v1"} {
		if turn > 0 {
			k.store(t, storage)
		}
		for _, version := range versions {
			name := fmt.Sprintf("%d-%s", turn, version)
			written[name] = version
			wantFields(t, name+" as created", k.create(t, version, name, spec(version, "a")), spec(version, "a"))
			stored := k.stored(t, name)
			expect.Equal(t, "version at which "+name+" is stored", storage, versionOf(stored))
			wantFields(t, name+" in etcd", stored, seen(version, storage, "a"))
		}
		k.wantSeen(t, written)
	}
	for name, version := range written {
		k.mergePatch(t, version, name, "metadata: {labels: {touched: 'yes'}}")
		expect.Equal(t, "version at which "+name+" is stored after it was written", "v1", versionOf(k.stored(t, name)))
	}
	k.wantSeen(t, written)
}

// wantSeen reads gadgets, by name with the version of the write, at every version: one by one, and
// in a list.
func (k *kind) wantSeen(t *testing.T, written map[string]string) {
	t.Helper()
	for _, read := range versions {
		for name, version := range written {
			wantFields(t, name+" at "+read, k.get(t, read, name), seen(version, read, "a"))
		}
		list, err := k.at(read).List(t.Context(), metav1.ListOptions{})
		expect.NoError(t, err)
		var names []string
		for i := range list.Items {
			item := &list.Items[i]
			names = append(names, item.GetName())
			expect.Equal(t, "version of "+item.GetName()+" in the list of "+read, read, versionOf(item))
			wantFields(t, item.GetName()+" in the list of "+read, item, seen(written[item.GetName()], read, "a"))
		}
		expect.Equal(t, "names in the list of "+read, slices.Sorted(maps.Keys(written)), slices.Sorted(slices.Values(names)))
	}
}

// testServed unserves each version and serves it again. The others are not affected, and the
// version's own fields are not lost.
func testServed(t *testing.T, s *apiServer) {
	k := s.installGadgets(t, "served")
	for _, version := range versions {
		k.create(t, version, "from-"+version, spec(version, "a"))
	}
	serve := func(version string, served bool) {
		k.change(t, func(crd *apiextensionsv1.CustomResourceDefinition) {
			for i := range crd.Spec.Versions {
				if crd.Spec.Versions[i].Name == version {
					crd.Spec.Versions[i].Served = served
				}
			}
		})
	}
	for i, version := range versions {
		serve(version, false)
		k.awaitNotServed(t, version)
		for _, other := range slices.Concat(versions[:i], versions[i+1:]) {
			k.awaitServed(t, other)
			wantFields(t, "from-"+version+" at "+other, k.get(t, other, "from-"+version), seen(version, other, "a"))
			k.mergePatch(t, other, "from-"+version, "metadata: {labels: {by: "+other+"}}")
		}
		serve(version, true)
		k.awaitServed(t, version)
		wantFields(t, "from-"+version+" at "+version, k.get(t, version, "from-"+version), spec(version, "a"))
	}
}

// mix creates gadgets that are stored in all versions.
func (k *kind) mix(t *testing.T) {
	t.Helper()
	for _, storage := range versions {
		k.store(t, storage)
		for _, written := range versions {
			object := k.gadget(t, written, storage+"-"+written, spec(written, "a"))
			_, err := k.at(written).Create(t.Context(), object, metav1.CreateOptions{})
			expect.NoError(t, err)
		}
	}
	for _, storage := range versions {
		expect.Equal(t, "version at which "+storage+"-v1beta1 is stored", storage, versionOf(k.stored(t, storage+"-v1beta1")))
	}
}

// testDeleteDefinition deletes the CRD with its gadgets. One of them has a finalizer that its owner
// removes at the old version.
func testDeleteDefinition(t *testing.T, s *apiServer) {
	k := s.installGadgets(t, "deleted")
	k.mix(t)
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
	expect.Equal(t, "left in etcd", "[]", fmt.Sprint(k.left(t)))
}

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
