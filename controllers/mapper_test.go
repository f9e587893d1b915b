// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// asked counts questions for mappings.
type asked struct {
	meta.RESTMapper
	count int
}

func (a *asked) RESTMapping(gk schema.GroupKind, versions ...string) (*meta.RESTMapping, error) {
	a.count++
	return a.RESTMapper.RESTMapping(gk, versions...)
}

// TestStableMapper: what can change is asked for each time.
func TestStableMapper(t *testing.T) {
	kinds := map[schema.GroupVersionKind]int{
		{Version: "v1", Kind: "Pod"}:                                                            1,
		{Group: "apps", Version: "v1", Kind: "Deployment"}:                                      1,
		{Group: "storagemigration.k8s.io", Version: "v1beta1", Kind: "StorageVersionMigration"}: 3,
		{Group: "example.com", Version: "v1", Kind: "CronTab"}:                                  3,
	}
	for kind, want := range kinds {
		known := meta.NewDefaultRESTMapper(nil)
		wrapped := &asked{RESTMapper: known}
		mapper := &stableMapper{RESTMapper: wrapped}
		if _, err := mapper.RESTMapping(kind.GroupKind(), kind.Version); !meta.IsNoMatchError(err) {
			t.Errorf("%s is unknown, and the answer is %v", kind, err)
		}
		known.Add(kind, meta.RESTScopeNamespace)
		wrapped.count = 0
		for range 3 {
			mapping, err := mapper.RESTMapping(kind.GroupKind(), kind.Version)
			if err != nil || mapping.GroupVersionKind != kind {
				t.Errorf("%s has the mapping %v, %v", kind, mapping, err)
			}
		}
		if wrapped.count != want {
			t.Errorf("%s: %d questions, want %d", kind, wrapped.count, want)
		}
	}
}
