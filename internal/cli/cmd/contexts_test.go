// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cmd

import (
	"fmt"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/conversion-operator/conversion-operator/internal/cli/findings"
	"github.com/conversion-operator/conversion-operator/internal/operator/dependents"
	"github.com/conversion-operator/conversion-operator/internal/test/expect"
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

// listing is an API server with one definition or none.
func listing(t *testing.T, definition string) string {
	t.Helper()
	const path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
	return (&apiServer{T: t, objects: map[string]string{
		path:                          "{kind: CustomResourceDefinitionList, apiVersion: apiextensions.k8s.io/v1, metadata: {}, items: [" + definition + "]}",
		path + "/widgets.example.com": definition,
	}}).start()
}

// contextsFile writes a kubeconfig: the cluster of good has nothing to find, that of bad has a definition
// that is not established, and that of down does not answer. The name of one context has a comma.
func contextsFile(t *testing.T) string {
	t.Helper()
	const definition = `{"metadata":{"name":"a.example.com"},"spec":{"group":"example.com","names":{"plural":"a","kind":"A"},
		"versions":[{"name":"v1","served":true,"storage":true,"schema":{"openAPIV3Schema":{"type":"object"}}}]},
		"status":{"storedVersions":["v1"],"conditions":[{"type":"Established","status":"False","reason":"X","message":"y"}]}}`
	servers := map[string]string{"good": listing(t, ""), "bad": listing(t, definition), "down": "http://127.0.0.1:1", "good,too": listing(t, "")}
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

// TestServers runs commands with the contexts of contextsFile, and with API servers without policies, and with
// one that has no status.
func TestServers(t *testing.T) {
	widgets, err := yaml.YAMLToJSON([]byte(strings.Replace(lossy, "properties: {note: {type: string}}", "", 1) + "status: {storedVersions: [v1beta1, v1]}\n"))
	expect.NoError(t, err)
	runCommands(t, "testdata/commands/servers/servers.txt", map[string]string{
		"CONTEXTS": contextsFile(t), "EMPTY": serverOfPolicies(t, ""), "NEW": serverOfPolicies(t, policyWithoutStatus), "WIDGETS": listing(t, string(widgets)),
	})
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
	expect.Equal(t, "levels", map[findings.Level]int{findings.Error: len(dependents.Kinds) + 1, findings.Warning: 1, findings.Note: 1}, levels)
}
