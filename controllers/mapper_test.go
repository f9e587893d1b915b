// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"slices"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"

	"github.com/conversion-operator/conversion-operator/internal/test/expect"
)

// served are the discovery documents of an API server, by path. It records the paths of requests.
type served struct {
	documents map[string]any
	asked     []string
}

func (s *served) ServeHTTP(w http.ResponseWriter, request *http.Request) {
	s.asked = append(s.asked, request.URL.Path)
	document, found := s.documents[request.URL.Path]
	if !found {
		http.NotFound(w, request)
		return
	}
	if status, is := document.(int); is {
		w.WriteHeader(status)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(document) // the client reports it
}

// group is the document of a group. The first version is preferred.
func group(name string, versions ...string) metav1.APIGroup {
	made := metav1.APIGroup{Name: name}
	for _, version := range versions {
		made.Versions = append(made.Versions, metav1.GroupVersionForDiscovery{GroupVersion: name + "/" + version, Version: version})
	}
	made.PreferredVersion = made.Versions[0]
	return made
}

func resources(groupVersion string, made ...metav1.APIResource) metav1.APIResourceList {
	return metav1.APIResourceList{GroupVersion: groupVersion, APIResources: made}
}

func newServedMapper(t *testing.T, documents map[string]any) (meta.RESTMapper, *served) {
	t.Helper()
	api := &served{documents: documents}
	server := httptest.NewServer(api)
	t.Cleanup(server.Close)
	mapper, err := NewMapper(&rest.Config{Host: server.URL, QPS: -1}, server.Client())
	expect.NoError(t, err)
	return mapper, api
}

// TestMapperReadsOneGroup: only the groups of the kinds that are asked for are read, once.
func TestMapperReadsOneGroup(t *testing.T) {
	mapper, api := newServedMapper(t, map[string]any{
		"/api/v1":           resources("v1", metav1.APIResource{Name: "pods", Kind: "Pod", Namespaced: true}, metav1.APIResource{Name: "nodes", Kind: "Node"}),
		"/apis/apps":        group("apps", "v1"),
		"/apis/apps/v1":     resources("apps/v1", metav1.APIResource{Name: "deployments", Kind: "Deployment", Namespaced: true}),
		"/apis/example.com": group("example.com", "v2", "v1"),
		// v2 is being removed.
		"/apis/example.com/v1": resources("example.com/v1", metav1.APIResource{Name: "crontabs", Kind: "CronTab"}),
	})
	for range 2 {
		for _, want := range []struct {
			kind     schema.GroupVersionKind
			versions []string
			resource string
			scope    meta.RESTScopeName
		}{
			{schema.GroupVersionKind{Version: "v1", Kind: "Pod"}, []string{"v1"}, "pods", meta.RESTScopeNameNamespace},
			{schema.GroupVersionKind{Version: "v1", Kind: "Node"}, []string{"v1"}, "nodes", meta.RESTScopeNameRoot},
			{schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "Deployment"}, []string{"v1"}, "deployments", meta.RESTScopeNameNamespace},
			{schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "CronTab"}, nil, "crontabs", meta.RESTScopeNameRoot},
		} {
			mapping, err := mapper.RESTMapping(want.kind.GroupKind(), want.versions...)
			expect.NoError(t, err)
			if mapping.GroupVersionKind != want.kind || mapping.Resource != want.kind.GroupVersion().WithResource(want.resource) || mapping.Scope.Name() != want.scope {
				t.Errorf("%s has the mapping %+v", want.kind, mapping)
			}
		}
	}
	want := []string{"/api/v1", "/apis/apps", "/apis/apps/v1", "/apis/example.com", "/apis/example.com/v2", "/apis/example.com/v1"}
	expect.Equal(t, "asked for", want, api.asked)
}

// TestMapperFindsNewKinds: a kind that did not exist is looked for again, in its group only.
func TestMapperFindsNewKinds(t *testing.T) {
	documents := map[string]any{}
	mapper, api := newServedMapper(t, documents)
	kind := schema.GroupKind{Group: "example.com", Kind: "CronTab"}
	missing := func(when string) {
		t.Helper()
		_, err := mapper.RESTMapping(kind)
		expect.Equal(t, when+": no kind matches", true, meta.IsNoMatchError(err))
	}
	missing("no group")
	documents["/apis/example.com"] = group("example.com", "v1")
	documents["/apis/example.com/v1"] = resources("example.com/v1", metav1.APIResource{Name: "others", Kind: "Other"})
	missing("another kind in the group")
	documents["/apis/example.com/v1"] = http.StatusForbidden
	if _, err := mapper.RESTMapping(kind); err == nil || meta.IsNoMatchError(err) {
		t.Errorf("a request that failed is no answer: %v", err)
	}
	documents["/apis/example.com/v1"] = resources("example.com/v1", metav1.APIResource{Name: "crontabs", Kind: "CronTab"})
	if mapping, err := mapper.RESTMapping(kind); err != nil || mapping.Resource.Resource != "crontabs" {
		t.Errorf("%s has the mapping %v, %v", kind, mapping, err)
	}
	if _, err := mapper.RESTMapping(kind, "v2"); !meta.IsNoMatchError(err) {
		t.Errorf("a version that does not exist: the answer is %v", err)
	}
	expect.Equal(t, "all groups were read", false, slices.Contains(api.asked, "/apis"))
}
