// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package report

import (
	"bytes"
	"crypto/sha256"
	"embed"
	"encoding/base64"
	"html/template"
	"io"
	"slices"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
	"github.com/conversion-operator/conversion-operator/internal/engine/conversion/compile"
	"github.com/conversion-operator/conversion-operator/internal/operator/verify"
)

// Input is the input of a report.
type Input struct {
	Policy *v1alpha1.ConversionPolicy
	CRD    *apiextensionsv1.CustomResourceDefinition
	// Tried is the result of verify.
	Tried *verify.Report
	// From describes the source of policy and CustomResourceDefinition.
	From string
	// Tool is the version of the program.
	Tool string
	// Made is the time of creation, on a line of its own; zero leaves it out.
	Made time.Time
	// HideValues leaves out the values of objects, and messages that may contain values.
	HideValues bool
}

//go:embed templates
var files embed.FS

//go:embed style.css
var style string

// contentPolicy returns what a browser may load: only the style sheet inside the file.
var contentPolicy = func() string {
	sum := sha256.Sum256([]byte(style))
	return "default-src 'none'; img-src data:; style-src 'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'"
}()

var pages = template.Must(template.New("").Funcs(template.FuncMap{
	"style":         func() template.CSS { return template.CSS(style) }, //nolint:gosec // it is our own file, and its hash is in the report
	"contentPolicy": func() string { return contentPolicy },
	"path":          breakable,
	"prose":         prose,
	"number":        number[int],
	"number64":      number[int64],
	"count":         count,
	"moment":        moment,
}).ParseFS(files, "templates/*.html"))

// Write writes the whole report, or nothing.
func Write(w io.Writer, in Input) error {
	var out bytes.Buffer
	if err := pages.ExecuteTemplate(&out, "page.html", newPage(in)); err != nil {
		return err
	}
	_, err := out.WriteTo(w)
	return err
}

// Style is the style sheet of reports, for pages that show parts of them.
func Style() string { return style }

// RuleID returns the ID of the HTML element of a rule, by its spoke and its number in the spoke, from 1. Parts link
// to it.
func RuleID(spoke string, number int) string { return (&rule{Spoke: spoke, number: number}).ID() }

// WriteFields writes how the fields of a spoke and the hub correspond, as a part of a page: the drawing and the tables
// of a report.
func WriteFields(w io.Writer, policy *v1alpha1.ConversionPolicy, crd *apiextensionsv1.CustomResourceDefinition, result compile.Result, spoke string) error {
	p := &page{Rules: rulesOf(policy)}
	return pages.ExecuteTemplate(w, "mapping", newMapping(spoke, result.Ruleset.Hub, result.Leaves, p.rulesFor(spoke), typesOf(crd)))
}

// WriteTried writes the results for objects, as a part of a page.
func WriteTried(w io.Writer, found *verify.Report) error {
	return pages.ExecuteTemplate(w, "tried", &page{Tried: triedOf(found, false)})
}

// tried is the result of tested objects.
type tried struct {
	*verify.Report
	Errors, Discarded, Carried, Notes []finding
}

// finding is a finding of verify, as text.
type finding struct {
	verify.Finding
	Summary, Example string
}

func triedOf(found *verify.Report, hideValues bool) *tried {
	t := &tried{Report: found}
	for _, f := range found.Findings {
		if hideValues {
			f.Example.Before, f.Example.After, f.Example.Edit, f.Example.Message = nil, nil, "", ""
		}
		entry := finding{Finding: f, Summary: f.Summary(), Example: f.Example.Object}
		if !hideValues {
			entry.Example = f.ExampleText()
		}
		switch {
		case f.Severity == verify.SeverityError:
			t.Errors = append(t.Errors, entry)
		case f.Kind.IsDiscard():
			t.Discarded = append(t.Discarded, entry)
		case f.Severity == verify.SeverityWarning:
			t.Carried = append(t.Carried, entry)
		default:
			t.Notes = append(t.Notes, entry)
		}
	}
	return t
}

// Bad reports whether a direction lost something, or has objects that cannot be converted.
func (t *tried) Bad(d verify.Direction) bool { return d.Lost+d.Failed+d.Invalid > 0 }

// MostPreserved is the size of the largest annotation, in bytes.
func (t *tried) MostPreserved() int {
	if len(t.Directions) == 0 {
		return 0
	}
	return slices.MaxFunc(t.Directions, func(a, b verify.Direction) int { return a.MaxPreservedBytes - b.MaxPreservedBytes }).MaxPreservedBytes
}
