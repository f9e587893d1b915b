// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"context"
	"net/http"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/restmapper"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
)

// groupMapper reads only the API groups of the kinds that the manager asks for, each when it is first
// asked for, and again for a kind that its group lacked. The mapper of controller-runtime reads and keeps
// all groups of the cluster, and reads them again for each kind that it does not know.
type groupMapper struct {
	// RESTMapper is that of controller-runtime, for the questions that the manager does not ask.
	meta.RESTMapper
	discovery *discovery.DiscoveryClient
	// groups has a meta.RESTMapper by the name of its group.
	groups sync.Map
}

// NewMapper is a manager.Options.MapperProvider.
func NewMapper(config *rest.Config, httpClient *http.Client) (meta.RESTMapper, error) {
	all, err := apiutil.NewDynamicRESTMapper(config, httpClient)
	if err != nil {
		return nil, err
	}
	single, err := discovery.NewDiscoveryClientForConfigAndClient(config, httpClient)
	return &groupMapper{RESTMapper: all, discovery: single}, err
}

// RESTMapping implements meta.RESTMapper.
func (m *groupMapper) RESTMapping(gk schema.GroupKind, versions ...string) (*meta.RESTMapping, error) {
	if known, found := m.groups.Load(gk.Group); found {
		mapping, err := known.(meta.RESTMapper).RESTMapping(gk, versions...) //nolint:forcetypeassert // there is nothing else in it
		if !meta.IsNoMatchError(err) {
			return mapping, err
		}
	}
	group, err := m.read(gk.Group)
	if err != nil {
		return nil, err
	}
	m.groups.Store(gk.Group, group)
	return group.RESTMapping(gk, versions...)
}

// discoveryTimeout bounds the requests for a group. A RESTMapping has no context.
const discoveryTimeout = 30 * time.Second

// read reads a group, which may not exist.
func (m *groupMapper) read(name string) (meta.RESTMapper, error) {
	ctx, cancel := context.WithTimeout(context.Background(), discoveryTimeout)
	defer cancel()
	group := metav1.APIGroup{Versions: []metav1.GroupVersionForDiscovery{{GroupVersion: "v1", Version: "v1"}}}
	if name != corev1.GroupName {
		group = metav1.APIGroup{}
		if err := m.discovery.RESTClient().Get().AbsPath("/apis", name).Do(ctx).Into(&group); client.IgnoreNotFound(err) != nil {
			return nil, err
		}
	}
	resources := map[string][]metav1.APIResource{}
	for _, version := range group.Versions {
		list, err := m.discovery.ServerResourcesForGroupVersionWithContext(ctx, version.GroupVersion)
		if client.IgnoreNotFound(err) != nil {
			return nil, err
		}
		if err == nil {
			resources[version.Version] = list.APIResources
		}
	}
	return restmapper.NewDiscoveryRESTMapper([]*restmapper.APIGroupResources{{Group: group, VersionedResources: resources}}), nil
}
