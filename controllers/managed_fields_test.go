// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/metadata/fake"
	clienttesting "k8s.io/client-go/testing"

	"github.com/conversion-operator/conversion-operator/internal/test/expect"
)

var cronTabs = schema.GroupVersionResource{Group: "example.com", Version: "v1", Resource: "crontabs"}

// errDropped makes the API server drop all entries of the object, and errKeeps keep them.
var errDropped, errKeeps = errors.New("dropped"), errors.New("keeps")

// objectsOf returns a cluster whose objects name the given versions in managedFields. The answer
// to a patch is answer; the object changes if that is nil.
func objectsOf(t *testing.T, objects map[string][]string, answer func(name string) error) (*managedFieldsCleaner, func() map[string][]string) {
	t.Helper()
	client := fake.NewSimpleMetadataClient(runtime.NewScheme())
	var mu sync.Mutex
	client.PrependReactor("list", "crontabs", func(clienttesting.Action) (bool, runtime.Object, error) {
		mu.Lock()
		defer mu.Unlock()
		list := &metav1.List{}
		for name, versions := range objects {
			list.Items = append(list.Items, runtime.RawExtension{Object: head(name, versions)})
		}
		return true, list, nil
	})
	client.PrependReactor("patch", "crontabs", func(action clienttesting.Action) (bool, runtime.Object, error) {
		patch := action.(clienttesting.PatchAction) //nolint:forcetypeassert // it reacts to patches
		mu.Lock()
		defer mu.Unlock()
		err := answer(patch.GetName())
		switch {
		case err == nil:
			objects[patch.GetName()] = versionsIn(t, patch.GetPatch())
		case errors.Is(err, errDropped):
			objects[patch.GetName()], err = nil, nil
		case errors.Is(err, errKeeps):
			err = nil
		}
		return true, head(patch.GetName(), objects[patch.GetName()]), err
	})
	c := &managedFieldsCleaner{definition: steady{}, objects: client.Resource(cronTabs), storage: "example.com/v1", others: []string{"example.com/v1", "example.com/v1alpha1"}}
	c.objectsIn = func(namespace string) metadata.ResourceInterface {
		return client.Resource(cronTabs).Namespace(namespace)
	}
	return c, func() map[string][]string {
		mu.Lock()
		defer mu.Unlock()
		return objects
	}
}

func head(name string, versions []string) *metav1.PartialObjectMetadata {
	object := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, ResourceVersion: "1", UID: "u"}}
	for i, version := range versions {
		object.ManagedFields = append(object.ManagedFields, metav1.ManagedFieldsEntry{Manager: fmt.Sprint(i), APIVersion: "example.com/" + version})
	}
	return object
}

// operation is an operation of a JSON patch.
type operation struct {
	Path  string          `json:"path"`
	Value json.RawMessage `json:"value"`
}

// versionsIn returns the versions that a patch leaves in managedFields.
func versionsIn(t *testing.T, patch []byte) []string {
	t.Helper()
	var operations []operation
	var entries []metav1.ManagedFieldsEntry
	if err := json.Unmarshal(patch, &operations); err != nil {
		t.Error(err)
	}
	at := slices.IndexFunc(operations, func(o operation) bool { return o.Path == "/metadata/managedFields" })
	if err := json.Unmarshal(operations[at].Value, &entries); err != nil {
		t.Error(err)
	}
	var versions []string
	for _, entry := range entries {
		versions = append(versions, strings.TrimPrefix(entry.APIVersion, "example.com/"))
	}
	return versions
}

// until returns an answer for all tries before the given one.
func until(try int, answer error) func(string) error {
	tries := 0
	return func(string) error {
		if tries++; tries < try {
			return answer
		}
		return nil
	}
}

// TestCleanManagedFields removes the name of a version, keeps the others, and leaves at least one
// entry.
func TestCleanManagedFields(t *testing.T) {
	resource := cronTabs.GroupResource()
	attempts := map[string]int{}
	answers := map[string]func(name string) error{
		"a": func(string) error { return nil },
		"conflict": func(name string) error {
			if attempts[name]++; attempts[name] == 1 {
				return apierrors.NewConflict(resource, name, nil)
			}
			return nil
		},
		"denied": func(name string) error { return apierrors.NewForbidden(resource, name, nil) },
		"busy":   func(name string) error { return apierrors.NewConflict(resource, name, nil) },
		"away":   until(replaceTries-1, errDropped),
		"stuck":  until(replaceTries, errDropped),
		"late":   until(replaceTries, errKeeps),
		"stays":  func(string) error { return errKeeps },
	}
	for name, test := range map[string]struct {
		objects, want map[string][]string
		failure       string
	}{
		"nothing to do":       {map[string][]string{"a": {"v1"}}, map[string][]string{"a": {"v1"}}, ""},
		"others stay":         {map[string][]string{"a": {"v1", "v1beta1", "v1alpha1"}}, map[string][]string{"a": {"v1", "v1alpha1"}}, ""},
		"one entry is kept":   {map[string][]string{"a": {"v1beta1", "v1beta1"}}, map[string][]string{"a": {"v1"}}, ""},
		"written in between":  {map[string][]string{"conflict": {"v1", "v1beta1"}}, map[string][]string{"conflict": {"v1"}}, ""},
		"one cannot be":       {map[string][]string{"a": {"v1beta1"}, "denied": {"v1beta1"}}, map[string][]string{"a": {"v1"}, "denied": {"v1beta1"}}, "1 objects could not be changed, for example default/denied"},
		"no converter":        {map[string][]string{"away": {"v1alpha1", "v1beta1"}}, map[string][]string{"away": {"v1alpha1"}}, ""},
		"kept for a while":    {map[string][]string{"late": {"v1alpha1", "v1beta1"}}, map[string][]string{"late": {"v1alpha1"}}, ""},
		"kept for ever":       {map[string][]string{"stays": {"v1alpha1", "v1beta1"}}, map[string][]string{"stays": {"v1alpha1", "v1beta1"}}, "default/stays: the API server keeps metadata.managedFields unchanged"},
		"of a version gone":   {map[string][]string{"a": {"v1", "v1beta1", "v0"}}, map[string][]string{"a": {"v1"}}, ""},
		"only of one gone":    {map[string][]string{"a": {"v0"}}, map[string][]string{"a": {"v1"}}, ""},
		"none that can":       {map[string][]string{"stuck": {"v1alpha1", "v1beta1"}}, map[string][]string{"stuck": {"v1"}}, ""},
		"one is always newer": {map[string][]string{"busy": {"v1beta1"}}, map[string][]string{"busy": {"v1beta1"}}, "another writer keeps re-adding"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c, objects := objectsOf(t, test.objects, func(name string) error { return answers[name](name) })
				err := c.run(t.Context())
				if test.failure == "" && err != nil || test.failure != "" && (err == nil || !strings.Contains(err.Error(), test.failure)) {
					t.Errorf("error %v, want %q", err, test.failure)
				}
				expect.Equal(t, "versions in managedFields", test.want, objects())
			})
		})
	}
}

