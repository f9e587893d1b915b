// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package localcluster

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
)

const (
	// DefaultName is the name of a cluster that was given none.
	DefaultName = "conversion-operator"
	// DefaultKubernetesVersion is the version that modules/kubernetes pins, and the
	// newest that the operator is tested on.
	DefaultKubernetesVersion = "v1.37.0"
	// OldestKubernetesVersion is of the oldest minor version that the operator
	// supports. make test-oldest runs on it.
	OldestKubernetesVersion = "v1.36.3"

	// CacheVariable names the environment variable that moves the cache.
	CacheVariable = "LOCALCLUSTER_CACHE"
	// VersionVariable names the environment variable that selects another
	// version of Kubernetes: a released one, or oldest for OldestKubernetesVersion.
	VersionVariable = "KUBERNETES_VERSION"

	// oldest stands for OldestKubernetesVersion wherever a version is named.
	oldest = "oldest"
)

var (
	validName    = regexp.MustCompile(`^[a-z0-9]([-a-z0-9]{0,38}[a-z0-9])?$`)
	validVersion = regexp.MustCompile(`^v?(1\.[0-9]+\.[0-9]+(-[0-9a-z.]+)?)$`)
)

// Options describe a cluster. The zero value is a full node of the default
// version under the default name.
type Options struct {
	// Name tells clusters of one user apart. Lower-case letters, digits and
	// dashes, at most 40 characters. Default: DefaultName.
	Name string
	// ControlPlaneOnly leaves out the node: no root is needed and no pod runs.
	ControlPlaneOnly bool
	// KubernetesVersion is a released version such as v1.36.3, or oldest. Default:
	// $KUBERNETES_VERSION, else DefaultKubernetesVersion.
	KubernetesVersion string
	// CacheDir holds binaries and clusters. Default: $LOCALCLUSTER_CACHE, else
	// conversion-operator/localcluster in the user's cache directory.
	CacheDir string
	// AuditPolicy is the file of a Kubernetes audit policy, by which the API server
	// keeps the log that Cluster.AuditLog names. Default: it keeps none.
	AuditPolicy string
	// Restart starts a component again that ends, a second later, as the manager of
	// services of a real machine does. Default: the cluster ends with any of its
	// components.
	Restart bool
	// Progress receives a line for each thing done. Default: nothing is shown.
	Progress io.Writer
}

// withDefaults fills in what was left out and refuses what cannot work.
func (o Options) withDefaults() (Options, error) {
	if o.Progress == nil {
		o.Progress = io.Discard
	}
	o.Name = firstOf(o.Name, DefaultName)
	if !validName.MatchString(o.Name) {
		return o, fmt.Errorf("cluster name %q is not valid: use at most 40 lower-case letters, digits and dashes", o.Name)
	}
	version := firstOf(o.KubernetesVersion, os.Getenv(VersionVariable), DefaultKubernetesVersion)
	if version == oldest {
		version = OldestKubernetesVersion
	}
	match := validVersion.FindStringSubmatch(version)
	if match == nil {
		return o, fmt.Errorf("%s=%q is not a version of Kubernetes: use the form v1.37.0, or oldest", VersionVariable, version)
	}
	o.KubernetesVersion = "v" + match[1]
	dir, err := cacheDir(o.CacheDir)
	o.CacheDir = dir
	return o, err
}

func cacheDir(given string) (string, error) {
	if dir := firstOf(given, os.Getenv(CacheVariable)); dir != "" {
		return filepath.Abs(dir)
	}
	dir, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("no place for the cache: set %s or HOME: %w", CacheVariable, err)
	}
	return filepath.Join(dir, "conversion-operator", "localcluster"), nil
}

// versionDir holds everything built for the selected version.
func (o Options) versionDir() string { return filepath.Join(o.CacheDir, o.KubernetesVersion) }

// binDir holds the binaries of the selected version.
func (o Options) binDir() string { return filepath.Join(o.versionDir(), "bin") }

// clusterDir holds the data and logs of the named cluster.
func (o Options) clusterDir() string { return filepath.Join(o.CacheDir, "clusters", o.Name) }

// lockPath is held while the named cluster is started or stopped.
func (o Options) lockPath() string { return o.clusterDir() + ".lock" }

func firstOf(values ...string) string {
	for _, v := range values {
		if v != "" {
			return v
		}
	}
	return ""
}
