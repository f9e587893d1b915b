// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package localcluster

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"

	"github.com/conversion-operator/conversion-operator/internal/test/node"
)

const (
	nodeAddress      = "10.240.0.1" // of the first node, which has the API server
	serviceAddress   = "10.96.0.1"  // of the Service kubernetes.default: the first of serviceRange
	serviceRange     = "10.96.0.0/16"
	loopbackAddress  = "127.0.0.1"
	containerdSocket = "/run/containerd.sock"

	// nodeHome is the path of a full node's directory inside the node. It is short to keep the
	// kubelet's sockets below the kernel's limit of 108 bytes, wherever the cache is.
	nodeHome = "/run/localcluster"
)

// spec has everything that the processes of one cluster agree on. Later commands read it from the
// cluster's directory.
type spec struct {
	Name              string
	Dir               string // the cluster's directory
	Home              string // the same directory as the cluster's processes see it
	Bin               string // the directory of the binaries
	Runc              string // the path of runc; empty without a node
	KubernetesVersion string
	ProcessNodes      int               // that run pods as processes; 0 for a full node
	Images            map[string]string // the programs for images, on ProcessNodes
	Audited           bool              // the API server keeps an audit log
	Restart           bool              // components that end are started again
	Node              int               // the number of the node, from 1; only the first has a control plane

	Port         int // of the API server
	EtcdPort     int
	EtcdPeerPort int
}

// newSpec returns the spec of a cluster. The ports are those of a full node, which are fixed because it has
// its own network.
func newSpec(o Options, runc string) spec {
	s := spec{
		Name:              o.Name,
		Dir:               o.clusterDir(),
		Home:              nodeHome,
		Bin:               o.binDir(),
		Runc:              runc,
		KubernetesVersion: o.KubernetesVersion,
		ProcessNodes:      o.ProcessNodes,
		Images:            o.Images,
		Audited:           o.AuditPolicy != "",
		Restart:           o.Restart,
		Node:              1,
		Port:              443,
		EtcdPort:          2379,
		EtcdPeerPort:      2380,
	}
	if s.onLoopback() {
		s.Home = s.Dir
	}
	return s
}

// onLoopback reports whether everything runs on the host's network, without namespaces.
func (s spec) onLoopback() bool { return s.ProcessNodes > 0 }

func (s spec) address() string {
	if s.onLoopback() {
		return loopbackAddress
	}
	return nodeAddress
}

func (s spec) nodeName() string { return fmt.Sprintf("node%d", s.Node) }

// ContainerdSocket and PauseImage are what the templates of the node's configuration files name.
func (spec) ContainerdSocket() string { return containerdSocket }
func (spec) PauseImage() string       { return PauseImage }

// NodeAddress is the address of the node on the bridge of the first one.
func (s spec) NodeAddress() string { return fmt.Sprintf("10.240.0.%d", s.Node) }

// PodRange is the range of addresses of the node's pods.
func (s spec) PodRange() string { return fmt.Sprintf("10.244.%d.0/24", s.Node-1) }

func (s spec) server() string { return fmt.Sprintf("https://%s:%d", s.address(), s.Port) }
func (s spec) etcdURL() string {
	return fmt.Sprintf("http://%s:%d", loopbackAddress, s.EtcdPort)
}
func (s spec) etcdPeerURL() string {
	return fmt.Sprintf("http://%s:%d", loopbackAddress, s.EtcdPeerPort)
}

// home returns a path in the cluster's directory, as the cluster's processes see it.
func (s spec) home(elements ...string) string {
	return filepath.Join(append([]string{s.Home}, elements...)...)
}

func specFile(dir string) string       { return filepath.Join(dir, "cluster.json") }
func kubeconfigFile(dir string) string { return filepath.Join(dir, "kubeconfig") }
func logFile(dir, component string) string {
	return filepath.Join(dir, "log", component+".log")
}

// auditPolicy returns the path of the copied audit policy.
func auditPolicy(dir string) string { return filepath.Join(dir, "audit-policy.yaml") }

