// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package rewrite

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/conversion-operator/conversion-operator/internal/cli/findings"
	"github.com/conversion-operator/conversion-operator/internal/operator/terminal"
)

// Format is raised when a reader of an older Report would misread it. New fields do not raise it.
const Format = 1

// Report is what became of files. Its JSON form is stable.
type Report struct {
	// Format is the constant Format.
	Format int    `json:"format"`
	Policy string `json:"policy"`
	To     string `json:"to"`
	// Read counts files. Files are those with objects of the kind, and those with problems.
	Read  int    `json:"read"`
	Files []File `json:"files"`
	// Written is false if the command only showed what it would change.
	Written bool `json:"written"`
}

// File is what became of a file.
type File struct {
	Path    string   `json:"path"`
	Objects []Object `json:"objects,omitempty"`
	// Problems of the file as a whole.
	Problems []Problem `json:"problems,omitempty"`
}

// Add adds the result of a file. Files without objects and problems are only counted.
func (r *Report) Add(path string, result *Result) {
	r.Read++
	if len(result.Objects)+len(result.Problems) > 0 {
		r.Files = append(r.Files, File{path, result.Objects, result.Problems})
	}
}

// Count returns the number of objects in a state.
func (r *Report) Count(state State) (n int) {
	for _, file := range r.Files {
		n += file.count(state)
	}
	return n
}

func (f *File) count(state State) (n int) {
	for _, object := range f.Objects {
		if object.State == state {
			n++
		}
	}
	return n
}

// Complete reports whether nothing is left at another version.
func (r *Report) Complete() bool {
	for _, file := range r.Files {
		if len(file.Problems) > 0 {
			return false
		}
	}
	return r.Count(Left) == 0
}

// WriteText writes a line for each file and each problem, and a summary.
func (r *Report) WriteText(w io.Writer) error {
	var out strings.Builder
	done := "rewritten"
	if !r.Written {
		done = "to rewrite"
	}
	files := 0
	for _, file := range r.Files {
		if changed := file.count(Rewritten); changed > 0 {
			files++
			fmt.Fprintf(&out, "%s: %s %s\n", file.Path, terminal.Count(changed, "object"), done)
		}
		for _, found := range file.findings() {
			fmt.Fprintf(&out, "%s:%d: %s\n", found.Path, found.Line, found.Message)
		}
	}
	fmt.Fprintf(&out, "%s of %s in %s of %d: %s; %d already at %s, %d left\n", terminal.Count(r.Count(Rewritten), "object"), r.Policy,
		terminal.Count(files, "file"), r.Read, done, r.Count(Current), r.To, r.Count(Left))
	_, err := io.WriteString(w, out.String())
	return err
}

// The rules for pipelines.
const (
	ruleLeft = "ManifestLeft"
	ruleOld  = "ManifestOld"
	ruleNote = "ValueDiffers"
)

// Found lists which manifests stay, and with Written false also which can be rewritten.
func (r *Report) Found() *findings.Report {
	report := &findings.Report{Command: "rewrite", Subject: r.Policy, Rules: []findings.Rule{
		{ID: ruleLeft, Description: "A manifest cannot be rewritten at the new version without a decision"},
		{ID: ruleOld, Description: "A manifest is at an old version"},
		{ID: ruleNote, Description: "The new version writes a value in another way"},
	}}
	for _, file := range r.Files {
		for _, object := range file.Objects {
			if object.State == Rewritten && !r.Written {
				report.Findings = append(report.Findings, findings.Finding{
					Rule: ruleOld, Level: findings.Error, Path: file.Path, Line: object.Line,
					Message: fmt.Sprintf("%s is at %s: conversion-operator rewrite can write it at %s", object.Name, object.From, r.To),
				})
			}
		}
		report.Findings = append(report.Findings, file.findings()...)
	}
	return report
}

// findings returns the problems and notes of a file.
func (f *File) findings() []findings.Finding {
	var found []findings.Finding
	add := func(rule string, level findings.Level, problem Problem, prefix string) {
		message := prefix + problem.Message
		if problem.Field != "" {
			message = prefix + problem.Field + ": " + problem.Message
		}
		found = append(found, findings.Finding{Rule: rule, Level: level, Message: message, Path: f.Path, Line: problem.Line})
	}
	for _, problem := range f.Problems {
		add(ruleLeft, findings.Error, problem, "")
	}
	for _, object := range f.Objects {
		for _, problem := range object.Problems {
			add(ruleLeft, findings.Error, problem, fmt.Sprintf("%s stays at %s: ", object.Name, object.From))
		}
		for _, note := range object.Notes {
			if object.State == Rewritten {
				add(ruleNote, findings.Note, note, object.Name+": ")
			}
		}
	}
	return found
}

// State of an object after a rewrite.
type State string

// The states.
const (
	// Rewritten objects are at the new version.
	Rewritten State = "Rewritten"
	// Current objects were at the new version before.
	Current State = "Current"
	// Left objects keep their old version, for the reason that their problems give.
	Left State = "Left"
)

// Result is what became of a text.
type Result struct {
	// Text is the new text. It is the original if no object was rewritten.
	Text []byte
	// Objects of the kind, in their order.
	Objects []Object
	// Problems of the text as a whole, which then has no objects.
	Problems []Problem
}

// Changed reports whether the text differs from the original.
func (r *Result) Changed() bool {
	return slices.ContainsFunc(r.Objects, func(o Object) bool { return o.State == Rewritten })
}

// Complete reports whether nothing stays at another version.
func (r *Result) Complete() bool {
	return len(r.Problems) == 0 && !slices.ContainsFunc(r.Objects, func(o Object) bool { return o.State == Left })
}

// Object is what became of an object.
type Object struct {
	// Line is that of the object's first field, from 1.
	Line  int    `json:"line"`
	Name  string `json:"name,omitempty"`
	From  string `json:"from"`
	State State  `json:"state"`
	// Problems are the reasons why the object was left.
	Problems []Problem `json:"problems,omitempty"`
	// Notes are about values that a rule drops, or that the new version writes in another way.
	Notes []Problem `json:"notes,omitempty"`
}

// Problem is something that users must change by hand.
type Problem struct {
	Line    int    `json:"line"`
	Field   string `json:"field,omitempty"`
	Message string `json:"message"`
}

func (o *Object) leave(line int, field, message string) {
	o.Problems = append(o.Problems, Problem{line, field, message})
}
