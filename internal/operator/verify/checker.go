// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package verify

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
	"github.com/conversion-operator/conversion-operator/internal/engine/conversion"
	"github.com/conversion-operator/conversion-operator/internal/engine/conversion/compile"
	"github.com/conversion-operator/conversion-operator/internal/engine/manifest"
	"github.com/conversion-operator/conversion-operator/internal/engine/preserved"
	"github.com/conversion-operator/conversion-operator/internal/operator/crds"
)

// Compile compiles a policy's rules against a CustomResourceDefinition, and returns
// the errors for which the operator would refuse it. Rules for fewer than two versions
// are an error, because there is nothing to convert.
func Compile(policy *v1alpha1.ConversionPolicy, crd *apiextensionsv1.CustomResourceDefinition) (compile.Result, []RuleError) {
	if unsupported := policy.Spec.Unsupported(); unsupported != "" {
		return compile.Result{}, []RuleError{{"spec", unsupported}}
	}
	rules := policy.Spec.Converter.Declarative
	if rules == nil {
		return compile.Result{}, []RuleError{{"spec.converter.declarative", "the policy has no rules to test: only this kind of converter has rules"}}
	}
	result := crds.CompileRules(crd, rules)
	var errs []RuleError
	for _, err := range result.Errors {
		errs = append(errs, RuleError{err.Field, err.ErrorBody()})
	}
	if len(errs) == 0 && (result.Ruleset == nil || len(result.Ruleset.Versions) < 2) {
		for _, err := range result.Missing {
			errs = append(errs, RuleError{err.Field, err.ErrorBody()})
		}
		if len(errs) == 0 {
			errs = append(errs, RuleError{"spec.converter.declarative", "the CustomResourceDefinition has only one version: there is nothing to convert"})
		}
	}
	return result, errs
}

// Checker converts objects from version to version. Only one goroutine may use it.
type Checker struct {
	ruleset *conversion.Ruleset
	// converter is nil for a Checker by NewThrough.
	converter *conversion.Converter
	convertBy Convert
	versions  map[string]*version
	now       func() time.Time

	report     Report
	directions map[[2]string]*Direction
	tally      tally
	elapsed    time.Duration
	edits      map[editKey]editCount
	// seen is for each leaf field of the report. It is nil for a Checker by NewThrough.
	seen []seen
	// recording is nil unless conversions are recorded.
	recording *recording
}

// New compiles a policy's rules against a CustomResourceDefinition. A Checker with
// invalid rules has a Report, and checks nothing. The clock is only for the timing.
func New(policy *v1alpha1.ConversionPolicy, crd *apiextensionsv1.CustomResourceDefinition, now func() time.Time) (*Checker, error) {
	result, errs := Compile(policy, crd)
	return NewCompiled(policy, crd, result, errs, now)
}

// NewCompiled is New for rules that Compile has compiled.
func NewCompiled(
	policy *v1alpha1.ConversionPolicy, crd *apiextensionsv1.CustomResourceDefinition, result compile.Result, ruleErrors []RuleError, now func() time.Time,
) (*Checker, error) {
	c := &Checker{now: now, tally: newTally(), edits: map[editKey]editCount{}, versions: map[string]*version{}, directions: map[[2]string]*Direction{}}
	c.report = Report{
		Format: ReportFormat, Policy: policy.Name, Errors: ruleErrors, Warnings: result.Warnings,
		Versions: []string{}, Leaves: []Leaf{}, Directions: []Direction{},
	}
	if policy.Spec.Converter.Declarative != nil {
		c.report.Hub = string(policy.Spec.Converter.Declarative.Hub)
	}
	if len(ruleErrors) > 0 {
		return c, nil
	}
	for _, missing := range result.Missing {
		c.Warn(missing.Error())
	}
	if warning := crds.ClaimsWarning(crd); warning != "" {
		c.Warn(warning)
	}
	c.ruleset, c.report.Versions, c.report.RulesetHash, c.report.Leaves = result.Ruleset, result.Ruleset.Versions, result.Ruleset.Hash(), leavesOf(result)
	c.seen = make([]seen, len(c.report.Leaves))
	for _, pair := range c.ruleset.Pairs() {
		c.directions[pair] = &Direction{From: pair[0], To: pair[1], Rules: fidelity(result, pair)}
	}
	return c, c.prepare(crd)
}

func (c *Checker) prepare(crd *apiextensionsv1.CustomResourceDefinition) (err error) {
	if c.converter, err = conversion.NewConverter(c.ruleset); err != nil {
		return err
	}
	c.convertBy = c.converter.Convert
	return c.readSchemas(crd)
}

func (c *Checker) readSchemas(crd *apiextensionsv1.CustomResourceDefinition) (err error) {
	for i := range crd.Spec.Versions {
		of := &crd.Spec.Versions[i]
		if c.versions[of.Name], err = newVersion(of); err != nil {
			return fmt.Errorf("CustomResourceDefinition %s: %w", crd.Name, err)
		}
		if c.versions[of.Name].filled, err = preserved.Decode(crds.FilledCanary(crd, of.Name)); err != nil {
			return fmt.Errorf("CustomResourceDefinition %s: the sample of %s is not JSON: %w", crd.Name, of.Name, err)
		}
	}
	return nil
}

