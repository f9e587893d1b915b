// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package report

import (
	"io"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
	"github.com/conversion-operator/conversion-operator/internal/conversion/compile"
	"github.com/conversion-operator/conversion-operator/internal/verify"
)

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
