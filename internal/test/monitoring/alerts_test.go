// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package monitoring

import (
	"cmp"
	"fmt"
	"path/filepath"
	"slices"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/promql/parser"
)

// rulesTest is a file in the format of promtool's unit tests of rules, as far as it
// is used here.
type rulesTest struct {
	RuleFiles          []string `json:"rule_files"`
	EvaluationInterval string   `json:"evaluation_interval"`
	Tests              []play   `json:"tests"`
}

type play struct {
	Name        string        `json:"name"`
	Interval    string        `json:"interval"`
	InputSeries []inputSeries `json:"input_series"`
	AlertTests  []alertTest   `json:"alert_rule_test"`
}

type inputSeries struct {
	Series string `json:"series"`
	Values string `json:"values"`
}

type alertTest struct {
	EvalTime  string   `json:"eval_time"`
	AlertName string   `json:"alertname"`
	Alerts    []firing `json:"exp_alerts"`
}

func readTests(t *testing.T) map[string]rulesTest {
	t.Helper()
	files, err := filepath.Glob("testdata/*_test.yaml")
	must(t, err)
	if len(files) == 0 {
		t.Fatal("there are no tests of rules in testdata")
	}
	all := map[string]rulesTest{}
	for _, file := range files {
		var read rulesTest
		readYAML(t, file, &read)
		all[filepath.Base(file)] = read
	}
	return all
}

func TestAlerts(t *testing.T) {
	groups := readRules(t)
	for file, tests := range readTests(t) {
		t.Run(file, func(t *testing.T) {
			for i, play := range tests.Tests {
				t.Run(fmt.Sprintf("%d %s", i, play.Name), func(t *testing.T) {
					play.check(t, newPrometheus(play.of(groups)), duration(t, tests.EvaluationInterval))
				})
			}
		})
	}
}

// of leaves out the alerts that are not looked at.
func (p play) of(groups []group) []group {
	var wanted []group
	for _, all := range groups {
		some := group{Name: all.Name}
		for _, rule := range all.Rules {
			if rule.Record != "" || slices.ContainsFunc(p.AlertTests, func(test alertTest) bool { return test.AlertName == rule.Alert }) {
				some.Rules = append(some.Rules, rule)
			}
		}
		wanted = append(wanted, some)
	}
	return wanted
}

// check lets time pass, tick by tick, and looks at the alerts at theirs.
func (p play) check(t *testing.T, on *prometheus, every time.Duration) {
	t.Helper()
	p.feed(t, on.memory)
	var end time.Duration
	for _, test := range p.AlertTests {
		end = max(end, duration(t, test.EvalTime))
	}
	for passed := time.Duration(0); passed <= end; passed += every {
		now := time.Unix(0, 0).Add(passed).UTC()
		on.tick(t, now)
		for _, test := range p.AlertTests {
			if duration(t, test.EvalTime) == passed {
				test.check(t, on.firing(t, test.AlertName, now))
			}
		}
	}
}

func (p play) feed(t *testing.T, into *memory) {
	t.Helper()
	for _, input := range p.InputSeries {
		of, values, err := parser.NewParser(parser.Options{}).ParseSeriesDesc(input.Series + " " + input.Values)
		must(t, err)
		at := time.Unix(0, 0).UTC()
		for _, value := range values {
			if !value.Omitted {
				into.add(of, at, value.Value)
			}
			at = at.Add(duration(t, p.Interval))
		}
	}
}

func (a alertTest) check(t *testing.T, got []firing) {
	t.Helper()
	want := slices.Clone(a.Alerts)
	for _, alerts := range [][]firing{want, got} {
		slices.SortFunc(alerts, func(a, b firing) int { return cmp.Compare(fmt.Sprint(a.Labels), fmt.Sprint(b.Labels)) })
	}
	if diff := gocmp.Diff(want, got, cmpopts.EquateEmpty()); diff != "" {
		t.Errorf("%s after %s (-want +got):\n%s", a.AlertName, a.EvalTime, diff)
	}
}

// TestEveryAlertIsTested: each fires somewhere in testdata, and somewhere does not.
func TestEveryAlertIsTested(t *testing.T) {
	fires, stays := map[string]bool{}, map[string]bool{}
	for _, tests := range readTests(t) {
		for _, play := range tests.Tests {
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

// duration reads what Prometheus writes: 15m, 1d.
func duration(t *testing.T, text string) time.Duration {
	t.Helper()
	if text == "" {
		return 0
	}
	read, err := model.ParseDuration(text)
	must(t, err)
	return time.Duration(read)
}
