// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/conversion-operator/conversion-operator/internal/test/expect"
)

// usingKind is the output of make when it chooses kind.
const usingKind = "using kind; CLUSTER=local for the project's own cluster\n"

// fakes returns a folder with fake programs, each with an exit code, and timeout.
func fakes(t *testing.T, programs map[string]string) string {
	t.Helper()
	folder := t.TempDir()
	for name, status := range programs {
		script := []byte("#!/bin/sh\nexit " + status + "\n")
		expect.NoError(t, os.WriteFile(filepath.Join(folder, name), script, 0o700)) //nolint:gosec // a program
	}
	for _, name := range []string{"bash", "timeout"} {
		path, err := exec.LookPath(name)
		expect.NoError(t, err)
		expect.NoError(t, os.Symlink(path, filepath.Join(folder, name)))
	}
	return folder
}

// TestChosenCluster: without CLUSTER, the demo uses kind if it can run.
func TestChosenCluster(t *testing.T) {
	script, err := filepath.Abs(filepath.Join("..", "tools", "choose-cluster.sh"))
	expect.NoError(t, err)
	type programs = map[string]string
	cases := map[string]struct {
		programs programs
		version  string
		want     string
	}{
		"nothing is installed":         {programs{}, "", "local\n"},
		"kind with docker":             {programs{"kind": "0", "kubectl": "0", "docker": "0"}, "", "kind\n"},
		"kind with podman":             {programs{"kind": "0", "kubectl": "0", "docker": "1", "podman": "0"}, "", "kind\n"},
		"kind without an engine":       {programs{"kind": "0", "kubectl": "0"}, "", "local\n"},
		"no engine answers":            {programs{"kind": "0", "kubectl": "0", "docker": "1", "podman": "1"}, "", "local\n"},
		"kind without kubectl":         {programs{"kind": "0", "docker": "0"}, "", "local\n"},
		"docker without kind":          {programs{"kubectl": "0", "docker": "0"}, "", "local\n"},
		"another Kubernetes is wanted": {programs{"kind": "0", "kubectl": "0", "docker": "0"}, "v1.36.3", "local\n"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			command := exec.CommandContext(t.Context(), script)
			command.Env = []string{"PATH=" + fakes(t, c.programs), "KUBERNETES_VERSION=" + c.version}
			var said bytes.Buffer
			command.Stderr = &said
			got, err := command.Output()
			expect.NoError(t, err)
			expect.Equal(t, "choice", c.want, string(got))
			expect.Equal(t, fmt.Sprintf("that it says that it uses kind: %q", said.String()), c.want == "kind\n", said.String() == usingKind)
		})
	}
}

// TestExplicitCluster: CLUSTER overrides the choice, and make requires the dependencies of the
// chosen cluster.
func TestExplicitCluster(t *testing.T) {
	path := fakes(t, map[string]string{"kind": "0", "kubectl": "0", "docker": "0"}) + ":" + os.Getenv("PATH")
	for _, c := range []struct{ arguments, environment, want string }{
		{"", "", "deps.sh kind "},
		{"CLUSTER=local", "", "-o bin/ . ./internal/webhook/converter"},
		{"CLUSTER=local", "NODE=containers", "deps.sh node runc "},
		{"CLUSTER=current", "", "deps.sh kubectl "},
		{"", "CLUSTER=local", "-o bin/ . ./internal/webhook/converter"},
	} {
		command := exec.CommandContext(t.Context(), "make", "-n", "demo", c.arguments)
		if c.arguments == "" {
			command.Args = command.Args[:3]
		}
		command.Dir = filepath.Join("..", "..", "..")
		for _, variable := range os.Environ() {
			// make test passes CLUSTER to everything that it runs.
			if name, _, _ := strings.Cut(variable, "="); name != "CLUSTER" && name != "NODE" && name != "KUBERNETES_VERSION" && name != "MAKEFLAGS" && name != "MAKEOVERRIDES" {
				command.Env = append(command.Env, variable)
			}
		}
		command.Env = append(command.Env, "PATH="+path)
		if c.environment != "" {
			command.Env = append(command.Env, c.environment)
		}
		out, err := command.CombinedOutput()
		if err != nil || !strings.Contains(string(out), c.want) {
			t.Errorf("%s make demo %s does not run %s: %v\n%s", c.environment, c.arguments, c.want, err, out)
		}
		what := fmt.Sprintf("that %s make demo %s says that it uses kind", c.environment, c.arguments)
		expect.Equal(t, what, c.want == "deps.sh kind ", strings.Contains(string(out), usingKind))
	}
}

// TestClusterInUse: a run takes down no cluster that another run uses, or that it did not create.
func TestClusterInUse(t *testing.T) {
	content, err := os.ReadFile(filepath.Join("..", "tools", "with-cluster.sh"))
	expect.NoError(t, err)
	for cluster, want := range map[string]string{
		"local": "assets\ndown --name demo\nup --name demo --process-nodes=2 --image=localhost/conversion-operator:dev=BIN/conversion-operator --audit-policy=\n" +
			"kubeconfig --name demo\nerror: another run uses the cluster demo: wait for its end, or stop it; to run both, set LOCALCLUSTER_CACHE to another folder for one\ndown --name demo\n",
		"kind": "get clusters\nerror: kind has a cluster demo already, which is left unchanged: delete it with: kind delete cluster --name demo\n",
	} {
		root := t.TempDir()
		bin, script, log := filepath.Join(root, "bin"), filepath.Join(root, "internal", "dev", "tools", "with-cluster.sh"), filepath.Join(root, "log")
		expect.NoError(t, errors.Join(os.MkdirAll(bin, 0o700), os.MkdirAll(filepath.Dir(script), 0o700), os.WriteFile(script, content, 0o700))) //nolint:gosec // a program
		for _, name := range []string{"localcluster", "kind"} {
			fake := []byte("#!/bin/sh\necho \"$@\" >>" + log + "\n[ \"$1\" != get ] || echo demo\n")
			expect.NoError(t, os.WriteFile(filepath.Join(bin, name), fake, 0o700)) //nolint:gosec // a program
		}
		command := exec.CommandContext(t.Context(), script, "demo", "bash", "-c", script+" demo true 2>>"+log+" || true") //nolint:gosec // of this test
		command.Env = []string{"PATH=" + bin + ":" + os.Getenv("PATH"), "HOME=" + root, "CLUSTER=" + cluster, "NODE=processes"}
		out, _ := command.CombinedOutput()
		said, err := os.ReadFile(log)
		expect.NoError(t, err)
		expect.Equal(t, cluster, want, strings.ReplaceAll(string(said)+string(out), bin, "BIN"))
	}
}

// TestContainersNeedRoot: who cannot run containers is told at the start, in one line.
func TestContainersNeedRoot(t *testing.T) {
	folder := fakes(t, nil)
	expect.NoError(t, os.WriteFile(filepath.Join(folder, "id"), []byte("#!/bin/sh\necho 1000\n"), 0o700)) //nolint:gosec // a program
	command := exec.CommandContext(t.Context(), filepath.Join("..", "tools", "deps.sh"), "node", "runc")
	command.Env = []string{"PATH=" + folder + ":" + os.Getenv("PATH")}
	out, err := command.CombinedOutput()
	if err == nil || strings.Count(string(out), "\n") != 1 || !strings.HasPrefix(string(out), "error: the local cluster's containers need root; ") {
		t.Errorf("got %q and %v", out, err)
	}
}
