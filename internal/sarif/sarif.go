// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package sarif writes findings in SARIF 2.1.0, the format of code scanning in GitHub, GitLab and
// editors: https://docs.oasis-open.org/sarif/sarif/v2.1.0/sarif-v2.1.0.html. It has the few
// properties that these read.
package sarif

import (
	"encoding/json"
	"io"
	"path/filepath"
)

// Level of a finding, section 3.27.10.
type Level string

// The levels.
const (
	Error   Level = "error"
	Warning Level = "warning"
	Note    Level = "note"
)

// Finding is a result in a file.
type Finding struct {
	// Rule is the identifier of what was found.
	Rule    string
	Level   Level
	Message string
	// Path is that of the file, relative to the root of the repository, or absolute.
	Path string
	// Line is counted from 1; 0 for the whole file.
	Line int
}

// Rule describes findings.
type Rule struct{ ID, Description string }

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
	Locations []location `json:"locations"`
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

// Write writes the findings of a version of conversion-operator.
func Write(w io.Writer, version string, rules []Rule, findings []Finding) error {
	one := run{Tool: tool{driver{Name: "conversion-operator", Version: version, Rules: []descriptor{}}}, Results: []result{}}
	for _, rule := range rules {
		one.Tool.Driver.Rules = append(one.Tool.Driver.Rules, descriptor{rule.ID, message{rule.Description}})
	}
	for _, finding := range findings {
		place := physicalLocation{ArtifactLocation: artifactLocation{filepath.ToSlash(filepath.Clean(finding.Path))}}
		if finding.Line > 0 {
			place.Region = &region{finding.Line}
		}
		one.Results = append(one.Results, result{finding.Rule, finding.Level, message{finding.Message}, []location{{place}}})
	}
	encoder := json.NewEncoder(w)
	encoder.SetIndent("", "  ")
	encoder.SetEscapeHTML(false)
	return encoder.Encode(log{"https://json.schemastore.org/sarif-2.1.0.json", "2.1.0", []run{one}})
}
