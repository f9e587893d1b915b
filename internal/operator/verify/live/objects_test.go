// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package live

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"

	"github.com/conversion-operator/conversion-operator/internal/engine/manifest"
	"github.com/conversion-operator/conversion-operator/internal/test/expect"
)

// server answers URLs by a table, and records the requested ones.
func server(t *testing.T, answers map[string]string) (cluster *Cluster, requested *[]string) {
	t.Helper()
	requested = &[]string{}
	api := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		*requested = append(*requested, r.URL.String())
		answer, found := answers[r.URL.String()]
		if !found {
			answer = `404 {"kind":"Status","apiVersion":"v1","status":"Failure","reason":"NotFound","message":"no such thing","code":404}`
		}
		code, body, _ := strings.Cut(answer, " ")
		w.Header().Set("Content-Type", "application/json")
		status := http.StatusOK
		if _, err := fmt.Sscan(code, &status); err != nil {
			t.Error(err)
		}
		w.WriteHeader(status)
		fmt.Fprint(w, body)
	}))
	t.Cleanup(api.Close)
	cluster, err := Connect(&rest.Config{Host: api.URL})
	expect.NoError(t, err)
	return cluster, requested
}

const expired = `410 {"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Expired","message":"too old","code":410`

func TestObjects(t *testing.T) {
	const at = "/apis/example.com/v1/crontabs?limit="
	item := func(name string) string { return `{"metadata":{"name":"` + name + `"},"big":9007199254740993}` }
	list := func(metadata string, names ...string) string {
		var items []string
		for _, name := range names {
			items = append(items, item(name))
		}
		return `200 {"metadata":{` + metadata + `},"items":[` + strings.Join(items, ",") + `]}`
	}
	for name, test := range map[string]struct {
		query    Query
		answers  map[string]string
		want     []string
		progress []string
		err      string
	}{
		"pages": {
			Query{PageSize: 2}, map[string]string{
				at + "2": list(`"continue":"x","remainingItemCount":1`, "a", "b"),
				"/apis/example.com/v1/crontabs?continue=x&limit=2": list(``, "c"),
			}, []string{"a", "b", "c"}, []string{"2 of 3", "3 of 3"}, "",
		},
		"a sample ends early": {
			Query{PageSize: 2, Sample: 3}, map[string]string{
				at + "2": list(`"continue":"x","remainingItemCount":9`, "a", "b"),
				"/apis/example.com/v1/crontabs?continue=x&limit=1": list(`"continue":"y","remainingItemCount":8`, "c"),
			}, []string{"a", "b", "c"}, []string{"2 of 3", "3 of 3"}, "",
		},
		"an expired token is renewed": {
			Query{PageSize: 2}, map[string]string{
				at + "2": list(`"continue":"x"`, "a"),
				"/apis/example.com/v1/crontabs?continue=x&limit=2": expired + `,"metadata":{"continue":"y"}}`,
				"/apis/example.com/v1/crontabs?continue=y&limit=2": list(``, "b"),
			}, []string{"a", "b"}, []string{"1 of 1", "2 of 2"}, "",
		},
		"an expired token is not renewed": {
			Query{PageSize: 2}, map[string]string{
				at + "2": list(`"continue":"x"`, "a"),
				"/apis/example.com/v1/crontabs?continue=x&limit=2": expired + "}",
			}, []string{"a"}, []string{"1 of 1"}, "list crontabs.example.com at version v1: too old",
		},
		"a namespace and labels": {
			Query{PageSize: 5, Namespace: "n", Selector: "a=b"}, map[string]string{
				"/apis/example.com/v1/namespaces/n/crontabs?labelSelector=a%3Db&limit=5": list(``),
			}, nil, []string{"0 of 0"}, "",
		},
		"not found": {Query{PageSize: 5}, nil, nil, nil, "list crontabs.example.com at version v1: no such thing"},
	} {
		t.Run(name, func(t *testing.T) {
			cluster, requested := server(t, test.answers)
			test.query.Resource = schema.GroupVersionResource{Group: "example.com", Version: "v1", Resource: "crontabs"}
			var got, progress []string
			err := cluster.Objects(t.Context(), test.query, func(object manifest.Object) {
				got = append(got, object.String())
				expect.Equal(t, "text", item(object.Name), string(object.JSON))
			}, func(done, remaining int64) { progress = append(progress, fmt.Sprint(done, " of ", done+remaining)) })
			if text := fmt.Sprint(err); err != nil && text != test.err || err == nil && test.err != "" {
				t.Errorf("error is %v, want %q", err, test.err)
			}
			expect.Equal(t, fmt.Sprintf("objects; requested: %v", *requested), test.want, got)
			expect.Equal(t, "progress", test.progress, progress)
		})
	}
}

func TestDefinitions(t *testing.T) {
	cluster, _ := server(t, map[string]string{
		"/apis/apiextensions.k8s.io/v1/customresourcedefinitions/a":  `200 {"metadata":{"name":"a"}}`,
		"/apis/conversion-operator.io/v1alpha1/conversionpolicies/a": `200 {"metadata":{"name":"a"}}`,
		"/apis/conversion-operator.io/v1alpha1/conversionpolicies/c": `403 {"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Forbidden","message":"not for you","code":403}`,
	})
	for _, name := range []string{"a", "b", "c"} {
		crd, err := cluster.Definition(t.Context(), name)
		want := map[string]string{"b": "the cluster has no CustomResourceDefinition b: pass one with --crd", "c": "the cluster has no CustomResourceDefinition c: pass one with --crd"}[name]
		if err == nil && crd.Name != name || err != nil && err.Error() != want {
			t.Errorf("CustomResourceDefinition %s: %v", name, err)
		}
		policy, err := cluster.Policy(t.Context(), name)
		want = map[string]string{"b": "the cluster has no ConversionPolicy b: pass one with --policy", "c": "read ConversionPolicy c from the cluster: not for you"}[name]
		if err == nil && policy.Name != name || err != nil && err.Error() != want {
			t.Errorf("ConversionPolicy %s: %v", name, err)
		}
	}
}

func TestVersionToRead(t *testing.T) {
	crd := func(versions ...apiextensionsv1.CustomResourceDefinitionVersion) *apiextensionsv1.CustomResourceDefinition {
		crd := &apiextensionsv1.CustomResourceDefinition{}
		crd.Name, crd.Spec.Versions = "crontabs.example.com", versions
		return crd
	}
	type answer struct {
		version  string
		asStored bool
		err      string
	}
	for name, test := range map[string]struct {
		crd  *apiextensionsv1.CustomResourceDefinition
		want answer
	}{
		"the storage version": {
			crd(apiextensionsv1.CustomResourceDefinitionVersion{Name: "v1", Served: true}, apiextensionsv1.CustomResourceDefinitionVersion{Name: "v2", Served: true, Storage: true}),
			answer{"v2", true, ""},
		},
		"it is not served": {
			crd(apiextensionsv1.CustomResourceDefinitionVersion{Name: "v1", Storage: true}, apiextensionsv1.CustomResourceDefinitionVersion{Name: "v2", Served: true}),
			answer{"v2", false, ""},
		},
		"none is served": {
			crd(apiextensionsv1.CustomResourceDefinitionVersion{Name: "v1", Storage: true}),
			answer{"", false, "CustomResourceDefinition crontabs.example.com serves no version: its objects cannot be read"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			version, asStored, err := VersionToRead(test.crd)
			got := answer{version: version, asStored: asStored}
			if err != nil {
				got.err = err.Error()
			}
			expect.Equal(t, "result", test.want, got, cmp.AllowUnexported(answer{}))
		})
	}
}
