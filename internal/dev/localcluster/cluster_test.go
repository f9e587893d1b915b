// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build e2e && linux

package localcluster

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/procfs"
	"golang.org/x/sys/unix"

	"github.com/conversion-operator/conversion-operator/internal/test/expect"
)

// These tests start real clusters. The full nodes need root, runc and iproute2;
// without them the tests fail.

func TestMain(m *testing.M) {
	PlayRole()
	os.Exit(m.Run())
}

const podManifest = `{"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "test"}, "spec": {
	"containers": [{"name": "c", "image": "` + PauseImage + `", "imagePullPolicy": "Never"}]}}`

func TestTwoFullNodesSideBySide(t *testing.T) {
	doomed, other := upForTest(t, Options{Name: "doomed"}), upForTest(t, Options{Name: "other"})
	for _, c := range []*Cluster{doomed, other} {
		// Both have the same names: nothing of one cluster may be visible in the other.
		kubectl(t, c, podManifest, "create", "--filename=-")
		kubectl(t, c, "", "wait", "--for=condition=Ready", "pod/test", "--timeout=60s")
	}
	spaces := namespacesOf(t, doomed)
	if len(processesIn(t, spaces)) == 0 {
		t.Error("no process is in the namespaces of a cluster")
	}
	containers, err := containerIDs(doomed.spec.Dir)
	if err != nil || len(containers) != 2 {
		t.Fatalf("the pod has the containers %q (%v), want a sandbox and a container", containers, err)
	}

	// end returns when the process and its whole PID namespace are gone.
	expect.NoError(t, doomed.supervisor.end(t.Context(), unix.SIGKILL))
	for _, process := range processesIn(t, spaces) {
		t.Errorf("still there after the supervisor was killed: process %d", process.PID)
	}
	if mounts := hostMounts(t, doomed.spec.Dir); len(mounts) > 0 {
		t.Errorf("still mounted after the supervisor was killed: %q", mounts)
	}
	for _, link := range []string{"node0", "cni0"} {
		if _, err := os.Stat("/sys/class/net/" + link); err == nil {
			t.Errorf("the host has the interface %s", link)
		}
	}
	if _, err := Find(Options{Name: doomed.spec.Name, CacheDir: cacheOf(doomed)}); !errors.Is(err, ErrNotRunning) {
		t.Errorf("a killed cluster is found: %v", err)
	}
	kubectl(t, other, "", "wait", "--for=condition=Ready", "pod/test", "--timeout=10s")

	expect.NoError(t, Down(t.Context(), Options{Name: doomed.spec.Name, CacheDir: cacheOf(doomed)}))
	groups, err := groupsOf(cgroupRoot, containers)
	expect.NoError(t, err)
	expect.Equal(t, "control groups after stopping", nil, groups)
	if _, err := os.Stat(doomed.spec.Dir); !os.IsNotExist(err) {
		t.Errorf("the cluster's directory is still there: %v", err)
	}
}

func TestCommandInside(t *testing.T) {
	c := upForTest(t, Options{Name: "inside"})
	t.Run("input, output and exit code", func(t *testing.T) {
		cmd := c.Command(t.Context(), "sh", "-c", "cat; exit 7")
		cmd.Stdin = strings.NewReader("text")
		out, _ := cmd.Output()
		expect.Equal(t, "output and exit code", []any{"text", 7}, []any{string(out), cmd.ProcessState.ExitCode()})
	})
	t.Run("signals", func(t *testing.T) {
		cmd := c.Command(t.Context(), "sh", "-c", `trap "exit 3" TERM; echo ready; while :; do read line; done`)
		in, err := cmd.StdinPipe()
		expect.NoError(t, err)
		defer func() { _ = in.Close() }()
		out, err := cmd.StdoutPipe()
		expect.NoError(t, err)
		expect.NoError(t, cmd.Start())
		_, err = out.Read(make([]byte, 6))
		expect.NoError(t, err)
		expect.NoError(t, cmd.Process.Signal(unix.SIGTERM))
		// The trap runs when the read is over.
		_, err = in.Write([]byte("\n"))
		expect.NoError(t, err)
		_ = cmd.Wait()
		expect.Equal(t, "exit code", 3, cmd.ProcessState.ExitCode())
	})
}

