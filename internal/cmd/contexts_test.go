// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cmd

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/conversion-operator/conversion-operator/internal/audit"
	"github.com/conversion-operator/conversion-operator/internal/dependents"
	"github.com/conversion-operator/conversion-operator/internal/findings"
	"github.com/conversion-operator/conversion-operator/internal/test/expect"
)

// listing answers lists of definitions with these items, and finds nothing else.
func listing(t *testing.T, items string) *httptest.Server {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		if r.URL.Path != "/apis/apiextensions.k8s.io/v1/customresourcedefinitions" {
			w.WriteHeader(http.StatusNotFound)
			fmt.Fprint(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"NotFound","code":404}`)
			return
		}
		fmt.Fprintf(w, `{"kind":"CustomResourceDefinitionList","apiVersion":"apiextensions.k8s.io/v1","metadata":{},"items":[%s]}`, items)
	}))
	t.Cleanup(server.Close)
	return server
}

// contextsFile writes a kubeconfig: the cluster of good has nothing to find, that of bad has a definition
// that is not established, and that of down does not answer. The name of one context has a comma.
func contextsFile(t *testing.T) string {
	t.Helper()
	const definition = `{"metadata":{"name":"a.example.com"},"spec":{"group":"example.com","names":{"plural":"a","kind":"A"},
		"versions":[{"name":"v1","served":true,"storage":true,"schema":{"openAPIV3Schema":{"type":"object"}}}]},
		"status":{"storedVersions":["v1"],"conditions":[{"type":"Established","status":"False","reason":"X","message":"y"}]}}`
	servers := map[string]string{"good": listing(t, "").URL, "bad": listing(t, definition).URL, "down": "http://127.0.0.1:1", "good,too": listing(t, "").URL}
	text := &strings.Builder{}
	fmt.Fprintln(text, "apiVersion: v1\nkind: Config\ncurrent-context: good\nclusters:")
	for name, url := range servers {
		fmt.Fprintf(text, "- {name: %q, cluster: {server: %q}}\n", name, url)
	}
	fmt.Fprintln(text, "contexts:")
	for name := range servers {
		fmt.Fprintf(text, "- {name: %q, context: {cluster: %q}}\n", name, name)
	}
	return write(t, "kubeconfig", text.String())
}

// TestContexts audits several clusters. One that does not answer hides no other, and the worst result
// is the exit code.
func TestContexts(t *testing.T) {
	file := contextsFile(t)
	for contexts, code := range map[string]int{"good": 0, "bad": 1, "down": 2, "good,bad": 1, "bad,down,good": 2, "down,bad": 2, "good,too": 0, "good,nowhere": 2} {
		stdout, stderr, err := run("audit", "--kubeconfig", file, "--context", contexts, "-o=json")
		if ExitCode(err) != code {
			t.Errorf("--context %s: exit code %d, want %d; stderr %q", contexts, ExitCode(err), code, stderr)
		}
		if contexts != "bad,down,good" {
			continue
		}
		var report struct {
			Format   int
			Contexts []inContext[audit.Report]
		}
		expect.NoError(t, json.Unmarshal([]byte(stdout), &report))
		var got []string
		for _, each := range report.Contexts {
			found := -1
			if each.Report != nil {
				found = len(each.Report.Findings)
			}
			got = append(got, fmt.Sprint(each.Context, " ", found, " ", strings.Contains(each.Error, "connection refused")))
		}
		if diff := cmp.Diff([]string{"bad 1 false", "down -1 true", "good 0 false"}, got); diff != "" || report.Format != 1 {
			t.Errorf("contexts (-want +got):\n%s", diff)
		}
		for _, want := range []string{"context bad: problems found", "context down: read ConversionPolicies"} {
			if !strings.Contains(stderr, want) {
				t.Errorf("stderr lacks %q: %s", want, stderr)
			}
		}
	}

	stdout, _, _ := run("audit", "--kubeconfig", file, "--context=bad,down,good")
	bad, after, _ := strings.Cut(stdout, "# Context down\n\nError: ")
	if !strings.HasPrefix(bad, "# Context bad\n\n") || !strings.Contains(bad, "NotEstablished") || !strings.Contains(after, "# Context good\n\n") {
		t.Errorf("as text: %s", stdout)
	}
	stdout, _, _ = run("audit", "--kubeconfig", file, "--context=bad,down,good", "-o=sarif")
	got := sarifOf(t, stdout)
	slices.Sort(got)
	if diff := cmp.Diff([]string{"ContextFailed error nowhere", "NotEstablished error nowhere"}, got); diff != "" {
		t.Errorf("SARIF (-want +got):\n%s", diff)
	}
	for _, want := range []string{`"bad: a.example.com`, `"down: read ConversionPolicies`} {
		if !strings.Contains(stdout, want) {
			t.Errorf("SARIF lacks %s:\n%s", want, stdout)
		}
	}
}

// TestContextsCompleted completes the last of several contexts.
func TestContextsCompleted(t *testing.T) {
	file := contextsFile(t)
	for typed, want := range map[string]string{"": "bad\ndown\ngood\ngood,too\n", "good,d": "good,down\n", "good,bad,d": "good,bad,down\n"} {
		stdout, _, err := run("__complete", "audit", "--kubeconfig", file, "--context", typed)
		expect.NoError(t, err)
		if got, _, _ := strings.Cut(stdout, ":4\n"); got != want && !strings.Contains(got, want) {
			t.Errorf("after %q: %q, want %q", typed, got, want)
		}
	}
}

// TestFoundByDependents lists dependents, and what could not be read, for pipelines.
func TestFoundByDependents(t *testing.T) {
	report := &dependents.Report{CRD: "a.example.com", More: 2, NotChecked: []dependents.NotChecked{{What: "secrets", Why: "not for you"}}}
	for _, kind := range dependents.Kinds {
		report.Dependents = append(report.Dependents, dependents.Dependent{Dependency: kind.Dependency, Impact: dependents.Breaks, Version: "v1", Object: dependents.Object{Kind: "A", Name: "b"}})
	}
	report.Dependents[0].Impact = dependents.Harmless
	report.Repairs = []dependents.Repair{{Object: dependents.Object{Kind: "A", Name: "b"}, Field: ".f"}, {Object: dependents.Object{Kind: "A", Name: "c"}, Field: ".f", Failure: "conflict"}}
	found := foundByDependents(report)
	known := map[string]bool{}
	for _, rule := range found.Rules {
		known[rule.ID] = rule.Description != ""
	}
	levels := map[findings.Level]int{}
	for _, finding := range found.Findings {
		if levels[finding.Level]++; !known[finding.Rule] || !strings.HasPrefix(finding.Message, "a.example.com: ") {
			t.Errorf("finding %+v", finding)
		}
	}
	if want := map[findings.Level]int{findings.Error: len(dependents.Kinds) - 1 + 2, findings.Warning: 1, findings.Note: 1}; !cmp.Equal(want, levels) {
		t.Errorf("levels (-want +got):\n%s", cmp.Diff(want, levels))
	}
}
