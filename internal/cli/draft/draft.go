// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package draft

import (
	"errors"
	"fmt"
	"maps"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
	"github.com/conversion-operator/conversion-operator/internal/engine/preserved"
	"github.com/conversion-operator/conversion-operator/internal/operator/crds"
)

// Format is the format of a Draft as JSON. It increases when an earlier reader would misread it.
const Format = 1

// Draft is a policy, with the evidence for each rule and what it leaves open.
type Draft struct {
	Format int    `json:"format"`
	CRD    string `json:"crd"`
	Spoke  string `json:"spoke"`
	Hub    string `json:"hub"`
	// Pairs is the number of objects that were read at both versions.
	Pairs int `json:"pairs,omitempty"`
	// Reproduced is the number of these of which the policy gives one object exactly, from the other one: a
	// client may have written either of them.
	Reproduced int    `json:"reproduced,omitempty"`
	Rules      []Rule `json:"rules"`
	// Ambiguous are fields without a rule for which there may be one.
	Ambiguous []Ambiguous `json:"ambiguous"`
	// Unpaired are fields that one version lacks, where that has others that the first one lacks. Nothing shows whether
	// any of these correspond.
	Unpaired []Ambiguous `json:"unpaired"`
	// Preserved are other fields that one version lacks. They need no rule.
	Preserved []Place `json:"preserved"`
	// Differences are fields that the policy converts in another way than was observed.
	Differences []Difference `json:"differences"`
	// Equivalent are fields that differ only in notation, or if their value is false, 0 or empty.
	Equivalent []Difference `json:"equivalent"`
	// Probe says how a converter was asked, nil if none was.
	Probe *Probe `json:"probe,omitempty"`
	// Policy has the drafted rules after those that it already had.
	Policy Policy `json:"policy"`
}

// Policy is a ConversionPolicy with the fields that a draft sets.
type Policy struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Metadata   struct {
		Name string `json:"name"`
	} `json:"metadata"`
	Spec struct {
		Converter struct {
			Type        v1alpha1.ConverterType         `json:"type"`
			Declarative *v1alpha1.DeclarativeConverter `json:"declarative"`
		} `json:"converter"`
	} `json:"spec"`
}

// Rule is a rule of the policy, and why it is there.
type Rule struct {
	Rule v1alpha1.Rule `json:"rule"`
	// Score is the likeness of the fields in the schemas, from 0 to 1; 0 if it does not matter.
	Score float64 `json:"score,omitempty"`
	// Why says what in the schemas suggests the rule.
	Why []string `json:"why"`
	// Confirmed is the number of observed conversions or pairs that the rule gives exactly, Values that of their
	// different values, and Wrong that of those with another result.
	Confirmed int `json:"confirmed"`
	Values    int `json:"values"`
	Wrong     int `json:"wrong"`
	// Unconfirmed is set if no observation had a value for the rule, and no hint asked for it: it may be wrong.
	Unconfirmed bool `json:"unconfirmed,omitempty"`
	// Example of a wrong one.
	Example string   `json:"example,omitempty"`
	Rivals  []string `json:"rivals,omitempty"`
}

// Place is a field of a version.
type Place struct {
	Version string `json:"version"`
	Path    string `json:"path"`
}

// Ambiguous is a field without a rule.
type Ambiguous struct {
	Place
	Why        string   `json:"why"`
	Candidates []string `json:"candidates"`
}

// Difference is a field that the policy converts in another way than was observed.
type Difference struct {
	// To is the version that objects were converted to.
	To   string `json:"to"`
	Path string `json:"path"`
	// Count is the number of conversions; Draft and Observed are the values in one of them.
	Count    int    `json:"count"`
	Draft    string `json:"draft"`
	Observed string `json:"observed"`
	// always is set if the draft gives no value, and the observed one is the same each time.
	always bool
}

// Pair is an object that was read at both versions, as JSON.
type Pair struct{ Spoke, Hub []byte }

// MaxPairs is the number of pairs that are read; more do not count.
const MaxPairs = 1000

// Input is what a policy is drafted from.
type Input struct {
	CRD        *apiextensionsv1.CustomResourceDefinition
	Spoke, Hub string
	// Hints are fields that correspond, as paths of the spoke and of the hub.
	Hints [][2]string
	// Rules are valid rules that the policy already has, for a draft from the schemas alone. The draft has no other
	// rule for their fields.
	Rules []v1alpha1.Rule
	Pairs []Pair
	// Convert asks a converter, nil if there is none.
	Convert Convert
	// Progress is called after each request to it.
	Progress func(done, total int)
}

