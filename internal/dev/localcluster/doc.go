// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package localcluster runs a real Kubernetes cluster for development: the demo and the end-to-end
// tests use it. It needs no container engine, no registry, and no downloads but Go modules.
//
// # Binaries
//
// etcd and the Kubernetes components are the official binaries, with their SHA-256 sums verified, where
// their servers can be reached; $LOCALCLUSTER_MIRROR names another server with the same paths, or none.
// Otherwise they are built, and always containerd and three CNI plugins, from the module in modules/, so
// that the dependencies of Kubernetes do not affect those of the operator. The module has the operator's
// versions of libraries that both use, and the Makefile the same build flags, so that the go command
// compiles each library once. [Build] writes the binaries to <cache>/<Kubernetes version>/bin, where <cache> is $LOCALCLUSTER_CACHE or conversion-operator/localcluster in the user's cache
// directory. A stamp beside each binary has the hash of its module set, so that a changed go.mod
// rebuilds only the affected binaries, and its size, so that a damaged one is rebuilt. A file lock serialises concurrent builds.
//
// The variable KUBERNETES_VERSION selects another version: a release, a minor version of
// [SupportedVersions], or oldest for the first of these. The module set is then derived from the
// go.mod of that version instead of read from modules/.
//
// The module set is read from the working tree, so the command has to run in a checkout. It is
// not embedded: a Go module cannot embed another one, and "go get -tool" can update a plain module.
//
// # A full node
//
// [Up] starts one supervisor, as root on Linux, in new network, mount and PID namespaces, as
// process 1 of its PID namespace. When process 1 ends, even by kill -9, the kernel kills every
// other process of the namespace, including pods, and then releases mounts and network interfaces.
// Two clusters share no address, no port and no file.
//
//	10.240.0.1     the node and its API server, on a bridge of its own
//	10.96.0.1      the Service kubernetes.default, on the same bridge
//	10.244.0.0/24  the pods
//
// There is no kube-proxy and no cluster DNS. Pods reach the API server at the address of
// kubernetes.default, and the API server resolves the endpoints of webhook Services itself
// (--enable-aggregator-routing).
//
// Nothing outside can connect to such a cluster. Clients run inside, through [Cluster.Command] or
// the subcommand exec.
//
// The kubelet and containerd write to fixed paths of the host, such as /var/lib/kubelet, and set
// kernel parameters of the host, such as kernel.panic. Private mounts keep both inside. After kill
// -9, files in the directory of the cluster and empty control groups of its containers remain;
// stopping the cluster, or its next start, removes both. The mount points /var/lib/cni and
// /var/lib/kubelet always remain, and so does the control group k8s.io, which other installations
// of containerd share.
//
// # More nodes
//
// A program that runs inside the cluster can add nodes with [Join]. Each has its own containerd and
// kubelet, and network, mount and PID namespaces below those of the cluster, so that [Worker.Kill]
// ends a node with all its pods, as a power failure does. Its address is 10.240.0.<number>, and its
// pods are in 10.244.<number-1>.0/24.
//
// # Nodes of processes
//
// With [Options.ProcessNodes], and without root, nodes of package node run pods as processes beside a
// control plane on free ports of the loopback interface, without namespaces. The kernel kills each
// process when the supervisor dies. A component of the supervisor runs these nodes, and the pods die with
// it. Tests that use envtest take the same binaries.
package localcluster
