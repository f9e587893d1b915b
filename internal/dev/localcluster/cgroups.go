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
)

// cgroupRoot has the hierarchies of control groups: itself with cgroup v2, and a folder per controller
// with v1.
const cgroupRoot = "/sys/fs/cgroup"

// containerGroup is the control group of every container in containerd's namespace for Kubernetes.
// Other installations of containerd on the machine also use it, so only groups of single containers
// are removed.
const containerGroup = "k8s.io"

// containerID matches containerd's names of containers and sandboxes.
var containerID = regexp.MustCompile(`^[0-9a-f]{64}$`)

// removeCgroups removes the control groups of the cluster's containers with their descendants, as they
// outlive the processes. The kernel refuses to remove a group that has processes.
func removeCgroups(clusterDir, root string) error {
	ids, err := containerIDs(clusterDir)
	if err != nil {
		return err
	}
	groups, err := groupsOf(root, ids)
	for _, group := range groups {
		if removeErr := os.Remove(group); !errors.Is(removeErr, fs.ErrNotExist) {
			err = errors.Join(err, removeErr)
		}
	}
	if err != nil {
		return fmt.Errorf("cannot remove the control groups of a container: %w", err)
	}
	return nil
}

// containerIDs lists the containers and sandboxes that were not removed, on all nodes: each containerd
// keeps a directory for each.
func containerIDs(clusterDir string) (ids []string, err error) {
	for _, node := range []string{"", workersFolder + "/*/"} {
		for _, kind := range []string{"containers", "sandboxes"} {
			found, globErr := fs.Glob(os.DirFS(clusterDir), node+"containerd/io.containerd.grpc.v1.cri/"+kind+"/*")
			err = errors.Join(err, globErr)
			for _, path := range found {
				if id := filepath.Base(path); containerID.MatchString(id) {
					ids = append(ids, id)
				}
			}
		}
	}
	return ids, err
}

// groupsOf lists the groups of containers and their descendants, children first. The kernel removes the
// files in a group with its directory.
func groupsOf(root string, ids []string) (groups []string, err error) {
	for _, id := range ids {
		for _, hierarchy := range []string{"", "*"} {
			found, globErr := filepath.Glob(filepath.Join(root, hierarchy, containerGroup, id))
			err = errors.Join(err, globErr)
			for _, group := range found {
				err = errors.Join(err, filepath.WalkDir(group, func(path string, entry fs.DirEntry, err error) error {
					if err == nil && entry.IsDir() {
						groups = append(groups, path)
					}
					if errors.Is(err, fs.ErrNotExist) {
						return nil
					}
					return err
				}))
			}
		}
	}
	slices.Reverse(groups)
	return groups, err
}