// IsAmbiguous reports whether a person must decide something.
func (d *Draft) IsAmbiguous() bool {
	return len(d.Ambiguous) > 0 || len(d.Unpaired) > 0 || len(d.Differences) > 0 || d.Unconfirmed() > 0 || d.Reproduced < d.Pairs ||
		d.Probe != nil && len(d.Probe.Problems) > 0
}

// Unconfirmed counts the rules that may be wrong.
func (d *Draft) Unconfirmed() (count int) {
	for _, rule := range d.Rules {
		if rule.Unconfirmed {
			count++
		}
	}
	return count
}

// drafter drafts one policy.
type drafter struct {
	input   Input
	guesser *guesser
	judge   *judge
	probe   *Probe
	refuted []*hypothesis
	// unexplained are the fields that differ when a field changes.
	unexplained map[*field]map[*field]bool
	differ      map[spotOf]*Difference
	// leftOut are the hypotheses that may be right and are no rules.
	leftOut map[*field][]*hypothesis
	// probed are the fields about which a converter was asked, and known those with a value in an observation.
	probed, known map[*field]bool
}

// Make drafts a policy. It fails if the CustomResourceDefinition has no two such versions, or is not valid,
// and if the converter fails.
func Make(input Input) (*Draft, error) {
	spoke, hub, err := versionsOf(input)
	if err != nil {
		return nil, err
	}
	input.Pairs = input.Pairs[:min(len(input.Pairs), MaxPairs)]
	if len(input.Rules) > 0 && (len(input.Pairs) > 0 || input.Convert != nil) {
		return nil, errors.New("rules of a policy can only be completed from the schemas")
	}
	d := &drafter{input: input}
	d.judge = &judge{
		crd: crds.Without(input.CRD, func(name string) bool { return name != spoke.Name && name != hub.Name }), spoke: spoke.Name, hub: hub.Name,
		kept: input.Rules, pairs: func() *pairs { return d.guesser.pairs },
	}
	if _, _, err := d.judge.compiled(nil); err != nil {
		return nil, err
	}
	d.guesser = newGuesser(schemaOf(spoke), schemaOf(hub))
	d.judge.roots = map[bool]*field{true: d.guesser.hub, false: d.guesser.spoke}
	d.guesser.keep(input.Rules)
	if err := d.guesser.take(input.Hints); err != nil {
		return nil, err
	}
	d.guesser.guess()
	if err := d.observe(); err != nil {
		return nil, err
	}
	all := d.guesser.accepted
	if len(d.judge.observations) > 0 {
		all, err = d.learn()
		if err != nil {
			return nil, err
		}
	}
	return d.finish(all)
}

func versionsOf(input Input) (spoke, hub *apiextensionsv1.CustomResourceDefinitionVersion, err error) {
	spoke, _ = crds.Version(input.CRD, input.Spoke)
	hub, _ = crds.Version(input.CRD, input.Hub)
	switch {
	case spoke == nil:
		return nil, nil, fmt.Errorf("%s has no version %q", input.CRD.Name, input.Spoke)
	case hub == nil:
		return nil, nil, fmt.Errorf("%s has no version %q", input.CRD.Name, input.Hub)
	case spoke == hub:
		return nil, nil, fmt.Errorf("both versions are %s: there is nothing to convert", spoke.Name)
	}
	return spoke, hub, nil
}

func schemaOf(version *apiextensionsv1.CustomResourceDefinitionVersion) *props {
	if version.Schema == nil || version.Schema.OpenAPIV3Schema == nil {
		return &props{Type: "object"}
	}
	return version.Schema.OpenAPIV3Schema
}

// observe reads the pairs of objects, or asks the converter.
func (d *drafter) observe() error {
	for _, pair := range d.input.Pairs {
		spoke, err := preserved.Decode(pair.Spoke)
		if err != nil {
			return err
		}
		hub, err := preserved.Decode(pair.Hub)
		if err != nil {
			return err
		}
		left, right := entriesOf(d.guesser.spoke, spoke), entriesOf(d.guesser.hub, hub)
		d.judge.observations = append(d.judge.observations,
			&observation{toHub: true, object: bare(spoke), in: left, out: right},
			&observation{object: bare(hub), in: right, out: left})
	}
	if d.input.Convert == nil {
		return nil
	}
	p := &prober{drafter: d, bases: map[bool]entries{}, report: &Probe{Problems: []string{}, NotProbed: []Place{}}}
	err := p.run()
	d.probe = p.report
	d.judge.observations = append(d.judge.observations, p.observations...)
	return err
}

// bare returns an object without annotations: what they preserve is not converted.
func bare(object any) []byte {
	members, _ := object.(map[string]any)
	members = maps.Clone(members)
	if metadata, isObject := members["metadata"].(map[string]any); isObject {
		metadata = maps.Clone(metadata)
		delete(metadata, "annotations")
		members["metadata"] = metadata
	}
	return preserved.Encode(members)
}
