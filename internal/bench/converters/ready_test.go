// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package converters

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/conversion-operator/conversion-operator/internal/cmd"
)

// TestMain makes the test binary act as the operator's, of which Ready and Latency run the subcommand
// serve, and as the benchmark's.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == ServeTypedCommand {
		if err := ServeTyped(context.Background(), os.Args[2:]); err != nil {
			os.Exit(1)
		}
		os.Exit(0)
	}
	if len(os.Args) > 1 && os.Args[1] == "serve" {
		if err := cmd.NewRootCommand().ExecuteContext(context.Background()); err != nil {
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

func TestReady(t *testing.T) {
	binary, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	rows, err := Ready(t.Context(), io.Discard, binary, 40, time.Millisecond)
	if err != nil {
		t.Fatal(err)
	}
	var units []string
	for _, row := range rows {
		units = append(units, row.Unit)
		if row.Value <= 0 || row.Suite != Suite || row.Case != "ready with 40 leaves" {
			t.Errorf("%+v", row)
		}
	}
	if got, want := strings.Join(units, ", "), "ms, ms, ms, MiB resident, MiB of it anonymous"; got != want {
		t.Errorf("the units are %s, want %s", got, want)
	}
}

func TestNotReady(t *testing.T) {
	script := filepath.Join(t.TempDir(), "broken")
	if err := os.WriteFile(script, []byte("#!/bin/sh\necho the plan is broken\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	for binary, want := range map[string]string{script: "the plan is broken", "no-such-binary": "no-such-binary serve"} {
		if _, err := Ready(t.Context(), io.Discard, binary, 40, time.Millisecond); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: error %v, want %q", binary, err, want)
		}
	}
}

// TestLargeKind: each leaf field has a rule, or is preserved, as long as a spoke may have as many rules.
func TestLargeKind(t *testing.T) {
	for count, want := range map[int]string{
		100:  "25 moved, 50 otherwise written, 25 kept",
		1000: "86 moved, 170 otherwise written, 85 kept",
	} {
		crd, rules := largeKind(count)
		plan, err := compileRules(crd, rules)
		if err != nil {
			t.Fatal(err)
		}
		root := plan.Spokes[0].Root
		got := fmt.Sprintf("%d moved, %d otherwise written, %d kept", len(root.Moves), len(root.Exchanges), len(root.OnlySpoke))
		if got != want {
			t.Errorf("%d fields: got %s, want %s", count, got, want)
		}
	}
}
