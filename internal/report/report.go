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
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
	"github.com/conversion-operator/conversion-operator/internal/verify"
)

// Input is what a report is made of.
type Input struct {
	Policy *v1alpha1.ConversionPolicy
	CRD    *apiextensionsv1.CustomResourceDefinition
	// Tried is what verify found out about the two.
	Tried *verify.Report
	// From says for people where policy and CustomResourceDefinition come from.
	From string
	// Tool is the version of the program.
	Tool string
	// Made is the time that the report tells of itself, on a line of its own; it
	// tells none where that is zero.
	Made time.Time
	// HideValues leaves out the values of objects, and messages that may have some.
	HideValues bool
}

//go:embed templates
var files embed.FS

//go:embed style.css
var style string

// contentPolicy is what a browser may load for the file: the style sheet that is in it.
var contentPolicy = func() string {
	sum := sha256.Sum256([]byte(style))
	return "default-src 'none'; img-src data:; style-src 'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'"
}()

var pages = template.Must(template.New("").Funcs(template.FuncMap{
	"style":         func() template.CSS { return template.CSS(style) }, //nolint:gosec // it is ours, and its hash is in the file
	"contentPolicy": func() string { return contentPolicy },
	"path":          breakable,
	"prose":         prose,
	"number":        number[int],
	"number64":      number[int64],
	"count":         count,
	"moment":        moment,
}).ParseFS(files, "templates/*.html"))

// Write writes the report, or nothing.
func Write(w io.Writer, in Input) error {
	var out bytes.Buffer
	if err := pages.ExecuteTemplate(&out, "page.html", newPage(in)); err != nil {
		return err
	}
	_, err := out.WriteTo(w)
	return err
}
