// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package localcluster

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/conversion-operator/conversion-operator/internal/test/expect"
)

// Control groups of different owners are siblings, so the test checks what remains.
func TestOnlyOwnControlGroupsAreRemoved(t *testing.T) {
	ours, sandbox, theirs := strings.Repeat("a", 64), strings.Repeat("b", 64), strings.Repeat("c", 64)
	cluster, root := t.TempDir(), t.TempDir()
	expect.NoError(t, removeCgroups(cluster, root)) // a new cluster has none
	const records = "containerd/io.containerd.grpc.v1.cri"
	makeDirs(t,
		filepath.Join(cluster, records, "containers", ours),
		filepath.Join(cluster, records, "containers", "not-a-container"),
		filepath.Join(cluster, "nodes", "node2", records, "sandboxes", sandbox),
		// One hierarchy, as with cgroup v2, and several, as with v1.
		filepath.Join(root, "k8s.io", ours, "made", "inside"),
		filepath.Join(root, "k8s.io", theirs),
		filepath.Join(root, "memory", "k8s.io", sandbox),
		filepath.Join(root, "memory", "k8s.io", "not-a-container"),
		filepath.Join(root, "memory", "somewhere", ours))

	expect.NoError(t, removeCgroups(cluster, root))
	for dir, want := range map[string][]string{
		filepath.Join(root, "k8s.io"):              {theirs},
		filepath.Join(root, "memory", "k8s.io"):    {"not-a-container"},
		filepath.Join(root, "memory", "somewhere"): {ours},
	} {
		expect.Equal(t, dir, want, names(t, dir))
	}
}

func makeDirs(t *testing.T, dirs ...string) {
	t.Helper()
	for _, dir := range dirs {
		expect.NoError(t, os.MkdirAll(dir, 0o755))
	}
}

func names(t *testing.T, dir string) []string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	expect.NoError(t, err)
	var names []string
	for _, entry := range entries {
		names = append(names, entry.Name())
	}
	return names
}
