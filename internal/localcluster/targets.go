// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package localcluster

import (
	"fmt"
	"strings"
)

// The module sets, by directory in modules/. The pause image is built from this package instead.
const (
	kubernetesSet = "kubernetes"
	etcdSet       = "etcd"
	nodeSet       = "node"
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
	{name: "etcd", set: etcdSet, pkg: "go.etcd.io/etcd/server/v3"},
	{name: "kube-apiserver", set: kubernetesSet, pkg: "k8s.io/kubernetes/cmd/kube-apiserver"},
	{name: "kube-controller-manager", set: kubernetesSet, pkg: "k8s.io/kubernetes/cmd/kube-controller-manager"},
	{name: "kubectl", set: kubernetesSet, pkg: "k8s.io/kubernetes/cmd/kubectl"},
	{name: "kube-scheduler", set: kubernetesSet, pkg: "k8s.io/kubernetes/cmd/kube-scheduler", node: true},
	{name: "kubelet", set: kubernetesSet, pkg: "k8s.io/kubernetes/cmd/kubelet", node: true},
	{name: "containerd", set: nodeSet, pkg: containerd + "containerd", node: true},
	{name: "containerd-shim-runc-v2", set: nodeSet, pkg: containerd + "containerd-shim-runc-v2", node: true},
	{name: "ctr", set: nodeSet, pkg: containerd + "ctr", node: true},
	{name: "bridge", set: nodeSet, pkg: cniPlugins + "main/bridge", node: true},
	{name: "loopback", set: nodeSet, pkg: cniPlugins + "main/loopback", node: true},
	{name: "host-local", set: nodeSet, pkg: cniPlugins + "ipam/host-local", node: true},
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

// linkerFlags strips the binary and, for Kubernetes, sets the version that it reports, which a
// module build does not know.
func (t target) linkerFlags(version string) string {
	flags := "-s -w"
	if t.set != kubernetesSet {
		return flags
	}
	const pkg = "k8s.io/component-base/version."
	minor, _, _ := strings.Cut(strings.TrimPrefix(version, "v1."), ".")
	return fmt.Sprintf("%s -X %sgitVersion=%s -X %sgitMajor=1 -X %sgitMinor=%s", flags, pkg, version, pkg, pkg, minor)
}
