// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cmd

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/conversion-operator/conversion-operator/internal/test/expect"
)

// withFlag returns the commands for users that have a flag.
func withFlag(name string) []string {
	var found []string
	for _, command := range newUserCommand().Commands() {
		if command.GroupID == groupUsers && command.Flag(name) != nil {
			found = append(found, command.Name())
		}
	}
	return found
}

const cronspec = "../../../config/samples/crontab-cronspec/"

// fileCommands returns the commands for users that read files, each with arguments. FILE is the file to read.
func fileCommands(t *testing.T) map[string][][]string {
	t.Helper()
	policy := []string{"--policy", cronspec + "2-policy.yaml", "--crd", cronspec + "3-crd-both.yaml"}
	with := func(args ...string) []string { return slices.Concat(policy, args) }
	commands := map[string][][]string{
		"audit":      {{"-f", "FILE"}, {"--upgrade", "FILE"}},
		"convert":    {with("--to", "v2", "-f", "FILE"), {"--policy", "FILE", "--crd", policy[3], "--to", "v2", "-f", cronspec + "objects.yaml"}},
		"diff":       {{"-f", "FILE", "--before", cronspec + "2-policy.yaml"}, {"-f", cronspec + "2-policy.yaml", "--before", "FILE"}},
		"draft":      {{"-f", "FILE"}},
		"explain":    {with("--to", "v2", "-f", "FILE")},
		"plan":       {{"--local", "-f", "FILE"}, {"--local", "-f", policy[1], "--crd", "FILE"}},
		"playground": {with("-f", "FILE")},
		"report":     {with("-f", "FILE")},
		"rewrite":    {with("--to", "v2", "-f", "FILE"), {"--policy", policy[1], "--crd", "FILE", "--to", "v2", "-f", cronspec + "objects.yaml", "--check"}},
		"verify":     {with("-f", "FILE"), {"--policy", policy[1], "--crd", "FILE"}, with("--golden", "FILE")},
	}
	for _, name := range withFlag("filename") {
		expect.Equal(t, name+" reads files, and is in this test", true, commands[name] != nil)
	}
	return commands
}

// TestBadFiles: no command works with files that it cannot read. Each names the file, and changes nothing.
func TestBadFiles(t *testing.T) {
	t.Parallel()
	commands := fileCommands(t)
	commands["archive"] = [][]string{{"--policy", "FILE", "--crd", cronspec + "3-crd-both.yaml"}, {"--policy", cronspec + "2-policy.yaml", "--crd", "FILE"}}
	commands["export"] = [][]string{{"--policy", "FILE", "--crd", cronspec + "3-crd-both.yaml", "--folder", "nowhere", "--namespace", "x", "--image", "x"}}
	const begin = "apiVersion: stable.example.com/v1\nkind: CronTab\nmetadata:\n  name: a\n"
	contents := map[string]string{
		"not YAML":      begin + "spec: [\n",
		"a tag":         begin + "spec: !!binary aGk=\n",
		"two at once":   begin + "kind: CronTab\n",
		"a binary file": begin + "\x00\x7fELF",
		"Latin-1":       begin + "spec: {image: caf\xe9}\n",
		"half of JSON":  `{"apiVersion": "stable.example.com/v1", "kind": "CronTab", "metadata": {`,
		"too deep":      begin + "spec: " + strings.Repeat("[", 20_000) + "\n",
		"aliases":       begin + "a: &a [1, 1, 1, 1, 1, 1, 1, 1, 1, 1]\nb: &b [*a, *a, *a, *a, *a, *a, *a, *a, *a, *a]\nc: &c [*b, *b, *b, *b, *b, *b, *b, *b, *b, *b]\nd: &d [*c, *c, *c, *c, *c, *c, *c, *c, *c, *c]\ne: &e [*d, *d, *d, *d, *d, *d, *d, *d, *d, *d]\nf: &f [*e, *e, *e, *e, *e, *e, *e, *e, *e, *e]\nspec: [*f, *f, *f]\n",
		"a template":    begin + "spec:\n{{- if .Values.image }}\n  image: {{ .Values.image }}\n{{- end }\n",
	}
	for _, name := range slices.Sorted(maps.Keys(commands)) {
		for content, text := range contents {
			t.Run(name+" "+content, func(t *testing.T) {
				t.Parallel()
				for _, args := range commands[name] {
					file := filepath.Join(t.TempDir(), "bad.yaml")
					expect.NoError(t, os.WriteFile(file, []byte(text), 0o600))
					args = append([]string{name}, args...)
					args[slices.Index(args, "FILE")] = file
					stdout, stderr, err := runWith("", args...)
					want, said := exitUnable, stdout+stderr
					if name == "rewrite" && slices.Contains(args, cronspec+"3-crd-both.yaml") {
						// It reports the manifest, beside others that it can read, and leaves out files that are not text.
						if want = exitFound; content == "a binary file" {
							want, said = 0, file
						}
					}
					if ExitCode(err) != want || !strings.Contains(said, file) || strings.Contains(said, `"level"`) {
						t.Errorf("%v: exit code %d: %s", args, ExitCode(err), said)
					}
					expect.Equal(t, fmt.Sprintf("the file after %v", args), text, readFile(t, file))
				}
			})
		}
	}
}

