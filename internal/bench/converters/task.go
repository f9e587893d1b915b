// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package converters

import (
	_ "embed" // for the manifests below
	"encoding/json"
	"fmt"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
	"github.com/conversion-operator/conversion-operator/internal/conversion"
	"github.com/conversion-operator/conversion-operator/internal/conversion/compile"
)

const (
	group = "bench.example.com"
	kind  = "Task"
)

// keptAnnotation and keptOwner are where our converter preserves spec.owner, which v2 lacks. The
// other converters use the same place.
const keptOwner = "/spec/owner"

var keptAnnotation = conversion.AnnotationName("tasks."+group, "v1")

// kept is the value of the annotation, as far as these converters need it.
type kept struct {
	Format int            `json:"format"`
	Fields map[string]any `json:"fields"`
}

// keep returns the annotation that preserves an owner.
func keep(owner any) (string, error) {
	const format = 2
	text, err := json.Marshal(kept{format, map[string]any{keptOwner: owner}})
	return string(text), err
}

// cronFields are the fields of v2 for the words of v1's cron string, in order.
var cronFields = []string{"minute", "hour", "dayOfMonth", "month", "dayOfWeek"}

// policies maps values of v1 to those of v2.
var policies = map[string]string{"Allow": "Parallel", "Forbid": "Serial", "Replace": "Latest"}

//go:embed crd.yaml
var crdYAML []byte

//go:embed rules.yaml
var rulesYAML []byte

// Definition returns the kind in a group.
func Definition(group string) (*apiextensionsv1.CustomResourceDefinition, error) {
	crd := &apiextensionsv1.CustomResourceDefinition{}
	if err := yaml.UnmarshalStrict(crdYAML, crd); err != nil {
		return nil, fmt.Errorf("crd.yaml: %w", err)
	}
	crd.Name, crd.Spec.Group = crd.Spec.Names.Plural+"."+group, group
	return crd, nil
}

// Rules returns the rules between the versions of the kind.
func Rules() (*v1alpha1.DeclarativeConverter, error) {
	rules := &v1alpha1.DeclarativeConverter{}
	if err := yaml.UnmarshalStrict(rulesYAML, rules); err != nil {
		return nil, fmt.Errorf("rules.yaml: %w", err)
	}
	return rules, nil
}

// newRuleset compiles the rules for the kind in a group.
func newRuleset(group string) (*conversion.Ruleset, error) {
	crd, err := Definition(group)
	if err != nil {
		return nil, err
	}
	rules, err := Rules()
	if err != nil {
		return nil, err
	}
	result := compile.Compile(crd, rules)
	if result.Ruleset == nil {
		return nil, fmt.Errorf("the rules for %s are refused: %v %v", crd.Name, result.Errors, result.Missing)
	}
	return result.Ruleset, nil
}
