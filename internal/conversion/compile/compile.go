// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package compile

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
	"github.com/conversion-operator/conversion-operator/internal/conversion"
	"github.com/conversion-operator/conversion-operator/internal/conversion/shape/strip"
)

// Result is what a policy's rules mean for a CustomResourceDefinition.
type Result struct {
	// Ruleset is nil where there are errors, and where nothing can be converted yet.
	Ruleset *conversion.Ruleset
	// Leaves say of every field of both versions what becomes of it, for each
	// spoke that the CustomResourceDefinition has: by spoke, those of the spoke
	// before those of the hub, by path.
	Leaves []FieldVerdict
	// Verdicts are those of the leaves in short, by spoke.
	Verdicts []v1alpha1.Verdict
	// Missing are the versions that it does not have, yet. That is no error.
	Missing field.ErrorList
	// Errors name the field of the policy, and what to do.
	Errors field.ErrorList
	// Warnings are about what works, and may surprise.
	Warnings []string
	// AdmissionCondition is a CEL expression that is true for each object, at any of
	// the versions, that may have more to preserve than its annotations have room for.
	// It is empty where nothing can be preserved.
	AdmissionCondition string
}

// declarativePath is where the rules stand in a policy.
var declarativePath = field.NewPath("spec", "converter", "declarative")

// Compile holds the rules against the schemas of the CustomResourceDefinition's versions.
//
// Versions that it does not have are Missing. There is a Ruleset all the same where
// it covers every version that there is: with one version, which is the hub or a
// spoke, or with several, one of them the hub.
func Compile(crd *apiextensionsv1.CustomResourceDefinition, rules *v1alpha1.DeclarativeConverter) Result {
	result := Result{}
	if crd.Spec.PreserveUnknownFields {
		result.Errors = append(result.Errors, field.Invalid(
			field.NewPath("CustomResourceDefinition", "spec", "preserveUnknownFields"), true,
			"the API server converts no objects of unknown structure: set it to false, and give each version a structural schema"))
		return result
	}
	schemas, errs := structuralSchemas(crd)
	result.Errors = append(result.Errors, errs...)
	hub := string(rules.Hub)
	result.Missing = missing(crd.Name, rules, schemas)
	_, hasHub := schemas[hub]
	if len(result.Errors) > 0 || !hasHub && (len(schemas) != 1 || !names(rules, schemas)) {
		return result
	}
	ruleset := &conversion.Ruleset{
		Format: conversion.RulesetFormat, CRD: crd.Name, Group: crd.Spec.Group, Kind: crd.Spec.Names.Kind,
		Namespaced: crd.Spec.Scope == apiextensionsv1.NamespaceScoped,
		Hub:        hub, Versions: slices.Sorted(maps.Keys(schemas)),
		DropOverflow: rules.Overflow == v1alpha1.OverflowDrop, RefusesStatus: rules.PreservedStatus == v1alpha1.PreservedStatusRefuse,
	}
	result.Errors = append(result.Errors, addSchemas(ruleset, crd)...)
	for _, version := range ruleset.Versions {
		if version != hub && hasHub {
			compileSpoke(version, rules, schemas, ruleset, &result)
		}
	}
	pairSiblings(ruleset.Spokes, schemas)
	result.Verdicts = verdicts(result.Leaves)
	result.Warnings = append(warnStatus(crd, hub, result.Leaves), result.Warnings...)
	result.Warnings = append(result.Warnings, storageNote(crd, hub, schemas)...)
	if len(result.Errors) == 0 {
		result.Errors = append(result.Errors, checkRequired(rules.Require, result.Leaves)...)
		result.Errors = append(result.Errors, checkStatus(rules.PreservedStatus, crd, hub, result.Leaves)...)
	}
	if len(result.Errors) == 0 {
		result.Ruleset = ruleset
		result.AdmissionCondition = result.admissionCondition(schemas)
	}
	return result
}

// addSchemas adds what the versions' schemas say of values to the ruleset.
func addSchemas(p *conversion.Ruleset, crd *apiextensionsv1.CustomResourceDefinition) (errs field.ErrorList) {
	p.Schemas = map[string]json.RawMessage{}
	for i := range crd.Spec.Versions {
		version := &crd.Spec.Versions[i]
		var props *apiextensionsv1.JSONSchemaProps
		if version.Schema != nil {
			props = version.Schema.OpenAPIV3Schema
		}
		text, err := strip.Of(props)
		if err != nil {
			errs = append(errs, field.Invalid(
				field.NewPath("CustomResourceDefinition", "spec", "versions").Key(version.Name).Child("schema"), version.Name, err.Error()))
			continue
		}
		p.Schemas[version.Name] = text
	}
	return errs
}

