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
	"github.com/conversion-operator/conversion-operator/internal/engine/conversion"
	"github.com/conversion-operator/conversion-operator/internal/engine/conversion/shape/strip"
)

// Result is the outcome of compiling a policy's rules for a CustomResourceDefinition.
type Result struct {
	// Ruleset is nil if there are errors, or if no conversion is possible yet.
	Ruleset *conversion.Ruleset
	// Leaves are the verdicts on every field of both versions, for each spoke that the
	// CustomResourceDefinition has. They are ordered by spoke; the fields of the spoke come before
	// those of the hub, each sorted by path.
	Leaves []FieldVerdict
	// Verdicts summarise Leaves by spoke.
	Verdicts []Verdict
	// Missing are the versions of the policy that the CustomResourceDefinition lacks. A missing
	// version is no error: it may be added later.
	Missing field.ErrorList
	// Errors name the field of the policy, and what to do.
	Errors field.ErrorList
	// Warnings describe rules that work but may surprise users.
	Warnings []string
	// AdmissionCondition is a CEL expression that is true for every object, at any version, whose
	// preserved data may exceed the size of its annotations. It is empty if nothing can be
	// preserved.
	AdmissionCondition string
}

// declarativePath is the path of the rules in a policy.
var declarativePath = field.NewPath("spec", "converter", "declarative")

// RulePath returns the path of a rule in a policy, as FieldVerdict.Rule has it, by the indexes of its
// spoke and of the rule there.
func RulePath(spoke, rule int) string { return rulesPath(spoke).Index(rule).String() }

// SpokePath returns the path of a spoke in a policy, by its index.
func SpokePath(spoke int) string { return spokePath(spoke).String() }

func spokePath(spoke int) *field.Path { return declarativePath.Child("spokes").Index(spoke) }

func rulesPath(spoke int) *field.Path { return spokePath(spoke).Child("rules") }

// Compile checks the rules against the schemas of the CustomResourceDefinition's versions.
//
// Versions that the CustomResourceDefinition lacks are Missing. There is still a Ruleset if it
// covers all versions that exist: a single version, which is the hub or a spoke, or several
// versions that include the hub.
func Compile(crd *apiextensionsv1.CustomResourceDefinition, rules *v1alpha1.DeclarativeConverter) Result {
	result := Result{}
	if crd.Spec.PreserveUnknownFields {
		result.Errors = append(result.Errors, field.Invalid(
			field.NewPath("CustomResourceDefinition", "spec", "preserveUnknownFields"), true,
			"the API server converts no objects of unknown structure: set it to false, and give each version a structural schema"))
		return result
	}
	schemas, stripped, errs := readSchemas(crd)
	result.Errors = append(result.Errors, errs...)
	spokes := expand(rules)
	result.Errors = append(result.Errors, spokes.errs...)
	hub := string(rules.Hub)
	result.Missing = missing(crd.Name, rules, schemas)
	_, hasHub := schemas[hub]
	if len(result.Errors) > 0 || !hasHub && (len(schemas) != 1 || !namesAny(rules, schemas)) {
		return result
	}
	ruleset := &conversion.Ruleset{
		Format: conversion.RulesetFormat, CRD: crd.Name, Group: crd.Spec.Group, Kind: crd.Spec.Names.Kind,
		Namespaced: crd.Spec.Scope == apiextensionsv1.NamespaceScoped,
		Hub:        hub, Versions: slices.Sorted(maps.Keys(schemas)), Schemas: stripped,
		DropOverflow: rules.Overflow == v1alpha1.OverflowDrop, RefusesStatus: rules.PreservedStatus == v1alpha1.PreservedStatusRefuse,
	}
	large := map[string]*sizes{}
	for _, version := range ruleset.Versions {
		if version != hub && hasHub {
			compileSpoke(version, rules, spokes, schemas, ruleset, large, &result)
		}
	}
	pairSiblings(ruleset.Spokes, schemas)
	result.Verdicts = verdicts(result.Leaves)
	exposed := exposedStatus(crd, hub, result.Leaves)
	result.Warnings = append(warnStatus(exposed), result.Warnings...)
	result.Warnings = append(result.Warnings, spokes.unused()...)
	if len(result.Errors) == 0 {
		result.Errors = append(result.Errors, checkFidelity(rules.MinimumFidelity, result.Leaves)...)
		result.Errors = append(result.Errors, checkStatus(rules.PreservedStatus, exposed)...)
	}
	if len(result.Errors) == 0 {
		result.Ruleset = ruleset
		result.AdmissionCondition = admissionCondition(ruleset.Group, large)
	}
	return result
}

