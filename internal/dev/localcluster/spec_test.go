// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package localcluster

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"

	"github.com/conversion-operator/conversion-operator/internal/test/expect"
)

func testSpec(t *testing.T, processNodes int) spec {
	t.Helper()
	o := Options{Name: "test", CacheDir: t.TempDir(), KubernetesVersion: "v1.37.0", ProcessNodes: processNodes}
	s := newSpec(o, "/usr/sbin/runc")
	if processNodes > 0 {
		s.Port, s.EtcdPort, s.EtcdPeerPort = 6443, 12379, 12380
	}
	return s
}

func TestComponents(t *testing.T) {
	node, plane := testSpec(t, 0), testSpec(t, 1)
	audited := node
	audited.Audited = true
	tests := map[string]struct {
		component component
		want      []string
		without   string
	}{
		"a node's API server serves pods and resolves Services": {node.apiServer(),
			[]string{"--bind-address=0.0.0.0", "--secure-port=443", "--advertise-address=10.240.0.1", "--enable-aggregator-routing=true"}, ""},
		"a control plane's API server stays on the loopback interface": {plane.apiServer(),
			[]string{"--bind-address=127.0.0.1", "--secure-port=6443", "--etcd-servers=http://127.0.0.1:12379"}, "--enable-aggregator-routing=true"},
		"an API server keeps an audit log if asked": {audited.apiServer(),
			[]string{"--audit-policy-file=/run/localcluster/audit-policy.yaml", "--audit-log-path=/run/localcluster/log/audit.log"}, ""},
		"and none if not": {node.apiServer(), nil, "--audit-log-path=/run/localcluster/log/audit.log"},
		"a control plane's etcd has its own ports": {plane.etcd(),
			[]string{"--listen-client-urls=http://127.0.0.1:12379", "--listen-peer-urls=http://127.0.0.1:12380"}, ""},
		"a node's etcd has the usual ports": {node.etcd(), []string{"--listen-client-urls=http://127.0.0.1:2379"}, ""},
		"two control planes do not collide": {plane.controllerManager(), []string{"--secure-port=0"}, ""},
		"a node sees its directory at a short path": {node.kubelet(),
			[]string{"--root-dir=/run/localcluster/kubelet", "--node-ip=10.240.0.1"}, ""},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			for _, want := range test.want {
				if !slices.Contains(test.component.args, want) {
					t.Errorf("%s lacks %s: %q", test.component.name, want, test.component.args)
				}
			}
			if slices.Contains(test.component.args, test.without) {
				t.Errorf("%s has %s", test.component.name, test.without)
			}
		})
	}
}

// TestPrepare: a control plane has its files, which later commands read, and does not run yet.
func TestPrepare(t *testing.T) {
	policy := filepath.Join(t.TempDir(), "policy.yaml")
	expect.NoError(t, os.WriteFile(policy, []byte("rules: []\n"), 0o600))
	o, err := Options{CacheDir: t.TempDir(), ProcessNodes: 1, AuditPolicy: policy}.withDefaults()
	expect.NoError(t, err)
	want, err := prepare(o)
	expect.NoError(t, err)
	expect.Equal(t, "files", []string{"audit-policy.yaml", "cluster.json", "cni", "kubeconfig", "log", "pki", "processes"}, names(t, want.Dir))
	got, err := readSpec(want.Dir)
	expect.NoError(t, err)
	expect.Equal(t, "result", want, got)
	if client, err := newAPIClient(got); err != nil || client.ready(t.Context()) == nil {
		t.Errorf("an API server answers before its start: %v", err)
	}
	if _, err := Find(o); !errors.Is(err, ErrNotRunning) {
		t.Errorf("got error %v, want %v", err, ErrNotRunning)
	}
}

func TestEnvironment(t *testing.T) {
	s := spec{Dir: "/c", Bin: "/bin/ours", EtcdPort: 2379}
	got := s.environment([]string{"HOME=/root", "PATH=/usr/bin", "HTTPS_PROXY=http://proxy", "no_proxy=x"})
	want := []string{"HOME=/root", "PATH=/bin/ours:/usr/bin", "KUBECONFIG=/c/kubeconfig", "KUBECACHEDIR=/c/kubectl-cache", "LOCALCLUSTER_ETCD=http://127.0.0.1:2379"}
	expect.Equal(t, "result", want, got)
}

func TestServerCertificateHoldsForEveryAddress(t *testing.T) {
	c, err := newCredentials(nodeAddress)
	expect.NoError(t, err)
	pair, err := tls.X509KeyPair(c.cert, c.key)
	expect.NoError(t, err)
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(c.cert)
	for _, name := range []string{nodeAddress, serviceAddress, loopbackAddress, "kubernetes.default.svc"} {
		if _, err := pair.Leaf.Verify(x509.VerifyOptions{Roots: roots, DNSName: name}); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	if c.token == "" || len(c.tokenKey) == 0 {
		t.Error("a token or its key is missing")
	}
}

func TestNodeIsReadyWhenPodsCanRun(t *testing.T) {
	tests := map[string]struct{ node, want string }{
		"ready":     {`{"status":{"conditions":[{"type":"Ready","status":"True"}]}}`, "<nil>"},
		"no status": {`{}`, "no condition Ready yet"},
		"no network": {`{"status":{"conditions":[{"type":"MemoryPressure","status":"False"},
			{"type":"Ready","status":"False","message":"cni plugin not initialized"}]}}`, "cni plugin not initialized"},
		"still tainted": {`{"spec":{"taints":[{"key":"node.kubernetes.io/not-ready"}]},
			"status":{"conditions":[{"type":"Ready","status":"True"}]}}`, "node.kubernetes.io/not-ready"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			node := &corev1.Node{}
			expect.NoError(t, yaml.Unmarshal([]byte(test.node), node))
			expect.Contains(t, "error", fmt.Sprint(checkNode(node)), test.want)
		})
	}
}

func TestPollError(t *testing.T) {
	cause := errors.New("kubelet ended with exit code 1")
	for want, answer := range map[string]error{
		"while waiting for the node (last answer: not found): kubelet ended with exit code 1": errors.New("not found"),
		"while waiting for the node: kubelet ended with exit code 1":                          fmt.Errorf("get node1: %w", cause),
	} {
		ctx, cancel := context.WithCancelCause(t.Context())
		err := poll(ctx, "the node", func(context.Context) error {
			cancel(cause)
			return answer
		})
		expect.Equal(t, "error", want, fmt.Sprint(err))
	}
}

func TestLogTailQuotesTheEnd(t *testing.T) {
	dir := t.TempDir()
	makeDirs(t, filepath.Join(dir, "log"))
	path := logFile(dir, "etcd")
	expect.NoError(t, os.WriteFile(path, []byte(strings.Repeat("noise\n", 100)+"the cause\n"), 0o600))
	got := logTail(dir, "etcd")
	if !strings.HasSuffix(got, "\nthe cause") || strings.Count(got, "\n") != 15 || !strings.Contains(got, path) {
		t.Errorf("got %q", got)
	}
}
