// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cmd

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/conversion-operator/conversion-operator/internal/audit"
)

// lossy is a definition that loses a field, and has a deprecated version.
const lossy = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: widgets.example.com}
spec:
  group: example.com
  scope: Cluster
  names: {plural: widgets, kind: Widget}
  versions:
  - {name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object}}}
  - {name: v1beta1, served: true, storage: false, deprecated: true, schema: {openAPIV3Schema: {type: object, properties: {note: {type: string}}}}}
`

func TestAuditExitCodes(t *testing.T) {
	bad, good := write(t, "bad.yaml", lossy), sampleFile("1-crd-v1beta1.yaml")
	old := write(t, "old.yaml", strings.Replace(lossy, "k8s.io/v1", "k8s.io/v1beta1", 1))
	const notWell = "1 definition: 1 error, 0 warnings, 0 notes; 1 less severe not shown: --severity=note\nError: problems found; see the report\n"
	for name, test := range map[string]struct {
		args   []string
		code   int
		stderr string
	}{
		"all is well":       {[]string{"-f", good}, 0, "1 definition: 0 errors, 0 warnings, 0 notes\n"},
		"problems found":    {[]string{"-f", bad}, 1, notWell},
		"two files":         {[]string{"-f", good, "-f", bad}, 1, strings.Replace(notWell, "1 definition", "2 definitions", 1)},
		"every note":        {[]string{"-f", bad, "--severity", "NOTE"}, 1, "1 definition: 1 error, 0 warnings, 1 note\nError: problems found; see the report\n"},
		"no definition":     {[]string{"-f", sampleFile("2-policy.yaml")}, 2, "Error: " + sampleFile("2-policy.yaml") + ": no CustomResourceDefinition found\n"},
		"an old definition": {[]string{"-f", old}, 2, "Error: " + old + ", document 1 (widgets.example.com): apiVersion is apiextensions.k8s.io/v1beta1, only apiextensions.k8s.io/v1 is read: write it in that version\n"},
		"a missing file":    {[]string{"-f", "nowhere"}, 2, "Error: stat nowhere: no such file or directory\n"},
		"a wrong form":      {[]string{"-o", "xml"}, 2, "Error: --output must be table, wide, json, yaml, sarif or junit, is \"xml\"\n"},
		"a wrong severity":  {[]string{"--severity", "bad"}, 2, "Error: --severity must be error, warning or note, is \"bad\"\n"},
		"no severity":       {[]string{"--severity", ""}, 2, "Error: --severity must be error, warning or note, is \"\"\n"},
		"none at once":      {[]string{"--at-once", "0"}, 2, "Error: --at-once must be at least 1, is 0\n"},
		"a negative time":   {[]string{"--expires-within", "-1h"}, 2, "Error: --expires-within must not be negative, is -1h0m0s\n"},
		"files and upgrade": {[]string{"-f", good, "--upgrade", bad}, 2, "Error: -f and --upgrade exclude each other: --upgrade compares files with the cluster\n"},
		"files and names":   {[]string{"-f", good, "a.example.com"}, 2, "Error: name definitions, or pass files: with files, the command examines the definitions in them\n"},
		"a kubeconfig":      {[]string{"--kubeconfig=nowhere"}, 2, "Error: find the API server: stat nowhere: no such file or directory\n"},
		"no server":         {[]string{"--server=http://127.0.0.1:1"}, 2, "Error: read ConversionPolicies: Get \"http://127.0.0.1:1/apis/conversion-operator.io/v1alpha1/conversionpolicies\": dial tcp 127.0.0.1:1: connect: connection refused\n"},
	} {
		t.Run(name, func(t *testing.T) {
			_, stderr, err := run(append([]string{"audit"}, test.args...)...)
			if code := ExitCode(err); code != test.code || stderr != test.stderr {
				t.Errorf("exit code is %d, want %d; stderr is %q, want %q", code, test.code, stderr, test.stderr)
			}
		})
	}
}

func TestAuditForms(t *testing.T) {
	file := write(t, "bad.yaml", lossy)
	for form, read := range map[string]func([]byte, any) error{
		"json": json.Unmarshal, "yaml": func(text []byte, into any) error { return yaml.UnmarshalStrict(text, into) },
	} {
		stdout, stderr, err := run("audit", "-f", file, "-o", form)
		report := audit.Report{}
		if err := read([]byte(stdout), &report); err != nil {
			t.Fatalf("%v in %s", err, stdout)
		}
		if ExitCode(err) != 1 || len(report.Findings) != 1 || report.Findings[0].ID != audit.NoneLosesFields || report.Format != audit.ReportFormat || report.Milder != 1 {
			t.Errorf("%s: %v; report is %+v", form, err, report)
		}
		if want := "Error: problems found; see the report\n"; stderr != want {
			t.Errorf("%s: stderr is %q, want %q", form, stderr, want)
		}
	}
	table, _, _ := run("audit", "-f", file)
	wide, _, _ := run("audit", "-f", file, "-o", "wide")
	if strings.Contains(table, "CURE") || !strings.Contains(wide, "CURE") || strings.Contains(table+wide, "\x1b") {
		t.Errorf("table is\n%s\nwide is\n%s", table, wide)
	}
}

// TestAuditUpgrade compares a manifest with the definition of an API server.
func TestAuditUpgrade(t *testing.T) {
	text, err := yaml.YAMLToJSON([]byte(strings.Replace(lossy, "properties: {note: {type: string}}", "", 1) + "status: {storedVersions: [v1beta1, v1]}\n"))
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		if r.URL.Path == "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/widgets.example.com" {
			_, _ = w.Write(text)
			return
		}
		w.WriteHeader(http.StatusNotFound)
		_, _ = w.Write([]byte(`{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"NotFound","code":404}`))
	}))
	t.Cleanup(server.Close)
	next, _, _ := strings.Cut(lossy, "  - {name: v1beta1")
	for name, test := range map[string]struct {
		manifest string
		code     int
		want     string
	}{
		"drops a stored version": {next, 1, "UpgradeDropsStoredVersion"},
		"keeps it":               {lossy, 0, ""},
		"is of another":          {strings.ReplaceAll(next, "widgets", "gadgets"), 0, ""},
	} {
		t.Run(name, func(t *testing.T) {
			stdout, stderr, err := run("audit", "--server", server.URL, "--severity=error", "--upgrade", write(t, "next.yaml", test.manifest))
			if ExitCode(err) != test.code || !strings.Contains(stdout, test.want) {
				t.Errorf("%v, %s\n%s", err, stdout, stderr)
			}
		})
	}
}

// TestAuditStdin reads definitions from stdin.
func TestAuditStdin(t *testing.T) {
	stdin, err := os.Open(write(t, "bad.yaml", lossy))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = stdin.Close() })
	root := NewRootCommand()
	var out strings.Builder
	root.SetIn(stdin)
	root.SetOut(&out)
	root.SetErr(&out)
	root.SetArgs([]string{"audit", "-f", "-"})
	if err := root.Execute(); ExitCode(err) != 1 || !strings.Contains(out.String(), "NoneLosesFields") {
		t.Errorf("%v\n%s", err, out.String())
	}
}