// fidelity returns the fidelity of a conversion between two versions: the worse of
// its two steps through the hub.
func fidelity(result compile.Result, pair [2]string) v1alpha1.Fidelity {
	order := []v1alpha1.Fidelity{v1alpha1.FidelityExact, v1alpha1.FidelityPreserved, v1alpha1.FidelityLossy}
	worst := 0
	for _, verdict := range result.Verdicts {
		if verdict.Version == pair[0] {
			worst = max(worst, slices.Index(order, verdict.ToHub))
		}
		if verdict.Version == pair[1] {
			worst = max(worst, slices.Index(order, verdict.FromHub))
		}
	}
	return order[worst]
}

// Valid reports whether the rules are valid, so that objects can be checked.
func (c *Checker) Valid() bool { return len(c.report.Errors) == 0 }

// Versions returns the versions that can be converted.
func (c *Checker) Versions() []string { return c.report.Versions }

// Warn adds a warning to the report.
func (c *Checker) Warn(text string) { c.report.Warnings = append(c.report.Warnings, text) }

// Check converts an object from every version to every other one and back. It counts
// objects of other kinds, and does not check them.
func (c *Checker) Check(ctx context.Context, object manifest.Object) {
	group, version, _ := strings.Cut(object.APIVersion, "/")
	if group != c.ruleset.Group || object.Kind != c.ruleset.Kind {
		c.report.Skipped++
		return
	}
	c.report.Objects++
	t, err := c.admit(ctx, object, version)
	if err != nil {
		c.tally.record(NotConverted, version, "", Example{Object: object.String(), Message: err.Error()})
		return
	}
	c.foreignAnnotations(t)
	if c.holdsEntries(t.start.tree) {
		c.report.Preserving++
	}
	c.roundTrips(ctx, t)
	if c.recording != nil {
		c.record(t)
	}
}

// admit treats an object like an API server that receives it from a client.
func (c *Checker) admit(ctx context.Context, object manifest.Object, version string) (testObject, error) {
	t := testObject{name: object.String(), version: version}
	of := c.versions[version]
	if of == nil || !slices.Contains(c.ruleset.Versions, version) {
		return t, fmt.Errorf("the policy does not convert version %q, only %s", version, strings.Join(c.ruleset.Versions, ", "))
	}
	x, pruned, err := of.create(object.JSON)
	if err != nil {
		return t, err
	}
	for _, d := range pruned {
		c.tally.record(Unknown, version, "", Example{Object: t.name, Path: d.Path, Before: shorten(d.Before), Fields: len(pruned)})
	}
	errs := of.validate(ctx, x)
	for _, err := range errs {
		c.tally.record(InvalidBefore, version, "", Example{Object: t.name, Path: pathOfField(err.Field), Message: err.ErrorBody()})
	}
	t.start, t.validate = x, len(errs) == 0
	return t, nil
}

// Canaries converts canary objects, which are made up from the rules. It does not
// validate them, because their values come from no schema.
func (c *Checker) Canaries(ctx context.Context) {
	for _, spoke := range c.ruleset.Spokes {
		c.canary(ctx, spoke.Version, c.ruleset.Hub)
		c.canary(ctx, c.ruleset.Hub, spoke.Version)
	}
}

func (c *Checker) canary(ctx context.Context, version, to string) {
	c.report.Canaries++
	text := c.converter.Canary(version, to)
	tree, err := preserved.Decode(text)
	if err != nil {
		err = errors.Join(errors.New("the canary object is not JSON"), err)
		c.tally.record(NotConverted, version, to, Example{Object: "canary", Message: err.Error()})
		return
	}
	c.roundTrips(ctx, testObject{name: "canary object of " + version, version: version, start: value{text, tree}, canary: true})
}

// Report returns the current result. The argument describes the source of the objects.
func (c *Checker) Report(objectsFrom string) *Report {
	report := c.report
	report.ObjectsFrom = objectsFrom
	for _, direction := range c.directions {
		report.Directions = append(report.Directions, *direction)
	}
	slices.SortFunc(report.Directions, func(a, b Direction) int {
		return cmp.Or(cmp.Compare(a.From, b.From), cmp.Compare(a.To, b.To))
	})
	var unused []Finding
	if c.seen != nil && report.Objects > 0 {
		report.FieldsUntried, unused = c.fieldsUntried(), c.unused(objectsFrom)
	}
	report.Findings, report.MoreFindings, report.PreservedFields = c.tally.sortedFindings(unused...), c.tally.more, c.tally.sortedPreservedFields()
	report.Preserved = c.tally.sortedPreserved()
	if report.Timing.Conversions > 0 {
		report.Timing.MeanNanoseconds = c.elapsed.Nanoseconds() / int64(report.Timing.Conversions)
	}
	report.Outcome = Passed
	switch {
	case len(report.Errors) > 0:
		report.Outcome = Invalid
	case slices.ContainsFunc(report.Findings, func(f Finding) bool { return f.Severity == SeverityError }):
		report.Outcome = Failed
	}
	return &report
}
