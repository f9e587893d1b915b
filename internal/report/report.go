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
