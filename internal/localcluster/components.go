// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package localcluster

import (
	"fmt"

	"github.com/conversion-operator/conversion-operator/internal/test/node"
)

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
	if s.ProcessNodes > 0 {
		args = append(args, "--egress-selector-config-file="+node.EgressFile(s.home("processes")))
	}
	if s.ControlPlaneOnly {
		return component{"kube-apiserver", append(args,
			"--bind-address="+loopbackAddress,
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
	if s.ProcessNodes > 0 {
		args = append(args, "--controllers="+node.Controllers)
	}
	if s.ControlPlaneOnly {
		// Its own port would collide between clusters, and nothing reads it.
		args = append(args, "--secure-port=0")
	}
	return component{"kube-controller-manager", args}
}

func (s spec) scheduler() component {
	args := []string{
		"--kubeconfig=" + s.home("kubeconfig"),
		"--leader-elect=false",
	}
	if s.ControlPlaneOnly {
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