// TestCleanLongLists: etcd forgets a list after some minutes. A kind whose list takes longer is cleaned
// all the same, because the list goes on in a newer state.
func TestCleanLongLists(t *testing.T) {
	client := fake.NewSimpleMetadataClient(runtime.NewScheme())
	c := &managedFieldsCleaner{definition: steady{}, storage: "example.com/v1", others: []string{"example.com/v1"}}
	var tokens []string
	ctx, cancel := context.WithCancel(t.Context())
	c.objects = byToken{client.Resource(cronTabs), func(token string) (*metav1.PartialObjectMetadataList, error) {
		if tokens = append(tokens, token); len(tokens) > 10 {
			cancel()
			return nil, ctx.Err()
		}
		switch token {
		case "":
			return pageOf("a", "b"), nil
		case "b":
			expired := apierrors.NewResourceExpired("the continue token is too old")
			expired.ErrStatus.Continue = "newer b"
			return nil, expired
		}
		return pageOf("b", ""), nil
	}}
	expect.NoError(t, c.pass(ctx))
	expect.Equal(t, "pages", []string{"", "b", "newer b"}, tokens)
}

// TestCleanExpiredLists: an API server that offers no newer state has the next pass start again, but
// not for ever.
func TestCleanExpiredLists(t *testing.T) {
	client := fake.NewSimpleMetadataClient(runtime.NewScheme())
	c := &managedFieldsCleaner{definition: steady{}, storage: "example.com/v1", others: []string{"example.com/v1"}}
	tries := 0
	ctx, cancel := context.WithCancel(t.Context())
	c.objects = byToken{client.Resource(cronTabs), func(token string) (*metav1.PartialObjectMetadataList, error) {
		if tries++; tries > 100 {
			cancel()
			return nil, ctx.Err()
		}
		if token == "" {
			return pageOf("a", "b"), nil
		}
		return nil, apierrors.NewResourceExpired("the continue token is too old")
	}}
	if err := c.run(ctx); !apierrors.IsResourceExpired(err) || tries != 1+2*cleanPasses {
		t.Errorf("error %v after %d pages", err, tries)
	}
}

// TestCleanAfterNewVersion: a version that comes to the CustomResourceDefinition while objects are cleaned
// keeps its entries.
func TestCleanAfterNewVersion(t *testing.T) {
	for name, now := range map[string]metav1.ObjectMeta{
		"changed":       {Name: "crontabs.example.com", UID: "u", Generation: 4},
		"created again": {Name: "crontabs.example.com", UID: "other", Generation: 3},
	} {
		t.Run(name, func(t *testing.T) {
			c, after := objectsOf(t, map[string][]string{"a": {"v1beta1", "v2"}}, func(string) error { return nil })
			c.crd = metav1.ObjectMeta{Name: "crontabs.example.com", UID: "u", Generation: 3}
			c.definition = steady{metav1.PartialObjectMetadata{ObjectMeta: now}}
			expect.Contains(t, "the error", fmt.Sprint(c.run(t.Context())), "crontabs.example.com changed meanwhile")
			expect.Equal(t, "versions in managedFields", map[string][]string{"a": {"v1beta1", "v2"}}, after())
		})
	}
}

// steady answers with the same object.
type steady struct{ metav1.PartialObjectMetadata }

func (s steady) Get(context.Context, string, metav1.GetOptions, ...string) (*metav1.PartialObjectMetadata, error) {
	return &s.PartialObjectMetadata, nil
}

// byToken answers lists by their token.
type byToken struct {
	metadata.ResourceInterface
	page func(token string) (*metav1.PartialObjectMetadataList, error)
}

func (p byToken) List(_ context.Context, options metav1.ListOptions) (*metav1.PartialObjectMetadataList, error) {
	return p.page(options.Continue)
}

func pageOf(name, token string) *metav1.PartialObjectMetadataList {
	page := &metav1.PartialObjectMetadataList{Items: []metav1.PartialObjectMetadata{*head(name, []string{"v1"})}}
	page.Continue = token
	return page
}
