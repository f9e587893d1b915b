// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cmd

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/go-logr/logr"
	"github.com/spf13/cobra"

	"github.com/conversion-operator/conversion-operator/internal/test/expect"
	"github.com/conversion-operator/conversion-operator/internal/test/testenv"
)

func TestMain(m *testing.M) {
	testenv.Parallel(6) // most tests that run in parallel wait
	os.Exit(m.Run())
}

// run executes the root command.
func run(args ...string) (stdout, stderr string, err error) { return runWith("", args...) }

// runWith is run with something on stdin.
func runWith(stdin string, args ...string) (stdout, stderr string, err error) {
	return runIn(context.Background(), strings.NewReader(stdin), args...)
}

// runIn executes the root command with one more subcommand that logs, until the context ends.
func runIn(ctx context.Context, stdin io.Reader, args ...string) (stdout, stderr string, err error) {
	var out, errs bytes.Buffer
	root := NewRootCommand()
	root.AddCommand(&cobra.Command{Use: "log", Run: func(command *cobra.Command, _ []string) {
		log := logr.FromContextOrDiscard(command.Context())
		log.V(1).Info("detail")
		log.Info("said", "a", 1)
		log.Error(nil, "failed")
	}})
	root.SetIn(stdin)
	root.SetOut(&out)
	root.SetErr(&errs)
	root.SetArgs(args)
	err = root.ExecuteContext(ctx)
	return out.String(), errs.String(), err
}

// checkEnd checks how a command ended, and that its output has some parts.
func checkEnd(t *testing.T, code int, err error, output string, parts ...string) {
	t.Helper()
	expect.Equal(t, fmt.Sprintf("exit code after %v", err), code, ExitCode(err))
	expect.Contains(t, "the output", output, parts...)
}

// checkFailure also checks that nothing is on stdout.
func checkFailure(t *testing.T, code int, stdout, stderr string, err error, parts ...string) {
	t.Helper()
	expect.Equal(t, "stdout", "", stdout)
	checkEnd(t, code, err, stderr, parts...)
}

func TestLogs(t *testing.T) {
	cases := map[string]struct {
		args []string
		want []string
	}{
		"by default": {args: []string{"log"}, want: []string{"said", "failed"}},
		"debug":      {args: []string{"log", "--log-level=debug"}, want: []string{"detail", "said", "failed"}},
		"error":      {args: []string{"log", "--log-level=error"}, want: []string{"failed"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			_, stderr, err := run(tc.args...)
			expect.NoError(t, err)
			var got []string
			for line := range strings.Lines(stderr) {
				entry := map[string]any{}
				if err := json.Unmarshal([]byte(line), &entry); err != nil {
					t.Fatalf("%v in %s", err, line)
				}
				got = append(got, entry["msg"].(string))
				fields := slices.Sorted(maps.Keys(entry))
				expect.Equal(t, "the last field", "ts", fields[len(fields)-1])
			}
			expect.Equal(t, "messages", tc.want, got)
		})
	}
}

func TestTextLog(t *testing.T) {
	_, stderr, err := run("log", "--log-format=text", "--log-level=info")
	expect.NoError(t, err)
	expect.Contains(t, "the log", stderr, "\tINFO\tsaid\t{\"a\": 1}\n")
}

func TestVersion(t *testing.T) {
	stdout, _, err := run("--version")
	expect.NoError(t, err)
	expect.Equal(t, "output", "conversion-operator version "+versionText()+"\n", stdout)
}

// sampleFile is a file of the sample with host and port.
func sampleFile(name string) string {
	return filepath.Join("..", "..", "..", "config", "samples", "crontab-hostport", name)
}

func readFile(t *testing.T, file string) string {
	t.Helper()
	text, err := os.ReadFile(file)
	expect.NoError(t, err)
	return string(text)
}

// write creates a temporary file.
func write(t *testing.T, name, text string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), name)
	expect.NoError(t, os.WriteFile(file, []byte(text), 0o600))
	return file
}

// TestHelp names every subcommand on the first page.
func TestHelp(t *testing.T) {
	stdout, _, err := run()
	expect.NoError(t, err)
	for _, command := range NewRootCommand().Commands() {
		expect.Contains(t, "the help", stdout, "\n  "+command.Name()+" ")
	}
}
