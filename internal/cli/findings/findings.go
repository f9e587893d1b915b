// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package findings writes what a command found in formats that pipelines read: SARIF for code
// scanning, and JUnit for test reports. It is pure.
package findings

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
