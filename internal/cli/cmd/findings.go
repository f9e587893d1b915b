// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cmd

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/conversion-operator/conversion-operator/internal/cli/audit"
	"github.com/conversion-operator/conversion-operator/internal/cli/diff"
	"github.com/conversion-operator/conversion-operator/internal/cli/findings"
	"github.com/conversion-operator/conversion-operator/internal/engine/conversion/compile"
	"github.com/conversion-operator/conversion-operator/internal/engine/manifest"
	"github.com/conversion-operator/conversion-operator/internal/operator/dependents"
	"github.com/conversion-operator/conversion-operator/internal/operator/verify"
)

// The formats for pipelines.
const (
	formSARIF = "sarif"
	formJUnit = "junit"
)

// writeOrFind writes a report, or what it found in a format for pipelines.
func (o *output) writeOrFind(w io.Writer, report any, find func() *findings.Report, writeText func(io.Writer) error) error {
	if o.form != formSARIF && o.form != formJUnit {
		return o.write(w, report, writeText)
	}
	found := find()
	found.Version = versionText()
	if o.form == formJUnit {
		return found.WriteJUnit(w)
	}
	return found.WriteSARIF(w)
}

// place is a manifest in a file. It is empty for one in no file.
type place struct {
	file      string
	positions manifest.Positions
}

// places are manifests in files, by kind and name.
type places map[[2]string]place

// placesIn finds the manifests of a kind in files, the first of each name.
func placesIn(files []string, kinds ...string) places {
	files = slices.DeleteFunc(slices.Clone(files), func(file string) bool { return file == "" || file == manifest.Stdin })
	found := places{}
	documents, err := manifest.ReadAll(files, nil)
	if err != nil {
		return found // the command has read them
	}
	for _, document := range documents {
		object := manifest.NewObject("", document.JSON)
		key := [2]string{object.Kind, object.Name}
		if _, known := found[key]; known || !slices.Contains(kinds, object.Kind) {
			continue
		}
		if text, err := os.ReadFile(document.Source); err == nil {
			found[key] = place{document.Source, manifest.NewPositions(string(text), document.Index)}
		}
	}
	return found
}

// The kinds of the manifests that findings are about.
const (
	policyManifest     = "ConversionPolicy"
	definitionManifest = "CustomResourceDefinition"
)

func (p places) policy(name string) place     { return p[[2]string{policyManifest, name}] }
func (p places) definition(name string) place { return p[[2]string{definitionManifest, name}] }

// found returns a finding about a field of the manifest.
func (p place) found(rule string, level findings.Level, field, message string) findings.Finding {
	line, _ := p.positions.Of(compile.PathOf(field))
	return findings.Finding{Rule: rule, Level: level, Message: message, Path: p.file, Line: line}
}

// ofVersion returns the field of a version in a definition, or that of all versions.
func (p place) ofVersion(name string) string {
	const versions = "spec.versions"
	for i := 0; ; i++ {
		path := []string{"spec", "versions", strconv.Itoa(i), "name"}
		if p.positions.Member(path[:3]...) == nil {
			return versions
		}
		if found := p.positions.Member(path...); found != nil && found.Value == name {
			return fmt.Sprintf("%s[%d]", versions, i)
		}
	}
}

// levels are the levels of severities, which audit and verify name alike.
var levels = map[string]findings.Level{"Error": findings.Error, "Warning": findings.Warning, "Note": findings.Note}

const (
	rulePolicyInvalid = "PolicyInvalid"
	rulePolicyWarning = "PolicyWarning"
	declarative       = "spec.converter.declarative"
)

// foundByVerify lists what verify found, at the rules of the policy.
func foundByVerify(report *verify.Report, policy place) *findings.Report {
	found := &findings.Report{Command: "verify", Subject: report.Policy, Rules: []findings.Rule{
		{ID: rulePolicyInvalid, Description: "The policy does not fit the CustomResourceDefinition"},
		{ID: rulePolicyWarning, Description: "The result of a rule may be surprising"},
	}}
	kinds := verify.Kinds()
	for _, kind := range slices.Sorted(maps.Keys(kinds)) {
		found.Rules = append(found.Rules, findings.Rule{ID: string(kind), Description: kinds[kind]})
	}
	for _, err := range report.Errors {
		found.Findings = append(found.Findings, policy.found(rulePolicyInvalid, findings.Error, err.Path, err.Path+": "+err.Message))
	}
	for _, warning := range report.Warnings {
		found.Findings = append(found.Findings, policy.found(rulePolicyWarning, findings.Warning, declarative, warning))
	}
	for _, each := range report.Findings {
		field, version := declarative, each.From
		if each.Kind == verify.NotAsRecorded {
			version = each.To // the field is one of the result
		}
		for _, leaf := range report.Leaves {
			if leaf.Version == version && leaf.Path == each.Path && leaf.Rule != "" {
				field = leaf.Rule
			}
		}
		message := strings.ReplaceAll(each.Summary()+"; for example "+each.ExampleText(), "`", "")
		found.Findings = append(found.Findings, policy.found(string(each.Kind), levels[string(each.Severity)], field, message))
	}
	return found
}

