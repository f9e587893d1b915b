// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package monitoring

import (
	"encoding/json"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const dashboardFile = "../../../config/components/grafana/dashboard.json"

// dashboard has the checked fields of Grafana's model.
type dashboard struct {
	UID        string  `json:"uid"`
	Title      string  `json:"title"`
	Panels     []panel `json:"panels"`
	Templating struct {
		List []variable `json:"list"`
	} `json:"templating"`
}

type variable struct {
	Name       string     `json:"name"`
	Type       string     `json:"type"`
	Datasource datasource `json:"datasource"`
	Definition string     `json:"definition"`
}

type datasource struct {
	UID string `json:"uid"`
}

type panel struct {
	ID          int        `json:"id"`
	Type        string     `json:"type"`
	Title       string     `json:"title"`
	Description string     `json:"description"`
	Datasource  datasource `json:"datasource"`
	FieldConfig struct {
		Defaults struct {
			Unit string `json:"unit"`
		} `json:"defaults"`
	} `json:"fieldConfig"`
	Targets []target `json:"targets"`
}

type target struct {
	RefID      string     `json:"refId"`
	Datasource datasource `json:"datasource"`
	Expr       string     `json:"expr"`
	Legend     string     `json:"legendFormat"`
}

func readDashboard(t *testing.T) dashboard {
	t.Helper()
	text, err := os.ReadFile(dashboardFile)
	must(t, err)
	var read dashboard
	must(t, json.Unmarshal(text, &read))
	return read
}

// chosen is the data source that the user selects.
const chosen = "${datasource}"

func TestDashboardVariables(t *testing.T) {
	want := []variable{
		{Name: "datasource", Type: "datasource"},
		{Name: "policy", Type: "query", Datasource: datasource{UID: chosen}, Definition: "label_values(conversion_operator_policy_info, policy)"},
	}
	if diff := cmp.Diff(want, readDashboard(t).Templating.List); diff != "" {
		t.Errorf("variables (-want +got):\n%s", diff)
	}
	if !slices.Contains(readExported(t)["conversion_operator_policy_info"], "policy") {
		t.Error("conversion_operator_policy_info has no label policy, by which the variable is filled")
	}
}

// TestDashboardPanels: each panel has a unique id, a title, a description and a unit, and asks the chosen
// data source.
func TestDashboardPanels(t *testing.T) {
	ids := map[int]string{0: "a panel without an id"}
	for _, panel := range readDashboard(t).Panels {
		if other, found := ids[panel.ID]; found {
			t.Errorf("%s has the id %d, as %q has", panel.Title, panel.ID, other)
		}
		ids[panel.ID] = panel.Title
		if panel.Type == "row" {
			continue
		}
		if panel.Title == "" || !strings.HasSuffix(panel.Description, ".") || panel.FieldConfig.Defaults.Unit == "" {
			t.Errorf("panel %d: title %q, description %q and unit %q must all be there", panel.ID, panel.Title, panel.Description, panel.FieldConfig.Defaults.Unit)
		}
		if panel.Datasource.UID != chosen || len(panel.Targets) == 0 {
			t.Errorf("%s has %d queries of %q", panel.Title, len(panel.Targets), panel.Datasource.UID)
		}
	}
}

var (
	legendLabel = regexp.MustCompile(`\{\{(\w+)\}\}`)
	// grafanas replaces variables that Grafana sets to a duration.
	grafanas = strings.NewReplacer("$__rate_interval", "5m", "$__interval", "1m", "$__range", "1h")
)

// TestDashboardQueries: each query uses existing metrics and labels, and selects the chosen
// policies if its metrics distinguish them.
func TestDashboardQueries(t *testing.T) {
	all := readExported(t)
	for _, panel := range readDashboard(t).Panels {
		for _, target := range panel.Targets {
			where := panel.Title + " " + target.RefID
			all.check(t, where, grafanas.Replace(target.Expr))
			if target.Datasource.UID != chosen {
				t.Errorf("%s asks %q", where, target.Datasource.UID)
			}
			for _, selector := range ofPolicies.FindAllString(target.Expr, -1) {
				if !strings.Contains(selector, `=~"$policy"`) && !strings.Contains(target.Expr, ":"+selector) {
					t.Errorf("%s: %s} is of all policies", where, selector)
				}
			}
			for _, label := range legendLabel.FindAllStringSubmatch(target.Legend, -1) {
				if !regexp.MustCompile(`(\b|_)` + label[1] + `(\b|_)`).MatchString(target.Expr) {
					t.Errorf("%s: the legend has %s, which the query does not keep", where, label[1])
				}
			}
		}
	}
}

// ofPolicies matches metrics that exist per policy.
var ofPolicies = regexp.MustCompile(`\b(conversion_operator_(policy|webhook|migration)_|apiserver_crd_)\w+(\{[^}]*)?`)