// structuralSchemas reads the versions' schemas. The API server has accepted them.
func structuralSchemas(crd *apiextensionsv1.CustomResourceDefinition) (map[string]*schema.Structural, field.ErrorList) {
	schemas, errs := map[string]*schema.Structural{}, field.ErrorList{}
	for i := range crd.Spec.Versions {
		version := &crd.Spec.Versions[i]
		structural, err := structuralOf(version)
		if err != nil {
			errs = append(errs, field.Invalid(
				field.NewPath("CustomResourceDefinition", "spec", "versions").Key(version.Name).Child("schema"), version.Name,
				"the schema is not structural: "+err.Error()))
			continue
		}
		schemas[version.Name] = structural
	}
	return schemas, errs
}

func missing(crd string, rules *v1alpha1.DeclarativeConverter, schemas map[string]*schema.Structural) field.ErrorList {
	var missing field.ErrorList
	add := func(path *field.Path, version v1alpha1.VersionName) {
		if _, there := schemas[string(version)]; !there {
			missing = append(missing, &field.Error{Type: field.ErrorTypeNotFound, Field: path.String(), BadValue: string(version),
				Detail: fmt.Sprintf("CustomResourceDefinition %s has %s: add the version there, correct the name here, or remove it here if it was retired",
					crd, strings.Join(slices.Sorted(maps.Keys(schemas)), ", "))})
		}
	}
	add(declarativePath.Child("hub"), rules.Hub)
	for i, spoke := range rules.Spokes {
		add(declarativePath.Child("spokes").Index(i).Child("version"), spoke.Version)
	}
	return missing
}

// names reports whether the only version is one that the policy names.
func names(rules *v1alpha1.DeclarativeConverter, schemas map[string]*schema.Structural) bool {
	for version := range schemas {
		for _, spoke := range rules.Spokes {
			if string(spoke.Version) == version {
				return true
			}
		}
	}
	return false
}

// compileSpoke adds one spoke to the ruleset, and the findings about it to the result.
func compileSpoke(
	version string, rules *v1alpha1.DeclarativeConverter, schemas map[string]*schema.Structural, ruleset *conversion.Ruleset, result *Result,
) {
	c := &compiler{spokeVersion: version, hubVersion: ruleset.Hub, spoke: schemas[version], hub: schemas[ruleset.Hub]}
	for i, spoke := range rules.Spokes {
		if string(spoke.Version) == version {
			c.addRules(spoke.Rules, declarativePath.Child("spokes").Index(i).Child("rules"))
		}
	}
	c.checkCollisions()
	if len(c.errs) == 0 {
		c.assignLeaves()
	}
	if len(c.errs) == 0 {
		ruleset.Spokes = append(ruleset.Spokes, conversion.Spoke{Version: version, Root: c.root})
		leaves := c.leaves()
		result.Leaves = append(result.Leaves, leaves...)
		c.warnAll(leaves, rules.Overflow)
	}
	result.Errors = append(result.Errors, c.errs...)
	result.Warnings = append(result.Warnings, c.warnings...)
}

// compiler compiles the rules between one spoke and the hub.
type compiler struct {
	spokeVersion, hubVersion string
	spoke, hub               *schema.Structural

	root conversion.Scope
	// claims are the fields that rules read and write, on either side.
	spokeClaims, hubClaims []claim
	// preservedSpoke and preservedHub are the fields that are preserved without a rule.
	preservedSpoke, preservedHub []conversion.Path
	// partlyPreservedSpoke and partlyPreservedHub are the fields of which some values are preserved without a
	// rule, and all others copied.
	partlyPreservedSpoke, partlyPreservedHub []conversion.Path
	// strangers are fields that have one name on both sides and are not the same.
	strangers []claim
	// unlike says what differs, where that is all that there is to say of a field.
	unlike  []string
	pending []collision
	// passages are lists and maps that rules of one side go through; on the other
	// side nothing else may have them.
	passages  []collision
	crossings []crossing
	// rule is the one that is being compiled.
	rule *ruleAt

	errs     field.ErrorList
	warnings []string
}

// claim is a field that belongs to a rule.
type claim struct {
	path conversion.Path
	at   *field.Path
	rule *ruleAt
}

func (c *compiler) invalid(at *field.Path, value any, format string, args ...any) {
	c.errs = append(c.errs, field.Invalid(at, value, fmt.Sprintf(format, args...)))
}

func (c *compiler) warn(format string, args ...any) {
	c.warnings = append(c.warnings, fmt.Sprintf(format, args...))
}
