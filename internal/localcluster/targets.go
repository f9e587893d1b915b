// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package localcluster

import (
	"fmt"
	"path"
	"strings"
)

// The module sets. All binaries come from modules/, unless another version of Kubernetes is wanted:
// then its binaries come from a derived set. The pause image is built from this package instead.
const (
	kubernetesSet = "kubernetes"
	pinnedSet     = "pinned"
	pauseSet      = "pause"
)

// target is one file of the cache.
type target struct {
	name string
	set  string // the module set it belongs to
	pkg  string // the Go package to build
	node bool   // only a full node needs it
}

const (
	containerd = "github.com/containerd/containerd/v2/cmd/"
	cniPlugins = "github.com/containernetworking/plugins/plugins/"
)

var targets = []target{
	{name: "etcd", set: pinnedSet, pkg: "go.etcd.io/etcd/server/v3"},
	{name: "kube-apiserver", set: kubernetesSet, pkg: "k8s.io/kubernetes/cmd/kube-apiserver"},
	{name: "kube-controller-manager", set: kubernetesSet, pkg: "k8s.io/kubernetes/cmd/kube-controller-manager"},
	{name: "kubectl", set: kubernetesSet, pkg: "k8s.io/kubernetes/cmd/kubectl"},
	{name: "kube-scheduler", set: kubernetesSet, pkg: "k8s.io/kubernetes/cmd/kube-scheduler"},
	{name: "kubelet", set: kubernetesSet, pkg: "k8s.io/kubernetes/cmd/kubelet", node: true},
	{name: "containerd", set: pinnedSet, pkg: containerd + "containerd", node: true},
	{name: "containerd-shim-runc-v2", set: pinnedSet, pkg: containerd + "containerd-shim-runc-v2", node: true},
	{name: "ctr", set: pinnedSet, pkg: containerd + "ctr", node: true},
	{name: "bridge", set: pinnedSet, pkg: cniPlugins + "main/bridge", node: true},
	{name: "loopback", set: pinnedSet, pkg: cniPlugins + "main/loopback", node: true},
	{name: "host-local", set: pinnedSet, pkg: cniPlugins + "ipam/host-local", node: true},
	{name: "pause.tar", set: pauseSet, node: true},
}

// targetsFor returns the targets of a kind of cluster, in build order.
func targetsFor(controlPlaneOnly bool) []target {
	var needed []target
	for _, t := range targets {
		if !t.node || !controlPlaneOnly {
			needed = append(needed, t)
		}
	}
	return needed
}

// built returns the file name that the go command gives to the program: the last element of its
// path that is no major version.
func (t target) built() string { return path.Base(strings.TrimSuffix(t.pkg, "/v3")) }

// linkerFlags strips binaries, and sets the version that those of Kubernetes report, which a module
// build does not know.
func linkerFlags(version string) string {
	const pkg = "k8s.io/component-base/version."
	minor, _, _ := strings.Cut(strings.TrimPrefix(version, "v1."), ".")
	return fmt.Sprintf("-s -w -X %sgitVersion=%s -X %sgitMajor=1 -X %sgitMinor=%s", pkg, version, pkg, pkg, minor)
}
