// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package report

import (
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
	"github.com/conversion-operator/conversion-operator/internal/engine/conversion/compile"
	"github.com/conversion-operator/conversion-operator/internal/operator/verify"
)

// page is the input of the templates.
type page struct {
	Name, Kind string
	// Tone is good, warning or bad, and Title is the reason.
	Tone, Title string
	Figures     []figure
	Facts       []fact
	// Converter describes the converter.
	Converter string
	From      string
	Tool      string
	Made      *metav1.Time

	Versions []version
	Graph    []edge
	Hub      *version

	Mappings []*mapping
	Rules    []spokeRules
	Errors   []verify.RuleError
	Warnings []string
	Tried    *tried
	Status   *status
}

// figure is a number at the top of the page.
type figure struct {
	Number, Label string
}

// fact is a row about the sources of the report.
type fact struct {
	Name, Value string
	Code        bool
}

func newPage(in Input) *page {
	result, errs := verify.Compile(in.Policy, in.CRD)
	p := &page{
		Name: in.Policy.Name, Kind: in.CRD.Spec.Names.Kind, Converter: converterOf(&in.Policy.Spec.Converter), From: in.From, Tool: in.Tool,
		Rules: rulesOf(in.Policy), Status: statusOf(&in.Policy.Status),
	}
	if !in.Made.IsZero() {
		p.Made = &metav1.Time{Time: in.Made}
	}
	p.versions(in)
	if in.Policy.Spec.Converter.Declarative == nil {
		p.Tone, p.Title = "plain", "Not converted by rules"
	} else {
		p.converted(in, result, errs)
	}
	p.facts(in, result)
	return p
}

// converted fills in the page of a policy with rules.
func (p *page) converted(in Input, result compile.Result, errs []verify.RuleError) {
	p.Warnings = in.Tried.Warnings
	if len(errs) > 0 {
		p.Tone, p.Title, p.Errors = "bad", "The rules are not valid", errs
		if len(result.Errors) == 0 {
			p.Tone, p.Title = "plain", "Nothing to convert yet"
		}
		return
	}
	p.Tone, p.Title = "good", sentence(in.Tried.Title())
	if in.Tried.Discards() {
		p.Tone = "warning"
	}
	if in.Tried.Outcome == verify.Failed {
		p.Tone = "bad"
	}
	types := typesOf(in.CRD)
	for _, e := range p.Graph {
		p.Mappings = append(p.Mappings, newMapping(e.Spoke.Name, e.Hub, result.Leaves, p.rulesFor(e.Spoke.Name), types))
	}
	p.verdicts(result)
	p.Tried = triedOf(in.Tried, in.HideValues)
	p.figures(in.Tried)
}

func (p *page) rulesFor(spoke string) []*rule {
	for _, of := range p.Rules {
		if of.Spoke == spoke {
			return of.Rules
		}
	}
	return nil
}

// figures counts what a reader wants to know first.
func (p *page) figures(found *verify.Report) {
	rules, kept, dropped := 0, 0, 0
	for _, of := range p.Rules {
		rules += len(of.Rules)
	}
	for _, e := range p.Graph {
		kept += len(e.To.PreservedPaths) + len(e.From.PreservedPaths)
		dropped += len(e.To.DroppedPaths) + len(e.From.DroppedPaths)
	}
	for _, f := range []struct {
		n    int
		what string
	}{{len(p.Versions), "version"}, {rules, "rule"}, {kept, "place"}, {dropped, "place"}, {found.Objects, "object"}} {
		_, label, _ := strings.Cut(count(f.n, f.what), " ")
		p.Figures = append(p.Figures, figure{number(f.n), label})
	}
	p.Figures[2].Label += " preserved"
	p.Figures[3].Label += " dropped"
	p.Figures[4].Label += " tested"
}

func (p *page) facts(in Input, result compile.Result) {
	add := func(name, value string, code bool) {
		if value != "" {
			p.Facts = append(p.Facts, fact{name, value, code})
		}
	}
	add("Policy", in.Policy.Name+generation(in.Policy.Generation), false)
	add("CustomResourceDefinition", in.CRD.Name+generation(in.CRD.Generation), false)
	if result.Ruleset != nil {
		add("Plan", result.Ruleset.Hash(), true)
	}
	if served := in.Policy.Status.Revision; result.Ruleset == nil || served != result.Ruleset.Hash() {
		add("Ruleset in status", served, true)
	}
	add("Converter", p.Converter, false)
	add("Read from", p.From, false)
	add("Tool", "conversion-operator "+p.Tool, false)
}

// generation returns a suffix for a name; an object of a file has no generation.
func generation(n int64) string {
	if n == 0 {
		return ", as in a file"
	}
	return fmt.Sprintf(", generation %d", n)
}

// converterOf describes the converter.
func converterOf(converter *v1alpha1.Converter) string {
	switch {
	case converter.Declarative != nil:
		var spokes []string
		for _, spoke := range converter.Declarative.Spokes {
			spokes = append(spokes, string(spoke.Version))
		}
		return fmt.Sprintf("rules between %s and the hub %s", strings.Join(spokes, ", "), converter.Declarative.Hub)
	case converter.Image != nil:
		return "the image " + converter.Image.Reference
	case converter.Service != nil:
		return "the Service " + converter.Service.Namespace + "/" + converter.Service.Name
	case converter.URL != nil:
		return "the webhook at " + string(converter.URL.URL)
	case len(converter.AcceptedLosses()) > 0:
		return "none: the API server changes only apiVersion, and drops " + strings.Join(slices.Sorted(slices.Values(converter.AcceptedLosses())), ", ")
	}
	return "none: the API server changes only apiVersion"
}

func sentence(text string) string {
	return strings.ToUpper(text[:1]) + text[1:]
}