func (s spec) write() error {
	data, err := json.MarshalIndent(s, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(specFile(s.Dir), data, 0o600)
}

func readSpec(dir string) (spec, error) {
	var s spec
	data, err := os.ReadFile(specFile(dir))
	if err != nil {
		return s, err
	}
	if err := json.Unmarshal(data, &s); err != nil {
		return s, fmt.Errorf("%s is damaged: %w", specFile(dir), err)
	}
	return s, nil
}

// auditLog is the name of the log of requests to the API server, one event per line.
const auditLog = "audit"

// component is a long-running process of the cluster, and the name of its log.
type component struct {
	name string
	args []string
}

func (s spec) etcd() component {
	return component{"etcd", []string{
		"--data-dir=" + s.home("etcd"),
		// The data never outlives the machine's uptime.
		"--unsafe-no-fsync",
		"--listen-client-urls=" + s.etcdURL(),
		"--advertise-client-urls=" + s.etcdURL(),
		"--listen-peer-urls=" + s.etcdPeerURL(),
		"--initial-advertise-peer-urls=" + s.etcdPeerURL(),
		"--initial-cluster=default=" + s.etcdPeerURL(),
	}}
}

func (s spec) apiServer() component {
	args := []string{
		"--etcd-servers=" + s.etcdURL(),
		fmt.Sprintf("--secure-port=%d", s.Port),
		"--advertise-address=" + s.address(),
		"--tls-cert-file=" + s.home("pki", "apiserver.crt"),
		"--tls-private-key-file=" + s.home("pki", "apiserver.key"),
		"--service-account-key-file=" + s.home("pki", "sa.key"),
		"--service-account-signing-key-file=" + s.home("pki", "sa.key"),
		"--service-account-issuer=https://kubernetes.default.svc",
		"--token-auth-file=" + s.home("pki", "tokens.csv"),
		"--authorization-mode=Node,RBAC",
		"--service-cluster-ip-range=" + serviceRange,
		"--allow-privileged=true",
	}
	if s.Audited {
		args = append(args,
			"--audit-policy-file="+auditPolicy(s.Home),
			"--audit-log-path="+logFile(s.Home, auditLog),
			// Megabytes, so that nothing is rotated away.
			"--audit-log-maxsize=10000")
	}
	if s.onLoopback() {
		return component{"kube-apiserver", append(args,
			"--bind-address="+loopbackAddress,
			"--egress-selector-config-file="+node.EgressFile(s.home("processes")),
			// The endpoints of kubernetes.default may not be on the loopback interface, and no pod
			// uses them here.
			"--endpoint-reconciler-type=none")}
	}
	return component{"kube-apiserver", append(args,
		// Both addresses of the bridge, so pods reach kubernetes.default.
		"--bind-address=0.0.0.0",
		// Webhook Services resolve to pod addresses: kube-proxy is not needed.
		"--enable-aggregator-routing=true",
		"--kubelet-preferred-address-types=InternalIP")}
}

func (s spec) controllerManager() component {
	args := []string{
		"--kubeconfig=" + s.home("kubeconfig"),
		"--service-account-private-key-file=" + s.home("pki", "sa.key"),
		"--root-ca-file=" + s.home("pki", "apiserver.crt"),
		"--use-service-account-credentials=true",
		"--leader-elect=false",
		// It creates a ServiceAccount and a token for each of its controllers before it starts any,
		// which would take five seconds at the default rate.
		"--kube-api-qps=500",
		"--kube-api-burst=1000",
	}
	if s.onLoopback() {
		// Its own port would collide between clusters, and nothing reads it.
		args = append(args, "--controllers="+node.Controllers, "--secure-port=0")
	}
	return component{"kube-controller-manager", args}
}

func (s spec) scheduler() component {
	args := []string{
		"--kubeconfig=" + s.home("kubeconfig"),
		"--leader-elect=false",
	}
	if s.onLoopback() {
		args = append(args, "--secure-port=0") // as above
	}
	return component{"kube-scheduler", args}
}

// processNodes runs the nodes of processes.
func (s spec) processNodes() component { return component{nodesName, []string{s.Home}} }

func (s spec) containerd() component {
	return component{"containerd", []string{"--config=" + s.home("containerd.toml")}}
}

func (s spec) kubelet() component {
	return component{"kubelet", []string{
		"--config=" + s.home("kubelet.yaml"),
		"--kubeconfig=" + s.home("kubeconfig"),
		"--root-dir=" + s.home("kubelet"),
		"--cert-dir=" + s.home("kubelet", "pki"),
		"--hostname-override=" + s.nodeName(),
		"--node-ip=" + s.NodeAddress(),
	}}
}

// ctr returns the command line of containerd's client for this node's images.
func (s spec) ctr(args ...string) []string {
	return append([]string{"ctr", "--address", containerdSocket, "--namespace", "k8s.io"}, args...)
}
