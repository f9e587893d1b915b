// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package localcluster

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// containerGroup is the control group of every container in containerd's namespace for Kubernetes.
// Other installations of containerd on the machine also use it, so only groups of single containers
// are removed.
const containerGroup = "k8s.io"

// containerID matches containerd's names of containers and sandboxes.
var containerID = regexp.MustCompile(`^[0-9a-f]{64}$`)

// removeCgroups removes the control groups of the cluster's containers, on all nodes, from every
// hierarchy, as they outlive the processes. The directory of each containerd lists its containers.
func removeCgroups(clusterDir string) error {
	workers, err := filepath.Glob(filepath.Join(clusterDir, workersFolder, "*"))
	if err != nil {
		return err
	}
	var ids []string
	for _, dir := range append(workers, clusterDir) {
		found, err := containerIDs(dir)
		if err != nil {
			return err
		}
		ids = append(ids, found...)
	}
	if len(ids) == 0 {
		return nil
	}
	mountinfo, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return err
	}
	return removeGroups(cgroupMounts(string(mountinfo)), ids)
}

// containerIDs lists the containers and sandboxes of a node that were not removed: containerd keeps a
// directory for each.
func containerIDs(clusterDir string) ([]string, error) {
	var ids []string
	for _, kind := range []string{"containers", "sandboxes"} {
		entries, err := os.ReadDir(filepath.Join(clusterDir, "containerd", "io.containerd.grpc.v1.cri", kind))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
		for _, entry := range entries {
			if containerID.MatchString(entry.Name()) {
				ids = append(ids, entry.Name())
			}
		}
	}
	return ids, nil
}

// cgroupMounts returns the mount points of control groups: one with cgroup v2, one per controller
// with v1. In the format of proc_pid_mountinfo(5), the fifth field is the mount point, and the type
// follows a lone dash.
func cgroupMounts(mountinfo string) []string {
	var mounts []string
	for line := range strings.Lines(mountinfo) {
		fields := strings.Fields(line)
		dash := slices.Index(fields, "-")
		if dash < 5 || dash+1 >= len(fields) {
			continue
		}
		if kind := fields[dash+1]; kind == "cgroup" || kind == "cgroup2" {
			mounts = append(mounts, fields[4])
		}
	}
	return mounts
}

// removeGroups removes the groups of the containers with their descendants. The kernel refuses to
// remove a group that has processes.
func removeGroups(mounts, ids []string) error {
	for _, mount := range mounts {
		for _, id := range ids {
			groups, err := groupsBelow(filepath.Join(mount, containerGroup, id))
			for _, group := range groups {
				if removeErr := os.Remove(group); !errors.Is(removeErr, fs.ErrNotExist) {
					err = errors.Join(err, removeErr)
				}
			}
			if err != nil {
				return fmt.Errorf("cannot remove the control groups of a container: %w", err)
			}
		}
	}
	return nil
}

// groupsBelow lists a group and its descendants, children first. The kernel removes the files in a
// group with its directory.
func groupsBelow(root string) ([]string, error) {
	var groups []string
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err == nil && entry.IsDir() {
			groups = append(groups, path)
		}
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		return err
	})
	slices.Reverse(groups)
	return groups, err
}