// TestBadServers: a server that refuses everything, or ends each answer in the middle, leads to one error.
func TestBadServers(t *testing.T) {
	t.Parallel()
	commands := map[string][]string{
		"archive":         {"crontabs.stable.example.com"},
		"audit":           nil,
		"dependents":      {"crontabs.stable.example.com"},
		"diff":            {"-f", cronspec + "3-crd-both.yaml"},
		"draft":           {"crontabs.stable.example.com"},
		"explain":         {"crontab/x", "--to", "v2"},
		"migrate":         {"crontabs.stable.example.com"},
		"plan":            {"crontabs.stable.example.com"},
		"playground":      {"crontabs.stable.example.com", "--live"},
		"report":          {"crontabs.stable.example.com"},
		"resume":          {"crontabs.stable.example.com"},
		"rewrite":         {"crontabs.stable.example.com", "--to", "v2", "-f", cronspec},
		"status":          nil,
		"pause":           {"crontabs.stable.example.com"},
		"trigger":         {"crontabs.stable.example.com"},
		"uninstall-check": nil,
		"verify":          {"crontabs.stable.example.com", "--live"},
	}
	for _, name := range withFlag("server") {
		if _, isKnown := commands[name]; !isKnown {
			t.Errorf("%s asks a cluster, and is not in this test", name)
		}
	}
	answers := map[string]func(http.ResponseWriter){
		"no rights": func(w http.ResponseWriter) {
			http.Error(w, `{"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure", "message": "forbidden: you may not", "reason": "Forbidden", "code": 403}`, http.StatusForbidden)
		},
		"no account": func(w http.ResponseWriter) {
			http.Error(w, `{"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure", "message": "Unauthorized", "reason": "Unauthorized", "code": 401}`, http.StatusUnauthorized)
		},
		"a lost connection": func(w http.ResponseWriter) {
			w.Header().Set("Content-Length", "5000")
			_, _ = w.Write([]byte(`{"kind": "APIGroupList", "apiVersion": "v1", "groups": [`))
			_ = http.NewResponseController(w).Flush()
			panic(http.ErrAbortHandler)
		},
		"another server": func(w http.ResponseWriter) { _, _ = w.Write([]byte("<html>Welcome</html>")) },
	}
	for answer, write := range answers {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			write(w)
		}))
		t.Cleanup(server.Close)
		for name, args := range commands {
			t.Run(name+" "+answer, func(t *testing.T) {
				t.Parallel()
				args := append([]string{name, "--server", server.URL}, args...)
				stdout, stderr, err := runWith("", args...)
				if ExitCode(err) != exitUnable || stdout != "" || strings.Count(stderr, "\n") > 1 || !strings.HasPrefix(stderr, "Error: ") {
					t.Errorf("%v: exit code %d, %s\n%s", args, ExitCode(err), stdout, stderr)
				}
			})
		}
	}
}

// endless is an input from which nothing comes. Its first read interrupts the command.
type endless struct{ interrupt context.CancelFunc }

func (e endless) Read([]byte) (int, error) {
	e.interrupt()
	select {}
}

// TestInterruptedInput: a signal ends each command that waits for its input.
func TestInterruptedInput(t *testing.T) {
	t.Parallel()
	for name, variants := range fileCommands(t) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ctx, interrupt := context.WithCancel(t.Context())
			args := append([]string{name}, variants[0]...)
			args[slices.Index(args, "FILE")] = "-"
			if _, _, err := runIn(ctx, endless{interrupt}, args...); !errors.Is(err, context.Canceled) || ExitCode(err) != exitUnable {
				t.Errorf("exit code %d: %v", ExitCode(err), err)
			}
		})
	}
}
