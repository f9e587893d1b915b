// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cmd

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
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
