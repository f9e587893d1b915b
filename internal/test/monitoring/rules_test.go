// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package monitoring

import (
	"os"
	"testing"

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

type group struct {
	Name  string `json:"name"`
	Rules []rule `json:"rules"`
}

// readRules returns the groups of the PrometheusRule. It fails for unknown fields.
func readRules(t *testing.T) []group {
	t.Helper()
	var object struct {
		APIVersion string         `json:"apiVersion"`
		Kind       string         `json:"kind"`
		Metadata   map[string]any `json:"metadata"`
		Spec       struct {
			Groups []group `json:"groups"`
		} `json:"spec"`
	}
	readYAML(t, rulesFile, &object)
	if object.Kind != "PrometheusRule" || object.APIVersion != "monitoring.coreos.com/v1" || len(object.Spec.Groups) == 0 {
		t.Fatalf("%s has no groups of a PrometheusRule", rulesFile)
	}
	return object.Spec.Groups
}

func alerts(t *testing.T) []rule {
	t.Helper()
	var all []rule
	for _, group := range readRules(t) {
		for _, rule := range group.Rules {
			if rule.Alert != "" {
				all = append(all, rule)
			}
		}
	}
	return all
}

func readYAML(t *testing.T, file string, into any) {
	t.Helper()
	text, err := os.ReadFile(file)
	must(t, err)
	must(t, yaml.UnmarshalStrict(text, into))
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
