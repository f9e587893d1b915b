// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package live

import (
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/conversion-operator/conversion-operator/internal/engine/manifest"
	"github.com/conversion-operator/conversion-operator/internal/test/expect"
	"github.com/conversion-operator/conversion-operator/internal/test/huge"
)

// TestHugeObjects: what reads all objects needs memory for few of them.
func TestHugeObjects(t *testing.T) {
	resource := schema.GroupVersionResource{Group: "example.com", Version: "v1", Resource: "crontabs"}
	for name, read := range map[string]func(cluster *Cluster, seen func()) error{
		"metadata": func(cluster *Cluster, seen func()) error {
			return cluster.Heads(t.Context(), resource, func(Head) bool { seen(); return true })
		},
		"objects": func(cluster *Cluster, seen func()) error {
			return cluster.Objects(t.Context(), Query{Resource: resource, PageSize: 500}, func(manifest.Object) { seen() }, func(int64, int64) {})
		},
	} {
		t.Run(name, func(t *testing.T) {
			server := huge.NewServer(t, nil)
			cluster, err := Connect(server.Config)
			expect.NoError(t, err)
			objects := 0
			expect.NoError(t, read(cluster, func() { objects++ }))
			expect.Equal(t, "objects", huge.Objects, objects)
			server.WantFlat(t)
		})
	}
}
