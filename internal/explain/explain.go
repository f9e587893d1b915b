// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
	"github.com/conversion-operator/conversion-operator/internal/conversion"
	"github.com/conversion-operator/conversion-operator/internal/conversion/compile"
)

// Format is raised when a reader of an older Report would misread it. New fields
// do not raise it.
const Format = 1

// Report explains objects. Its JSON form is stable.
type Report struct {
	// Format is the constant of that name.
	Format int `json:"format"`
	// Policy is the name of the policy, and RulesetHash identifies its compiled rules.
	Policy      string   `json:"policy"`
	Hub         string   `json:"hub"`
	RulesetHash string   `json:"rulesetHash"`
	Objects     []Object `json:"objects"`
}

// Object is one that was converted.
type Object struct {
	// Name says which, and where it was found.
	Name string `json:"name"`
	From string `json:"from"`
	To   string `json:"to"`
	// Steps is one between a spoke and the hub, and two between spokes.
	Steps []Step `json:"steps"`
}

// Step is a conversion between a spoke and the hub.
type Step struct {
	From string `json:"from"`
	To   string `json:"to"`
	// Fields of the object at To, by their paths.
	Fields []Field `json:"fields"`
	// Kept is what is preserved while the object is at To.
	Kept []Kept `json:"kept"`
	// Carried is what was preserved of To, and stays in the annotation.
	Carried []Kept `json:"carried,omitempty"`
	// Dropped is what the object does not have any more.
	Dropped []Kept `json:"dropped"`
}

// How a field came to be.
type How string

// The ways.
const (
	// Copied is what stands at the same path in both versions.
	Copied How = "Copied"
	// Computed is what a rule made.
	Computed How = "Computed"
	// Restored was preserved while the object was in the other version.
	Restored How = "Restored"
	// Filled is what a default rule gives.
	Filled How = "Filled"
	// Absent is a field that the version has, and the object has not.
	Absent How = "Absent"
)

// Field of a converted object.
type Field struct {
	// Path as in a policy, with the indexes of elements.
	Path string `json:"path"`
	// Value is JSON, nil where the object has none.
	Value json.RawMessage `json:"value,omitempty"`
	How   How             `json:"how"`
	// Sources are the fields of the other version that it was made of.
	Sources []Source `json:"sources,omitempty"`
	// Rule is where the rule stands in the policy, and RuleText says what it is.
	Rule     string `json:"rule,omitempty"`
	RuleText string `json:"ruleText,omitempty"`
	// Owner is who has the field while the object is in the other version: a place
	// there, the annotation, or nothing.
	Owner compile.Owner `json:"owner"`
}

// Source is a field that another one was made of.
type Source struct {
	Path  string          `json:"path"`
	Value json.RawMessage `json:"value,omitempty"`
}

// Kept is a value that the other version has no place for.
type Kept struct {
	// Version has the field, and Path is where, as the annotation names it.
	Version string          `json:"version"`
	Path    string          `json:"path"`
	Value   json.RawMessage `json:"value,omitempty"`
	// Why says why it is not in the object, and Rule where the rule stands that is
	// the reason, if there is one.
	Why  string `json:"why"`
	Rule string `json:"rule,omitempty"`
}

// Explainer explains objects by one policy's rules.
type Explainer struct {
	result    compile.Result
	rules     map[string]rule
	converter *conversion.Converter
}

// New takes compiled rules, and the policy that they were compiled from.
func New(policy *v1alpha1.ConversionPolicy, result compile.Result) (*Explainer, error) {
	converter, err := conversion.NewConverter(result.Ruleset)
	if err != nil {
		return nil, err
	}
	return &Explainer{result, rulesOf(policy.Spec.Converter.Declarative), converter}, nil
}

// Versions are those that objects can be converted to.
func (e *Explainer) Versions() []string { return e.result.Ruleset.Versions }

// Report begins a report about objects of the policy.
func (e *Explainer) Report() *Report {
	plan := e.result.Ruleset
	return &Report{Format: Format, Policy: plan.CRD, Hub: plan.Hub, RulesetHash: plan.Hash(), Objects: []Object{}}
}

// Object converts an object to a version, and says of all of its fields, and with
// all of those that it could have, where they come from.
func (e *Explainer) Object(name string, text []byte, to string, all bool) (Object, error) {
	before, err := decode(text)
	if err != nil {
		return Object{}, fmt.Errorf("%s: %w", name, err)
	}
	from := versionOf(before)
	object := Object{Name: name, From: from, To: to}
	way := []string{from, e.result.Ruleset.Hub, to}
	if from == e.result.Ruleset.Hub || to == e.result.Ruleset.Hub {
		way = []string{from, to}
	}
	for i := range way[1:] {
		text, err = e.converter.Convert(nil, text, way[i+1])
		if err != nil {
			return Object{}, fmt.Errorf("%s: %w", name, err)
		}
		after, err := decode(text)
		if err != nil {
			return Object{}, fmt.Errorf("%s: %w", name, err)
		}
		object.Steps = append(object.Steps, e.step(way[i], way[i+1], before, after, all))
		before = after
	}
	return object, nil
}

func (e *Explainer) step(from, to string, before, after any, all bool) Step {
	spoke := from
	if from == e.result.Ruleset.Hub {
		spoke = to
	}
	h := step{
		Explainer: e, from: from, to: to, fromSpoke: from == spoke, before: before, after: after,
		leavesBefore: leavesOf(e.result.Leaves, spoke, from), leavesAfter: leavesOf(e.result.Leaves, spoke, to),
		restorable: e.keptIn(before, to),
	}
	explained := Step{From: from, To: to, Fields: h.fields(), Kept: h.kept(), Carried: h.carried(), Dropped: h.dropped()}
	if all {
		explained.Fields = append(explained.Fields, h.absent()...)
	}
	slices.SortStableFunc(explained.Fields, func(a, b Field) int { return strings.Compare(a.Path, b.Path) })
	return explained
}

func versionOf(tree any) string {
	object, _ := tree.(map[string]any)
	apiVersion, _ := object["apiVersion"].(string)
	return apiVersion[strings.LastIndex(apiVersion, "/")+1:]
}

// decode reads JSON and keeps the text of numbers.
func decode(text []byte) (any, error) {
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.UseNumber()
	var value any
	err := decoder.Decode(&value)
	return value, err
}

// encode writes what was decoded.
func encode(value any) json.RawMessage {
	var out bytes.Buffer
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(false)
	_ = encoder.Encode(value) // what was decoded can be encoded
	return bytes.TrimSuffix(out.Bytes(), []byte("\n"))
}
