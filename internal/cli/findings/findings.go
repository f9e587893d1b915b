// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package findings writes what a command found in formats that pipelines read: SARIF for code
// scanning, and JUnit for test reports. It is pure.
package findings

import (
	"encoding/json"
	"encoding/xml"
	"fmt"
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
	// Path is that of the file, relative to the root of the repository, or absolute. It is empty for
	// what is in no file.
	Path string
	// Line is counted from 1; 0 for the whole file.
	Line int
}

// Rule describes findings.
type Rule struct{ ID, Description string }

// Report is what a command found.
type Report struct {
	// Command is the name of the subcommand, and Version that of conversion-operator.
	Command, Version string
	// Subject is what was examined, such as the name of a policy.
	Subject  string
	Rules    []Rule
	Findings []Finding
}

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

// The elements of JUnit's XML that GitLab, Jenkins and GitHub actions read:
// https://github.com/testmoapp/junitxml.
type suites struct {
	XMLName xml.Name `xml:"testsuites"`
	Suites  []suite  `xml:"testsuite"`
}

type suite struct {
	Name     string `xml:"name,attr"`
	Tests    int    `xml:"tests,attr"`
	Failures int    `xml:"failures,attr"`
	Cases    []test `xml:"testcase"`
}

type test struct {
	ClassName string   `xml:"classname,attr"`
	Name      string   `xml:"name,attr"`
	File      string   `xml:"file,attr,omitempty"`
	Line      int      `xml:"line,attr,omitempty"`
	Failure   *failure `xml:"failure"`
	Output    string   `xml:"system-out,omitempty"`
}

type failure struct {
	Type    string `xml:"type,attr"`
	Message string `xml:"message,attr"`
	Text    string `xml:",chardata"`
}

// WriteJUnit writes a test for each rule, which passes if nothing was found, and one for each
// finding. Only errors fail.
func (r *Report) WriteJUnit(w io.Writer) error {
	one := suite{Name: "conversion-operator " + r.Command}
	found := map[string]bool{}
	for _, finding := range r.Findings {
		found[finding.Rule] = true
		place := finding.Path
		if finding.Line > 0 {
			place = fmt.Sprintf("%s:%d", place, finding.Line)
		}
		test := test{ClassName: r.Subject, Name: finding.Rule + ": " + finding.Message, File: finding.Path, Line: finding.Line}
		if finding.Level == Error {
			test.Failure = &failure{finding.Rule, finding.Message, place}
			one.Failures++
		} else {
			test.Output = string(finding.Level) + ": " + finding.Message
		}
		one.Cases = append(one.Cases, test)
	}
	for _, rule := range r.Rules {
		if !found[rule.ID] {
			one.Cases = append(one.Cases, test{ClassName: r.Subject, Name: rule.ID})
		}
	}
	one.Tests = len(one.Cases)
	if _, err := io.WriteString(w, xml.Header); err != nil {
		return err
	}
	encoder := xml.NewEncoder(w)
	encoder.Indent("", "  ")
	if err := encoder.Encode(suites{Suites: []suite{one}}); err != nil {
		return err
	}
	_, err := io.WriteString(w, "\n")
	return err
}