// readSchemas reads the schemas of all versions, and strips them. The API server has accepted them.
func readSchemas(crd *apiextensionsv1.CustomResourceDefinition) (schemas map[string]*schema.Structural, stripped map[string]json.RawMessage, errs field.ErrorList) {
	schemas, stripped = map[string]*schema.Structural{}, map[string]json.RawMessage{}
	for _, version := range crd.Spec.Versions {
		var props *apiextensionsv1.JSONSchemaProps
		if version.Schema != nil {
			props = version.Schema.OpenAPIV3Schema
		}
		structural, err := structuralOf(props)
		if err == nil {
			schemas[version.Name] = structural
			stripped[version.Name], err = strip.Of(props)
		}
		if err != nil {
			errs = append(errs, field.Invalid(
				field.NewPath("CustomResourceDefinition", "spec", "versions").Key(version.Name).Child("schema"), version.Name,
				"the schema is not structural: "+err.Error()))
		}
	}
	return schemas, stripped, errs
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
		add(spokePath(i).Child("version"), spoke.Version)
	}
	return missing
}

// namesAny reports whether a version of the CustomResourceDefinition is a spoke of the policy.
func namesAny(rules *v1alpha1.DeclarativeConverter, schemas map[string]*schema.Structural) bool {
	return slices.ContainsFunc(rules.Spokes, func(spoke v1alpha1.Spoke) bool { return schemas[string(spoke.Version)] != nil })
}

// compileSpoke adds a spoke to the ruleset, what may be large, and its verdicts, errors and warnings to the result.
func compileSpoke(
	version string, converter *v1alpha1.DeclarativeConverter, spokes *expansion, schemas map[string]*schema.Structural, ruleset *conversion.Ruleset, large map[string]*sizes, result *Result,
) {
	c := &compiler{namespaced: ruleset.Namespaced}
	spoke, hub := schemas[version], schemas[ruleset.Hub]
	at := slices.IndexFunc(converter.Spokes, func(spoke v1alpha1.Spoke) bool { return string(spoke.Version) == version })
	if at >= 0 {
		c.recursions = spokes.recursions[at]
		spoke, hub = typed(spoke, c.recursions, pathIn(false)), typed(hub, c.recursions, pathIn(true))
	}
	c.frames = []*frame{{compiler: c, spoke: &side{version: version, schema: spoke}, hub: &side{version: ruleset.Hub, isHub: true, schema: hub}}}
	if at >= 0 {
		if c.findFrames(spokes.rules[at]); len(c.errs) == 0 {
			c.addRules(spokes.rules[at])
		}
	}
	if len(c.errs) == 0 {
		c.assignLeaves()
	}
	if len(c.errs) == 0 {
		ruleset.Spokes = append(ruleset.Spokes, conversion.Spoke{Version: version, Root: c.rules})
		leaves := c.leaves()
		c.addSizes(large, leaves)
		result.Leaves = append(result.Leaves, leaves...)
		c.warnLimits()
		c.warnListsWithoutKeys(leaves)
		c.warnDifferences()
	}
	result.Errors = append(result.Errors, c.errs...)
	result.Warnings = append(result.Warnings, c.warnings...)
}

// compiler compiles the rules between one spoke and the hub.
type compiler struct {
	namespaced bool
	// frames are the whole object, and what rules pair: outer ones before those in them.
	frames []*frame

	// recursions are the uses of groups in themselves.
	recursions []recursion

	rules conversion.Scope
	// differences describe how the schemas of conflicting fields differ, for a warning.
	differences []string
	rulePaths   []rulePaths
	// small is the size of all that is preserved besides fields, in bytes.
	small int
	// rule is the rule that is being compiled.
	rule *policyRule

	errs     field.ErrorList
	warnings []string
}

// claim is a field that belongs to a rule.
type claim struct {
	spot
	ofHub   bool
	fldPath place
	rule    *policyRule
}

func (c *compiler) invalid(fldPath place, value any, format string, args ...any) {
	c.refuse(fldPath, field.Invalid(fldPath.path, value, fmt.Sprintf(format, args...)))
}

func (c *compiler) refuse(fldPath place, err *field.Error) {
	if fldPath.repeated && len(c.errs) > 0 {
		return // probably what is wrong with the same rule one level above
	}
	c.errs = append(c.errs, fldPath.refused(err))
}

func (c *compiler) warn(format string, args ...any) {
	c.warnings = append(c.warnings, fmt.Sprintf(format, args...))
}
