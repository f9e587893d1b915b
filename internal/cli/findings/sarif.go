// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package findings

import (
	"encoding/json"
	"io"
	"path/filepath"
)

// The properties of SARIF 2.1.0 that code scanning in GitHub, GitLab and editors reads:
// https://docs.oasis-open.org/sarif/sarif/v2.1.0/sarif-v2.1.0.html.
type log struct {
	Schema  string `json:"$schema"`
	Version string `json:"version"`
	Runs    []run  `json:"runs"`
}

type run struct {
	Tool    tool     `json:"tool"`
	Results []result `json:"results"`
}

type tool struct {
	Driver driver `json:"driver"`
}

type driver struct {
	Name    string       `json:"name"`
	Version string       `json:"version"`
	Rules   []descriptor `json:"rules"`
}

type descriptor struct {
	ID               string  `json:"id"`
	ShortDescription message `json:"shortDescription"`
}

type message struct {
	Text string `json:"text"`
}

type result struct {
	RuleID    string     `json:"ruleId"`
	Level     Level      `json:"level"`
	Message   message    `json:"message"`
	Locations []location `json:"locations,omitempty"`
}

type location struct {
	PhysicalLocation physicalLocation `json:"physicalLocation"`
}

type physicalLocation struct {
	ArtifactLocation artifactLocation `json:"artifactLocation"`
	Region           *region          `json:"region,omitempty"`
}

type artifactLocation struct {
	URI string `json:"uri"`
}

type region struct {
	StartLine int `json:"startLine"`
}

// WriteSARIF writes findings in SARIF 2.1.0.
func (r *Report) WriteSARIF(w io.Writer) error {
	one := run{Tool: tool{driver{Name: "conversion-operator", Version: r.Version, Rules: []descriptor{}}}, Results: []result{}}
	for _, rule := range r.Rules {
		one.Tool.Driver.Rules = append(one.Tool.Driver.Rules, descriptor{rule.ID, message{rule.Description}})
	}
	for _, finding := range r.Findings {
		found := result{RuleID: finding.Rule, Level: finding.Level, Message: message{finding.Message}}
		if finding.Path != "" {
			place := physicalLocation{ArtifactLocation: artifactLocation{filepath.ToSlash(filepath.Clean(finding.Path))}}
			if finding.Line > 0 {
				place.Region = &region{finding.Line}
			}
			found.Locations = []location{{place}}
		}
		one.Results = append(one.Results, found)
	}
	encoder := json.NewEncoder(w)
	encoder.SetIndent("", "  ")
	encoder.SetEscapeHTML(false)
	return encoder.Encode(log{"https://json.schemastore.org/sarif-2.1.0.json", "2.1.0", []run{one}})
}
