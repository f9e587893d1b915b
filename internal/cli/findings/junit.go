// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package findings

import (
	"encoding/xml"
	"fmt"
	"io"
)

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
