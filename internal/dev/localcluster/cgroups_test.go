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

func TestCgroupMounts(t *testing.T) {
	tests := map[string]struct {
		mountinfo string
		want      []string
	}{
		"v2": {"30 24 0:26 / /sys/fs/cgroup rw,nosuid shared:4 - cgroup2 cgroup2 rw\n", []string{"/sys/fs/cgroup"}},
		"v1": {"24 1 0:20 / /sys/fs/cgroup rw - tmpfs tmpfs rw\n" +
			"25 24 0:21 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu\n" +
			"26 24 0:22 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n",
			[]string{"/sys/fs/cgroup/cpu", "/sys/fs/cgroup/memory"}},
		"none": {"24 1 0:20 / / rw - ext4 /dev/vda rw\n", nil},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			expect.Equal(t, "mounts", test.want, cgroupMounts(test.mountinfo))
		})
	}
}

// Control groups of different owners are siblings, so the test checks what remains.
func TestOnlyOwnControlGroupsAreRemoved(t *testing.T) {
	ours, sandbox, theirs := strings.Repeat("a", 64), strings.Repeat("b", 64), strings.Repeat("c", 64)
	cluster, cpu, memory := t.TempDir(), t.TempDir(), t.TempDir()
	records := filepath.Join(cluster, "containerd", "io.containerd.grpc.v1.cri")
	makeDirs(t,
		filepath.Join(records, "containers", ours),
		filepath.Join(records, "containers", "not-a-container"),
		filepath.Join(records, "sandboxes", sandbox),
		filepath.Join(cpu, "k8s.io", ours, "made", "inside"),
		filepath.Join(cpu, "k8s.io", theirs),
		filepath.Join(memory, "k8s.io", sandbox),
		filepath.Join(memory, "k8s.io", "not-a-container"),
		filepath.Join(memory, "somewhere", ours))

	ids, err := containerIDs(cluster)
	expect.NoError(t, err)
	expect.Equal(t, "containers", []string{ours, sandbox}, ids)
	expect.NoError(t, removeGroups([]string{cpu, memory}, ids))
	for dir, want := range map[string][]string{
		filepath.Join(cpu, "k8s.io"):       {theirs},
		filepath.Join(memory, "k8s.io"):    {"not-a-container"},
		filepath.Join(memory, "somewhere"): {ours},
	} {
		expect.Equal(t, dir, want, names(t, dir))
	}
}

func TestRemoveCgroupsOfNewCluster(t *testing.T) {
	expect.NoError(t, removeCgroups(t.TempDir()))
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
