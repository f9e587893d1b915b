// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package localcluster is a real Kubernetes for development: the demo, the
// end-to-end tests and the benchmarks run on it. It needs no container engine,
// no registry and no download besides Go modules.
//
// # Binaries
//
// etcd, the Kubernetes components, containerd and three CNI plugins are built
// from the module sets in modules/, each a Go module of its own so that
// Kubernetes' hundred dependencies never meet the operator's. [Build] puts them
// into a cache of the user, <cache>/<Kubernetes version>/bin, where the
// directory <cache> is $LOCALCLUSTER_CACHE or conversion-operator/localcluster
// in the user's cache directory. A stamp beside each binary holds a hash of its
// module set, so a changed go.mod rebuilds what it must and nothing else. A
// file lock makes two builds at once safe: the second waits for the first.
//
// The variable KUBERNETES_VERSION selects another version; oldest is the oldest
// that the operator supports. Its module set is then derived from that version's
// own go.mod instead of read from modules/kubernetes.
//
// The module sets are read from the working tree, so the command has to run
// somewhere inside a checkout. They are not embedded: a Go module cannot embed
// another one, and as plain modules "go get -tool" can update them.
//
// # A full node
//
// [Up] starts one supervisor, as root on Linux, in new network, mount and PID
// namespaces. The supervisor is process 1 of its PID namespace, and that is
// what makes a cluster easy to get rid of. When process 1 ends, for whatever
// reason, kill -9 included, the kernel kills every other process of the
// namespace, pods too, and with the last process go the mounts and the network
// interfaces. Two clusters share no address, no port and no file.
//
//	10.240.0.1     the node and its API server, on a bridge of its own
//	10.96.0.1      the Service kubernetes.default, on the same bridge
//	10.244.0.0/24  the pods
//
// There is no kube-proxy and no cluster DNS. Pods reach the API server at
// kubernetes.default's address, and the API server reaches webhook Services by
// resolving their endpoints itself (--enable-aggregator-routing).
//
// Nothing outside can connect to such a cluster; whatever talks to it runs
// inside, through [Cluster.Command] or the command's verb exec.
//
// The kubelet and containerd write to fixed places of the host, such as
// /var/lib/kubelet, and tune the kernel of the host, such as kernel.panic.
// Private mounts keep both inside. What a kill -9 leaves is files in the
// cluster's own directory and the empty control groups of its containers;
// stopping the cluster, or the next start under its name, removes both. What
// always stays are the mount points /var/lib/cni and /var/lib/kubelet, if the
// host did not have them, and the group k8s.io, which other installations of
// containerd share.
//
// # Control plane only
//
// Without root, etcd, kube-apiserver and kube-controller-manager run on free
// ports of the loopback interface. There are no namespaces; each process is
// killed by the kernel when the supervisor dies. Tests that use envtest need
// only the binaries.
package localcluster
