// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
	"github.com/conversion-operator/conversion-operator/internal/engine/conversion"
	"github.com/conversion-operator/conversion-operator/internal/engine/conversion/compile"
	"github.com/conversion-operator/conversion-operator/internal/engine/preserved"
)

// Format is raised when a reader of an older Report would misread it. New fields
// do not raise it.
const Format = 1

// Report explains objects. Its JSON form is stable.
type Report struct {
	// Format is the constant Format.
	Format int `json:"format"`
	// Policy is the name of the policy, and RulesetHash identifies its compiled rules.
	Policy      string   `json:"policy"`
	Hub         string   `json:"hub"`
	RulesetHash string   `json:"rulesetHash"`
	Objects     []Object `json:"objects"`
}

// Object is the explanation of one converted object.
type Object struct {
	// Name has the source and the name of the object.
	Name string `json:"name"`
	From string `json:"from"`
	To   string `json:"to"`
	// Steps has one conversion between a spoke and the hub, and two between spokes.
	Steps []Step `json:"steps"`
}

// Step is a conversion between a spoke and the hub.
type Step struct {
	From string `json:"from"`
	To   string `json:"to"`
	// Fields of the object at To, by their paths.
	Fields []Field `json:"fields"`
	// Preserved are the values of From that are preserved while the object is at To.
	Preserved []Preserved `json:"preserved"`
	// Carried are values of To that stay in the annotation.
	Carried []Preserved `json:"carried,omitempty"`
	// Dropped are the values of From that are lost.
	Dropped []Preserved `json:"dropped"`
}

// Origin of a field.
type Origin string

// The origins.
const (
	// Copied fields are at the same path in both versions.
	Copied Origin = "Copied"
	// Computed fields are the result of a rule.
	Computed Origin = "Computed"
	// Restored fields were preserved while the object was in the other version.
	Restored Origin = "Restored"
	// Filled fields have the value of a default rule, or one that expressions compute from nothing.
	Filled Origin = "Filled"
	// Absent fields exist in the version, but not in the object.
	Absent Origin = "Absent"
)

// Field of a converted object.
type Field struct {
	// Path has the format of a policy, with the indexes of elements.
	Path string `json:"path"`
	// Value is JSON, nil if the object has none.
	Value json.RawMessage `json:"value,omitempty"`
	How   Origin          `json:"how"`
	// Sources are the fields of the other version from which it was made.
	Sources []Source `json:"sources,omitempty"`
	// Rule is the position of the rule in the policy, and RuleText describes it.
	Rule     string `json:"rule,omitempty"`
	RuleText string `json:"ruleText,omitempty"`
	// Owner says where the value is while the object is in the other version.
	Owner compile.Owner `json:"owner"`
}

// Source is a field from which another one was made.
type Source struct {
	Path  string          `json:"path"`
	Value json.RawMessage `json:"value,omitempty"`
	// Reshaped is true if it is in an element of a map that is a list in the other version, or the reverse.
	Reshaped bool `json:"-"`
}

// Preserved is a value that the other version cannot express.
type Preserved struct {
	// Version has the field, at Path; elements have their index or keys.
	Version string          `json:"version"`
	Path    string          `json:"path"`
	Value   json.RawMessage `json:"value,omitempty"`
	// Why is the reason, and Rule the position of the rule that causes it, if there is one.
	Why  string `json:"why"`
	Rule string `json:"rule,omitempty"`
}

// Explainer explains objects by one policy's rules.
type Explainer struct {
	result    compile.Result
	rules     map[string]rule
	keys      []string // of elements, by rules
	converter *conversion.Converter
}

// New returns an Explainer for compiled rules, and the policy from which they were compiled.
func New(policy *v1alpha1.ConversionPolicy, result compile.Result) (*Explainer, error) {
	converter, err := conversion.NewConverter(result.Ruleset)
	if err != nil {
		return nil, err
	}
	rules, keys := rulesOf(policy.Spec.Converter.Declarative)
	return &Explainer{result, rules, keys, converter}, nil
}

// Report returns a report without objects.
func (e *Explainer) Report() *Report {
	ruleset := e.result.Ruleset
	return &Report{Format: Format, Policy: ruleset.CRD, Hub: ruleset.Hub, RulesetHash: ruleset.Hash(), Objects: []Object{}}
}

// Object converts an object to a version, and explains its fields; with all, also the
// fields that it lacks. Errors name the object.
func (e *Explainer) Object(name string, text []byte, to string, all bool) (Object, error) {
	before, err := preserved.Decode(text)
	if err != nil {
		return Object{}, fmt.Errorf("%s: %w", name, err)
	}
	from := versionOf(before)
	object := Object{Name: name, From: from, To: to}
	path := []string{from, e.result.Ruleset.Hub, to}
	if from == e.result.Ruleset.Hub || to == e.result.Ruleset.Hub {
		path = []string{from, to}
	}
	for i := range path[1:] {
		converted, err := e.converter.Explain(text, path[i+1])
		if err != nil {
			return Object{}, fmt.Errorf("%s: %w", name, err)
		}
		text = converted.Object
		after, err := preserved.Decode(text)
		if err != nil {
			return Object{}, fmt.Errorf("%s: %w", name, err)
		}
		object.Steps = append(object.Steps, e.step(path[i], path[i+1], before, after, converted.Kept, all))
		before = after
	}
	return object, nil
}

func (e *Explainer) step(from, to string, before, after any, kept []conversion.Kept, all bool) Step {
	spoke := from
	if from == e.result.Ruleset.Hub {
		spoke = to
	}
	s := step{
		Explainer: e, from: from, to: to, fromSpoke: from == spoke, before: before, after: after, kept: kept,
		leavesBefore: leavesOf(e.result.Leaves, spoke, from, before), leavesAfter: leavesOf(e.result.Leaves, spoke, to, after),
		restorable: e.entries(before, to),
	}
	explained := Step{From: from, To: to, Fields: s.fields(), Preserved: s.preservedValues(), Carried: s.carried(), Dropped: s.dropped()}
	if all {
		explained.Fields = append(explained.Fields, s.absent()...)
	}
	slices.SortStableFunc(explained.Fields, func(a, b Field) int { return strings.Compare(a.Path, b.Path) })
	return explained
}

func versionOf(object any) string {
	members, _ := object.(map[string]any)
	apiVersion, _ := members["apiVersion"].(string)
	return apiVersion[strings.LastIndex(apiVersion, "/")+1:]
}
