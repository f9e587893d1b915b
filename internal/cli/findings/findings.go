// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package findings writes what a command found in formats that pipelines read: SARIF for code
// scanning, and JUnit for test reports. It is pure.
package findings

import (
	"cmp"
	"encoding/json"
	"encoding/xml"
	"fmt"
	"io"
	"net/url"
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
	Runs    [1]run `json:"runs"`
}

type run struct {
	Tool struct {
		Driver struct {
			Name    string       `json:"name"`
			Version string       `json:"version"`
			Rules   []descriptor `json:"rules"`
		} `json:"driver"`
	} `json:"tool"`
	Results []result `json:"results"`
}

type descriptor struct {
	ID               string  `json:"id"`
	ShortDescription message `json:"shortDescription"`
}

type message struct {
	Text string `json:"text"`
}

type result struct {
	RuleID    string      `json:"ruleId"`
	Level     Level       `json:"level"`
	Message   message     `json:"message"`
	Locations [1]location `json:"locations"`
}

type location struct {
	PhysicalLocation struct {
		ArtifactLocation struct {
			URI string `json:"uri"`
		} `json:"artifactLocation"`
		Region struct {
			StartLine int `json:"startLine"`
		} `json:"region"`
	} `json:"physicalLocation"`
}

// WriteSARIF writes findings in SARIF 2.1.0.
func (r *Report) WriteSARIF(w io.Writer) error {
	all := log{Schema: "https://json.schemastore.org/sarif-2.1.0.json", Version: "2.1.0", Runs: [1]run{{Results: []result{}}}}
	one := &all.Runs[0]
	driver := &one.Tool.Driver
	driver.Name, driver.Version, driver.Rules = "conversion-operator", r.Version, []descriptor{}
	for _, rule := range r.Rules {
		driver.Rules = append(driver.Rules, descriptor{rule.ID, message{rule.Description}})
	}
	for _, finding := range r.Findings {
		// GitHub refuses a log with a result that has no place, or a place without a line.
		place, file := location{}, url.URL{Path: filepath.ToSlash(filepath.Clean(cmp.Or(finding.Path, r.Subject)))}
		place.PhysicalLocation.ArtifactLocation.URI = file.String()
		place.PhysicalLocation.Region.StartLine = max(1, finding.Line)
		one.Results = append(one.Results, result{finding.Rule, finding.Level, message{finding.Message}, [1]location{place}})
	}
	encoder := json.NewEncoder(w)
	encoder.SetIndent("", "  ")
	encoder.SetEscapeHTML(false)
	return encoder.Encode(all)
}

// The elements of JUnit's XML that GitLab, Jenkins and GitHub actions read:
// https://github.com/testmoapp/junitxml.
type suites struct {
	XMLName xml.Name `xml:"testsuites"`
	Suite   struct {
		Name     string `xml:"name,attr"`
		Tests    int    `xml:"tests,attr"`
		Failures int    `xml:"failures,attr"`
		Cases    []test `xml:"testcase"`
	} `xml:"testsuite"`
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
	all := suites{}
	one, found := &all.Suite, map[string]bool{}
	one.Name = "conversion-operator " + r.Command
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
	if err := encoder.Encode(all); err != nil {
		return err
	}
	_, err := io.WriteString(w, "\n")
	return err
}