func TestControlPlaneDiesWithItsSupervisor(t *testing.T) {
	c := upForTest(t, Options{Name: "plane", ProcessNodes: 1})
	kubectl(t, c, "", "create", "namespace", "test")
	children := childrenOf(t, c.SupervisorPID())
	expect.Equal(t, "number of the supervisor's children: etcd, three of Kubernetes, and the nodes", 5, len(children))
	expect.NoError(t, c.supervisor.end(t.Context(), unix.SIGKILL))
	for _, child := range children {
		// Signal 0 only waits.
		if err := child.end(t.Context(), 0); err != nil {
			t.Errorf("process %d: %v", child.PID, err)
		}
	}
}

func TestFailedStartQuotesTheLogOfTheComponent(t *testing.T) {
	o := testOptions(t, Options{Name: "broken", ProcessNodes: 1})
	built, err := Build(t.Context(), o)
	expect.NoError(t, err)
	o.CacheDir = t.TempDir()
	makeDirs(t, o.versionDir())
	expect.NoError(t, os.CopyFS(filepath.Join(o.versionDir(), "stamps"), os.DirFS(filepath.Join(filepath.Dir(built), "stamps"))))
	makeDirs(t, o.binDir())
	for _, target := range o.targets() {
		expect.NoError(t, os.Symlink(filepath.Join(built, target.name), filepath.Join(o.binDir(), target.name)))
	}
	broken := filepath.Join(o.binDir(), "kube-controller-manager")
	expect.NoError(t, errors.Join(os.Remove(broken), os.WriteFile(broken, []byte("#!/bin/sh\necho out of order >&2\nexit 3\n"), 0o755)))
	_, err = Up(t.Context(), o)
	expect.Contains(t, "error", fmt.Sprint(err), "kube-controller-manager ended with exit code 3", "out of order")
	if _, err := Find(o); !errors.Is(err, ErrNotRunning) {
		t.Errorf("after a failed start: %v, want %v", err, ErrNotRunning)
	}
}

// testOptions makes the name of the cluster unique to this run of the tests.
func testOptions(t *testing.T, o Options) Options {
	t.Helper()
	o.Name = fmt.Sprintf("%s-%d", o.Name, os.Getpid())
	o.Progress = t.Output()
	o, err := o.withDefaults()
	expect.NoError(t, err)
	return o
}

func upForTest(t *testing.T, o Options) *Cluster {
	t.Helper()
	o = testOptions(t, o)
	t.Cleanup(func() {
		expect.NoError(t, errors.Join(Down(context.WithoutCancel(t.Context()), o), os.Remove(o.lockPath())))
	})
	c, err := Up(t.Context(), o)
	expect.NoError(t, err)
	return c
}

func kubectl(t *testing.T, c *Cluster, input string, args ...string) {
	t.Helper()
	cmd := c.Command(t.Context(), "kubectl", args...)
	cmd.Stdin = strings.NewReader(input)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("kubectl %q in %s: %v\n%s", args, c.spec.Name, err, out)
	}
}

func cacheOf(c *Cluster) string { return filepath.Dir(filepath.Dir(c.spec.Dir)) }

// namespacesOf returns the namespaces of a cluster.
func namespacesOf(t *testing.T, c *Cluster) procfs.Namespaces {
	t.Helper()
	supervisor, err := procfs.NewProc(c.SupervisorPID())
	expect.NoError(t, err)
	spaces, err := supervisor.Namespaces()
	expect.NoError(t, err)
	return spaces
}

// processesIn lists the processes in one of the namespaces. It ignores processes that end
// meanwhile.
func processesIn(t *testing.T, spaces procfs.Namespaces) (found procfs.Procs) {
	t.Helper()
	all, err := procfs.AllProcs()
	expect.NoError(t, err)
	for _, each := range all {
		in, _ := each.Namespaces()
		if slices.ContainsFunc([]string{"pid", "net", "mnt"}, func(kind string) bool { return in[kind] == spaces[kind] }) {
			found = append(found, each)
		}
	}
	return found
}

func hostMounts(t *testing.T, dir string) []string {
	t.Helper()
	mountinfo, err := os.ReadFile("/proc/self/mountinfo")
	expect.NoError(t, err)
	var mounts []string
	for line := range strings.Lines(string(mountinfo)) {
		if strings.Contains(line, dir) || strings.Contains(line, nodeHome) {
			mounts = append(mounts, line)
		}
	}
	return mounts
}

func childrenOf(t *testing.T, pid int) (children []process) {
	t.Helper()
	all, err := procfs.AllProcs()
	expect.NoError(t, err)
	for _, each := range all {
		if stat, err := each.Stat(); err == nil && stat.PPID == pid {
			children = append(children, process{each.PID, stat.Starttime})
		}
	}
	return children
}
