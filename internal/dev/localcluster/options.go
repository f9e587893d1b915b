// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package localcluster

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
)

const (
	// DefaultName is the default name of a cluster.
	DefaultName = "conversion-operator"
	// DefaultKubernetesVersion is pinned by modules/go.mod, and the newest version that the
	// operator is tested on.
	DefaultKubernetesVersion = "v1.37.2"
	// OldestKubernetesVersion is the oldest supported version. make test-oldest runs on it.
	OldestKubernetesVersion = "v1.32.2"
	// OldestInstallableMinor is the oldest minor version on which bundle and chart install the operator.
	// Versions before OldestKubernetesVersion are not supported: tests do not run on them.
	OldestInstallableMinor = "1.30"

	// CacheVariable names the environment variable with the directory of the cache.
	CacheVariable = "LOCALCLUSTER_CACHE"
	// VersionVariable names the environment variable with the version of Kubernetes: a released
	// one, a supported minor version such as 1.34, or oldest for OldestKubernetesVersion.
	VersionVariable = "KUBERNETES_VERSION"

	// maxProcessNodes have each a /24 of 127.0.0.0/8.
	maxProcessNodes = 200

	oldest = "oldest"
)

// SupportedVersions are the supported versions of Kubernetes, the oldest first: of each minor version
// the release that tests run on. Not every release can be built, because some of its modules may be
// missing. README, documentation and bundle name these versions; TestSupportedVersionsAgree compares
// them.
var SupportedVersions = []string{OldestKubernetesVersion, "v1.33.4", "v1.34.2", "v1.35.3", "v1.36.3", DefaultKubernetesVersion}

var (
	validName    = regexp.MustCompile(`^[a-z0-9]([-a-z0-9]{0,38}[a-z0-9])?$`)
	validVersion = regexp.MustCompile(`^v?(1\.[0-9]+\.[0-9]+(-[0-9a-z.]+)?)$`)
)

// Options describe a cluster. The zero value is a full node of the default version with the default
// name.
type Options struct {
	// Name distinguishes clusters of one user. Lower-case letters, digits and dashes, at most 40
	// characters. Default: DefaultName.
	Name string
	// ProcessNodes is the number of nodes that run pods as processes, of package node, beside a
	// control plane on the loopback interface. They need no root. Default: none, but a full node.
	ProcessNodes int
	// Images maps names of images to the programs that ProcessNodes run for them.
	Images map[string]string
	// KubernetesVersion is a released version such as v1.36.3, a supported minor version such as
	// 1.36, or oldest. Default: $KUBERNETES_VERSION, else DefaultKubernetesVersion.
	KubernetesVersion string
	// CacheDir has the binaries and clusters. Default: $LOCALCLUSTER_CACHE, else
	// conversion-operator/localcluster in the user's cache directory.
	CacheDir string
	// AuditPolicy is the file of a Kubernetes audit policy, with which the API server writes
	// audit.log. Default: no audit log.
	AuditPolicy string
	// Restart restarts a component that ends, a second later, as a service manager does. Default:
	// the cluster stops when a component ends.
	Restart bool
	// Progress receives one line per action. Default: no output.
	Progress io.Writer
}

// withDefaults sets defaults, and rejects invalid options.
func (o Options) withDefaults() (Options, error) {
	if o.Progress == nil {
		o.Progress = io.Discard
	}
	o.Name = cmp.Or(o.Name, DefaultName)
	if !validName.MatchString(o.Name) {
		return o, fmt.Errorf("cluster name %q is not valid: use at most 40 lower-case letters, digits and dashes", o.Name)
	}
	version := cmp.Or(o.KubernetesVersion, os.Getenv(VersionVariable), DefaultKubernetesVersion)
	match := validVersion.FindStringSubmatch(release(version))
	if match == nil {
		return o, fmt.Errorf("%s=%q is not a version of Kubernetes: use the form v1.37.2, 1.37 for a supported minor version, or oldest", VersionVariable, version)
	}
	o.KubernetesVersion = "v" + match[1]
	if o.ProcessNodes < 0 || o.ProcessNodes > maxProcessNodes {
		return o, fmt.Errorf("%d nodes of processes are not possible: use 0 to %d", o.ProcessNodes, maxProcessNodes)
	}
	dir, err := cacheDir(o.CacheDir)
	o.CacheDir = dir
	return o, err
}

// release returns the release for oldest and for a supported minor version, and any other text
// unchanged.
func release(version string) string {
	for i, supported := range SupportedVersions {
		if version == oldest && i == 0 || "v"+strings.TrimPrefix(version, "v") == minorOf(supported) {
			return supported
		}
	}
	return version
}

// minorOf returns the minor version of a release: v1.37 of v1.37.0.
func minorOf(version string) string { return version[:strings.LastIndex(version, ".")] }

func cacheDir(given string) (string, error) {
	if dir := cmp.Or(given, os.Getenv(CacheVariable)); dir != "" {
		return filepath.Abs(dir)
	}
	dir, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("no place for the cache: set %s or HOME: %w", CacheVariable, err)
	}
	return filepath.Join(dir, "conversion-operator", "localcluster"), nil
}

func (o Options) versionDir() string { return filepath.Join(o.CacheDir, o.KubernetesVersion) }

func (o Options) binDir() string { return filepath.Join(o.versionDir(), "bin") }

// clusterDir has the data and logs of the cluster.
func (o Options) clusterDir() string { return filepath.Join(o.CacheDir, "clusters", o.Name) }

// lockPath is the file that is locked while the cluster is started or stopped.
func (o Options) lockPath() string { return o.clusterDir() + ".lock" }

// host has the properties of the machine that a start depends on.
type host struct {
	os       string
	uid      int
	cgroups  []string // what is at cgroupRoot
	lookPath func(string) (string, error)
}

func thisHost() host {
	cgroups, _ := filepath.Glob(cgroupRoot + "/*") // the pattern is valid
	return host{os: runtime.GOOS, uid: os.Geteuid(), cgroups: cgroups, lookPath: exec.LookPath}
}

// check returns an error, with a remedy, for a host on which the cluster cannot start.
func (h host) check(o Options) error {
	if h.os != "linux" {
		return fmt.Errorf("the local cluster needs Linux and this is %s: "+
			"use another cluster, such as kind, or a Linux machine", h.os)
	}
	if o.ProcessNodes > 0 {
		return nil
	}
	if h.uid != 0 {
		return errors.New("a full node needs root: run this as root, " +
			"or start nodes that run pods as processes (--process-nodes)")
	}
	if missing := h.missing("runc", "ip"); len(missing) > 0 {
		return fmt.Errorf("not on PATH: %s: install runc and iproute2: "+
			"apt-get install -y runc iproute2, or run make deps", strings.Join(missing, ", "))
	}
	if len(h.cgroups) == 0 {
		return errors.New("control groups are not mounted: a full node needs them at /sys/fs/cgroup " +
			"(in a container: run it privileged)")
	}
	if strings.HasPrefix(o.CacheDir+"/", "/run/") {
		return fmt.Errorf("the cache %s cannot be below /run, which a full node replaces by its own: set %s",
			o.CacheDir, CacheVariable)
	}
	return nil
}

func (h host) missing(programs ...string) []string {
	var missing []string
	for _, program := range programs {
		if _, err := h.lookPath(program); err != nil {
			missing = append(missing, program)
		}
	}
	return missing
}
