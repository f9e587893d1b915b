// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package monitoring

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"
)

const rulesFile = "../../../config/components/prometheus/rules.yaml"

// rule is a recording rule or an alert in the format of Prometheus.
type rule struct {
	Record      string            `json:"record"`
	Alert       string            `json:"alert"`
	Expr        string            `json:"expr"`
	For         string            `json:"for"`
	Labels      map[string]string `json:"labels"`
	Annotations map[string]string `json:"annotations"`
}

func (r rule) name() string { return r.Record + r.Alert }

// readRules returns the rules of all groups of the PrometheusRule. It fails for unknown fields.
func readRules(t *testing.T) (all []rule) {
	t.Helper()
	var object struct {
		APIVersion string         `json:"apiVersion"`
		Kind       string         `json:"kind"`
		Metadata   map[string]any `json:"metadata"`
		Spec       struct {
			Groups []struct {
				Name  string `json:"name"`
				Rules []rule `json:"rules"`
			} `json:"groups"`
		} `json:"spec"`
	}
	text, err := os.ReadFile(rulesFile)
	must(t, err)
	must(t, yaml.UnmarshalStrict(text, &object))
	if object.Kind != "PrometheusRule" || object.APIVersion != "monitoring.coreos.com/v1" || len(object.Spec.Groups) == 0 {
		t.Fatalf("%s has no groups of a PrometheusRule", rulesFile)
	}
	for _, group := range object.Spec.Groups {
		all = append(all, group.Rules...)
	}
	return all
}

func alerts(t *testing.T) []rule {
	t.Helper()
	return slices.DeleteFunc(readRules(t), func(rule rule) bool { return rule.Alert == "" })
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// rulesTest has the relevant fields of a file for `promtool test rules`.
type rulesTest struct {
	Tests []struct {
		AlertTests []struct {
			AlertName string `json:"alertname"`
			Alerts    []any  `json:"exp_alerts"`
		} `json:"alert_rule_test"`
	} `json:"tests"`
}

// TestEveryAlertIsTested: testdata has a test in which each alert fires, and one in which it does
// not.
func TestEveryAlertIsTested(t *testing.T) {
	files, err := filepath.Glob("testdata/*_test.yaml")
	must(t, err)
	fires, stays := map[string]bool{}, map[string]bool{}
	for _, file := range files {
		text, err := os.ReadFile(file)
		must(t, err)
		var read rulesTest
		must(t, yaml.Unmarshal(text, &read))
		for _, play := range read.Tests {
			for _, test := range play.AlertTests {
				fires[test.AlertName] = fires[test.AlertName] || len(test.Alerts) > 0
				stays[test.AlertName] = stays[test.AlertName] || len(test.Alerts) == 0
			}
		}
	}
	for _, alert := range alerts(t) {
		if !fires[alert.Alert] {
			t.Errorf("no test has %s fire", alert.Alert)
		}
		if !stays[alert.Alert] {
			t.Errorf("no test has %s not fire", alert.Alert)
		}
	}
}

const (
	runbooksPage = "../../../api/docs/runbooks.md"
	runbooksURL  = "https://github.com/conversion-operator/conversion-operator/blob/main/api/docs/runbooks.md#"
)

var section = regexp.MustCompile(`(?m)^## (\w+)\n`)

// readRunbooks returns the sections of the page by heading.
func readRunbooks(t *testing.T) map[string]string {
	t.Helper()
	page, err := os.ReadFile(runbooksPage)
	must(t, err)
	found := section.FindAllStringSubmatchIndex(string(page), -1)
	all := map[string]string{}
	for i, at := range found {
		end := len(page)
		if i+1 < len(found) {
			end = found[i+1][0]
		}
		all[string(page[at[2]:at[3]])] = string(page[at[1]:end])
	}
	return all
}

// TestRunbooks: every alert has a section, and every section an alert.
func TestRunbooks(t *testing.T) {
	runbooks := readRunbooks(t)
	for _, alert := range alerts(t) {
		text, found := runbooks[alert.Alert]
		if !found {
			t.Errorf("%s has no section for %s", runbooksPage, alert.Alert)
			continue
		}
		delete(runbooks, alert.Alert)
		for _, part := range []string{"**Meaning.** ", "**Impact.** ", "**Diagnosis.** ", "**Mitigation.** ", "\n```sh play=", "\nkubectl "} {
			if !strings.Contains(text, part) {
				t.Errorf("the runbook of %s lacks %q", alert.Alert, part)
			}
		}
	}
	for name := range runbooks {
		t.Errorf("there is a runbook of %s, and no such alert", name)
	}
}

// TestAlertsSayWhatIsNeeded: an alert has annotations for the person on call, and a link to its
// runbook.
func TestAlertsSayWhatIsNeeded(t *testing.T) {
	for _, alert := range alerts(t) {
		if severity := alert.Labels["severity"]; !slices.Contains([]string{"critical", "warning", "info"}, severity) {
			t.Errorf("%s: severity is %q", alert.Alert, severity)
		}
		if diff := cmp.Diff(runbooksURL+strings.ToLower(alert.Alert), alert.Annotations["runbook_url"]); diff != "" {
			t.Errorf("%s: runbook_url (-want +got):\n%s", alert.Alert, diff)
		}
		for _, annotation := range []string{"summary", "description"} {
			if text := alert.Annotations[annotation]; !strings.HasSuffix(text, ".") {
				t.Errorf("%s: %s is %q: say it in a sentence", alert.Alert, annotation, text)
			}
		}
	}
}
