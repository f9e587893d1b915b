// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/conversion-operator/conversion-operator/internal/test/expect"
)

// maxSize is how large the program may be, in bytes. Its pages are read when a pod starts.
const maxSize = 25_000_000

// program is the file of the program, built as the image has it.
var program string

func TestMain(m *testing.M) {
	if text := os.Getenv(asAttacker); text != "" {
		order := attack{}
		if err := json.Unmarshal([]byte(text), &order); err != nil {
			panic(err)
		}
		fmt.Fprint(os.Stdout, order.run())
		return
	}
	folder, err := os.MkdirTemp("", "converter")
	if err == nil {
		program = filepath.Join(folder, "converter")
		err = build(program)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	code := m.Run()
	_ = os.RemoveAll(folder)
	os.Exit(code)
}

func build(file string) error {
	command := exec.Command("go", "build", "-trimpath", "-buildvcs=false", "-gcflags=all=-dwarf=false", "-ldflags=-s -w", "-o", file, ".")
	command.Env = append(os.Environ(), "CGO_ENABLED=0", "GOFLAGS=")
	if output, err := command.CombinedOutput(); err != nil {
		return fmt.Errorf("build the program: %w: %s", err, output)
	}
	return nil
}

// TestSize: the program has neither a command line for users nor clients of API servers in it.
func TestSize(t *testing.T) {
	info, err := os.Stat(program)
	expect.NoError(t, err)
	t.Logf("%.1f MB", float64(info.Size())/1e6)
	if info.Size() > maxSize {
		t.Errorf("the program has %d bytes, more than %d", info.Size(), maxSize)
	}
}

// denied are packages that a converter pod does not need. It executes a ruleset: it neither reads
// CustomResourceDefinitions nor validates schemas, calls no API server, and watches nothing.
var denied = []string{
	"github.com/conversion-operator/conversion-operator/api",
	"github.com/conversion-operator/conversion-operator/controllers",
	"github.com/conversion-operator/conversion-operator/internal/cli",
	"github.com/conversion-operator/conversion-operator/internal/engine/conversion/compile",
	"github.com/conversion-operator/conversion-operator/internal/engine/conversion/shape/strip",
	"github.com/conversion-operator/conversion-operator/internal/operator/plan",
	"google.golang.org/grpc",
	"k8s.io/apiextensions-apiserver",
	"k8s.io/client-go",
	"sigs.k8s.io/controller-runtime/pkg/certwatcher",
	"sigs.k8s.io/controller-runtime/pkg/client",
	"sigs.k8s.io/kustomize",
}

// TestLinks checks indirect dependencies: the linter only checks direct imports.
func TestLinks(t *testing.T) {
	linked := packages(t, "{{.ImportPath}}", ".")
	if len(linked) < 200 {
		t.Fatalf("go list names %d packages only", len(linked))
	}
	for _, name := range linked {
		for _, prefix := range denied {
			if name == prefix || strings.HasPrefix(name, prefix+"/") {
				t.Errorf("a converter pod links %s", name)
			}
		}
	}
}

// TestModules: the program has no module that conversion-operator has not, so that the licences and the bill of
// materials of that one are those of the image.
func TestModules(t *testing.T) {
	of := func(pattern string) []string {
		return slices.Compact(slices.Sorted(slices.Values(packages(t, "{{with .Module}}{{.Path}}{{end}}", pattern))))
	}
	all := of("../../..")
	for _, module := range of(".") {
		if !slices.Contains(all, module) {
			t.Errorf("only the converter has %s", module)
		}
	}
}

// packages lists what packages link.
func packages(t *testing.T, format, pattern string) []string {
	t.Helper()
	output, err := exec.CommandContext(t.Context(), "go", "list", "-deps", "-f", format, pattern).Output()
	expect.NoError(t, err)
	return strings.Fields(string(output))
}
