// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/conversion-operator/conversion-operator/internal/operator/pages"
	"github.com/conversion-operator/conversion-operator/internal/operator/plan/observed"
	"github.com/conversion-operator/conversion-operator/internal/operator/plan/step"
	"github.com/conversion-operator/conversion-operator/internal/operator/scheme"
	"github.com/conversion-operator/conversion-operator/internal/operator/verify/live"
	"github.com/conversion-operator/conversion-operator/internal/test/expect"
	"github.com/conversion-operator/conversion-operator/internal/test/huge"
)

// TestHugeObjects: no tenant can fill the memory of the manager with metadata. A search of dependents has
// a test of its own.
func TestHugeObjects(t *testing.T) {
	crd := definitionOf("crontabs")
	crd.Status.StoredVersions = []string{"v1"}
	for name, read := range map[string]func(t *testing.T, server *huge.Server) int{
		"samples": func(t *testing.T, server *huge.Server) int {
			cluster, err := live.Connect(server.Config)
			expect.NoError(t, err)
			chosen, err := chooseSample(t.Context(), cluster, step.TakeSamples{CRD: crd, Most: huge.Objects}, nil)
			expect.NoError(t, err)
			return len(chosen)
		},
		"writes": func(t *testing.T, server *huge.Server) int {
			found, err := (&reader{server.Config}).writesIn(t.Context(), step.CountWrites{CRD: crd})
			expect.NoError(t, err)
			return found.Objects + huge.Objects
		},
		"managedFields": func(t *testing.T, server *huge.Server) int {
			check := (&reader{server.Config}).cleanManagedFields(t.Context(), step.ClearManagedFields{CRD: crd, Version: "v1beta1", User: "cleaner"})
			expect.Equal(t, "reason", "", check.Reason+check.Message)
			return huge.Objects
		},
		"nodes": func(t *testing.T, server *huge.Server) int {
			pages.Bound(server.Config)
			mapper := meta.NewDefaultRESTMapper(nil)
			mapper.Add(corev1.SchemeGroupVersion.WithKind("Node"), meta.RESTScopeRoot)
			nodes, err := client.New(server.Config, client.Options{Scheme: scheme.New(), Mapper: mapper})
			expect.NoError(t, err)
			pod := &corev1.Pod{}
			pod.Name, pod.Namespace = "pod", "conversion-system"
			r := &ConversionPolicyReconciler{Live: nodes, Client: fake.NewClientBuilder().WithScheme(scheme.New()).WithObjects(pod).Build(), Settings: observed.Settings{Namespace: pod.Namespace}}
			found, err := r.lookForNodes(t.Context(), pod.Name, "o-000")
			expect.NoError(t, err)
			expect.Equal(t, "nodes", observed.OtherNodes{Exist: true}, found)
			return huge.Objects
		},
	} {
		t.Run(name, func(t *testing.T) {
			server := huge.NewServer(t, map[string]string{"/apis/apiextensions.k8s.io/v1/customresourcedefinitions/" + crd.Name: `{"apiVersion":"meta.k8s.io/v1","kind":"PartialObjectMetadata","metadata":{}}`})
			expect.Equal(t, "objects", huge.Objects, read(t, server))
			server.WantFlat(t)
		})
	}
}
