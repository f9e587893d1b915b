// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
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
		{"CLUSTER=local", "NODE=containers", "deps.sh runc "},
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
