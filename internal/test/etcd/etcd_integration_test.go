//go:build integration

// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package etcd

import (
	"fmt"
	"strings"
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/envtest"

	"github.com/conversion-operator/conversion-operator/internal/test/expect"
)

// TestClient reads entries in pages, and sees why etcd refuses something. Tests with an API server need the rest.
func TestClient(t *testing.T) {
	server := &envtest.Etcd{}
	expect.NoError(t, server.Start())
	t.Cleanup(func() { expect.NoError(t, server.Stop()) })
	client := Client(server.URL.String())
	defer func(was int64) { pageSize = was }(pageSize)
	pageSize = 2

	var want, got []string
	for i := range 5 {
		key, value := fmt.Sprintf("/in/%d", i), strings.Repeat("ä\x00", i)
		expect.NoError(t, client.Put(t.Context(), key, value))
		want = append(want, fmt.Sprintf("%s=%q of %d", key, value, i+2))
	}
	expect.NoError(t, client.Put(t.Context(), "/out", ""))
	entries, revision, err := client.List(t.Context(), "/in/")
	expect.NoError(t, err)
	for _, entry := range entries {
		got = append(got, fmt.Sprintf("%s=%q of %d", entry.Key, entry.Value, entry.ModRevision))
	}
	expect.Equal(t, "revision", 7, revision)
	expect.Equal(t, "entries", want, got)

	_, err = client.Get(t.Context(), "/in/")
	expect.Contains(t, "the error", fmt.Sprint(err), "nothing at /in/")
	expect.NoError(t, client.Compact(t.Context(), revision))
	expect.Contains(t, "the error", fmt.Sprint(client.Compact(t.Context(), revision)), "has been compacted")
}
