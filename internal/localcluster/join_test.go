// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build e2e && linux

package localcluster

import (
	"context"
	"errors"
	"net"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// insideVariable tells the test binary that it runs inside a cluster.
const insideVariable = "LOCALCLUSTER_TEST_INSIDE"

// TestJoin runs TestJoinInside inside a cluster.
func TestJoin(t *testing.T) {
	c := upForTest(t, Options{Name: "joined"})
	cmd := c.Command(t.Context(), os.Args[0], "-test.run=^TestJoinInside$", "-test.v")
	cmd.Env = append(cmd.Env, insideVariable+"=1")
	out, err := cmd.CombinedOutput()
	if t.Logf("%s", out); err != nil {
		t.Fatal(err)
	}
}

const workerManifest = `{"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "far"}, "spec": {"nodeName": "node2",
	"containers": [{"name": "c", "image": "` + PauseImage + `", "imagePullPolicy": "Never"}]}}`

// TestJoinInside adds a node, runs a pod on it, and kills the node. When it is started again, the
// pod is.
func TestJoinInside(t *testing.T) {
	if os.Getenv(insideVariable) == "" {
		t.Skip("TestJoin runs it")
	}
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	worker, err := Join(ctx, 2, t.Output())
	if err != nil {
		t.Fatal(err)
	}
	kubectl(ctx, t, workerManifest, "create", "--filename=-")
	kubectl(ctx, t, "", "wait", "--for=condition=Ready", "pod/far", "--timeout=60s")
	address := kubectl(ctx, t, "", "get", "pod", "far", "--output=jsonpath={.status.podIP}") + ":1"
	if err := dial(ctx, address); !errors.Is(err, unix.ECONNREFUSED) {
		t.Errorf("the pod's kernel does not answer: %v", err)
	}

	supervisor := worker.node.supervisor
	if err := worker.Kill(ctx); err != nil {
		t.Fatal(err)
	}
	if now, err := identify(supervisor.PID); err == nil && now == supervisor {
		t.Error("the node was killed, and its supervisor is still there")
	}
	if err := dial(ctx, address); !os.IsTimeout(err) {
		t.Errorf("the node was killed, and a connection to its pod ended with %v, want no answer", err)
	}
	if err := worker.Start(ctx); err != nil {
		t.Fatal(err)
	}
	kubectl(ctx, t, "", "wait", "--for=jsonpath={.status.containerStatuses[0].restartCount}=1", "pod/far", "--timeout=90s")
	if err := worker.Kill(ctx); err != nil {
		t.Fatal(err)
	}
}

// dial connects for longer than a kernel takes to learn that no neighbour has an address.
func dial(ctx context.Context, address string) error {
	connection, err := (&net.Dialer{Timeout: 5 * time.Second}).DialContext(ctx, "tcp", address)
	if err == nil {
		err = connection.Close()
	}
	return err
}

func kubectl(ctx context.Context, t *testing.T, input string, args ...string) string {
	t.Helper()
	cmd := exec.CommandContext(ctx, "kubectl", args...)
	cmd.Stdin, cmd.Stderr = strings.NewReader(input), t.Output()
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("kubectl %q: %v", args, err)
	}
	return string(out)
}
