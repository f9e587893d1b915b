// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"net/http"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
)

// stableMapper remembers the mappings of kinds that every API server has and that never change:
// stable versions of Kubernetes' own kinds. Each read from the cache asks for a mapping, and the mapper
// that it wraps goes through all groups of the API server each time.
type stableMapper struct {
	meta.RESTMapper
	known sync.Map // a mapping by its schema.GroupVersionKind
}

// NewMapper is a manager.Options.MapperProvider.
func NewMapper(config *rest.Config, httpClient *http.Client) (meta.RESTMapper, error) {
	dynamic, err := apiutil.NewDynamicRESTMapper(config, httpClient)
	return &stableMapper{RESTMapper: dynamic}, err
}

// RESTMapping implements meta.RESTMapper.
func (m *stableMapper) RESTMapping(gk schema.GroupKind, versions ...string) (*meta.RESTMapping, error) {
	if len(versions) != 1 || !stable(gk.WithVersion(versions[0])) {
		return m.RESTMapper.RESTMapping(gk, versions...)
	}
	key := gk.WithVersion(versions[0])
	if known, found := m.known.Load(key); found {
		return known.(*meta.RESTMapping), nil //nolint:forcetypeassert // there is nothing else in it
	}
	mapping, err := m.RESTMapper.RESTMapping(gk, versions...)
	if err == nil {
		m.known.Store(key, mapping)
	}
	return mapping, err
}

func stable(gvk schema.GroupVersionKind) bool {
	return clientgoscheme.Scheme.Recognizes(gvk) && !strings.Contains(gvk.Version, "alpha") && !strings.Contains(gvk.Version, "beta")
}
