// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package monitoring

import (
	"os"
	"path/filepath"
	"testing"

	"sigs.k8s.io/yaml"
)

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