// foundByDiff lists what gets worse, at the rules of the policies and in the definitions in files.
func foundByDiff(report *diff.Report, files []string) *findings.Report {
	const restricted, lost, worse = "FieldRestricted", "FeatureLost", "FieldWorse"
	found := &findings.Report{Command: "diff", Subject: "policies", Rules: []findings.Rule{
		{ID: rulePolicyInvalid, Description: "Rules of the policy no longer fit the CustomResourceDefinition"},
		{ID: restricted, Description: "A field accepts fewer values than before"},
		{ID: lost, Description: "Clients no longer find a subresource, a selectable field or a name of the kind"},
		{ID: worse, Description: "A field is newly lost, preserved or pruned"},
	}}
	places := placesIn(files, policyManifest, definitionManifest)
	for _, each := range report.Policies {
		policy, crd := places.policy(each.Name), places.definition(each.Name)
		either := policy
		if either.file == "" {
			either = crd
		}
		for _, text := range each.Errors {
			field, _, _ := strings.Cut(text, ": ")
			found.Findings = append(found.Findings, either.found(rulePolicyInvalid, findings.Error, field, each.Name+": "+text))
		}
		for _, restriction := range each.Restrictions {
			message := fmt.Sprintf("%s, version %s: %s", each.Name, restriction.Version, restriction)
			found.Findings = append(found.Findings, crd.found(restricted, findings.Error, crd.ofVersion(restriction.Version), message))
		}
		for _, loss := range each.Losses {
			if loss.Breaks() {
				found.Findings = append(found.Findings, crd.found(lost, findings.Error, crd.ofVersion(loss.At), each.Name+": "+loss.String()))
			}
		}
		for _, field := range each.Fields {
			if !field.Worse {
				continue
			}
			at := declarative
			if rule := cmp.Or(field.After, &diff.Leaf{}).RuleAt; rule != "" {
				at = rule
			}
			message := fmt.Sprintf("%s: %s of %s: %s", each.Name, field.Path, field.Version, field.Why)
			found.Findings = append(found.Findings, either.found(worse, findings.Error, at, message))
		}
	}
	return found
}

// foundByAudit lists the findings of an audit, at the definitions in files.
func foundByAudit(report *audit.Report, files []string) *findings.Report {
	found := &findings.Report{Command: "audit", Subject: "CustomResourceDefinitions"}
	for _, kind := range audit.Kinds {
		found.Rules = append(found.Rules, findings.Rule{ID: string(kind.ID), Description: kind.Means})
	}
	places := placesIn(files, definitionManifest)
	for _, each := range report.Findings {
		subject := each.CRD
		if each.Version != "" {
			subject += ", version " + each.Version
		}
		crd := places.definition(each.CRD)
		found.Findings = append(found.Findings, crd.found(
			string(each.ID), levels[string(each.Severity)], crd.ofVersion(each.Version), fmt.Sprintf("%s: %s; %s", subject, each.Evidence, each.Cure)))
	}
	return found
}

// foundByDependents lists the dependents in a cluster, and what could not be read.
func foundByDependents(report *dependents.Report) *findings.Report {
	const more, notChecked, repairFailed = "MoreDependents", "NotChecked", "RepairFailed"
	found := &findings.Report{Command: "dependents", Subject: report.CRD}
	for _, kind := range dependents.Kinds {
		found.Rules = append(found.Rules, findings.Rule{ID: string(kind.Dependency), Description: kind.Means})
	}
	found.Rules = append(found.Rules, findings.Rule{ID: more, Description: "there are more dependents than the report has"},
		findings.Rule{ID: notChecked, Description: "the command could not read something"}, findings.Rule{ID: repairFailed, Description: "a dependent was not repaired"})
	add := func(rule string, level findings.Level, message string) {
		found.Findings = append(found.Findings, findings.Finding{Rule: rule, Level: level, Message: report.CRD + ": " + message})
	}
	impacts := map[dependents.Impact]findings.Level{dependents.Breaks: findings.Error, dependents.Harmless: findings.Note}
	for _, each := range report.Dependents {
		place := each.Place()
		if each.Field != "" {
			place += ", " + each.Field
		}
		add(string(each.Dependency), impacts[each.Impact], fmt.Sprintf("%s names %s; %s; %s", place, each.Version, each.Effect, each.Cure))
	}
	if report.More > 0 {
		add(more, findings.Error, fmt.Sprintf("%d more dependents: raise --most to list them", report.More))
	}
	for _, each := range report.NotChecked {
		add(notChecked, findings.Warning, each.What+" was not checked: "+each.Why)
	}
	for _, repair := range report.Repairs {
		if repair.Failure != "" {
			add(repairFailed, findings.Error, fmt.Sprintf("%s, %s: %s", repair.Object, repair.Field, repair.Failure))
		}
	}
	return found
}
