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
	if entry, err := client.Get(t.Context(), "/in/1"); err != nil || string(entry.Value) != "ä\x00" {
		t.Errorf("/in/1 is %q, %v", entry.Value, err)
	}
	_, err = client.Get(t.Context(), "/in/")
	expect.Contains(t, "the error", fmt.Sprint(err), "nothing at /in/")

	expect.NoError(t, client.Delete(t.Context(), "/in/1"))
	_, err = client.Get(t.Context(), "/in/1")
	expect.Contains(t, "the error", fmt.Sprint(err), "nothing at /in/1")
	revision++

	expect.NoError(t, client.SetFull(t.Context(), true))
	expect.Contains(t, "the error", fmt.Sprint(client.Put(t.Context(), "/in/5", "")), "database space exceeded")
	expect.NoError(t, client.SetFull(t.Context(), false))
	expect.NoError(t, client.Put(t.Context(), "/in/5", ""))
	expect.NoError(t, client.Compact(t.Context(), revision))
	expect.Contains(t, "the error", fmt.Sprint(client.Compact(t.Context(), revision)), "has been compacted")
}
