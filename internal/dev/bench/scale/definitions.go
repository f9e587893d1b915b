// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package scale

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
	"github.com/conversion-operator/conversion-operator/internal/engine/conversion/compile"
	"github.com/conversion-operator/conversion-operator/internal/test/published"
)

// projects have schemas of many kinds and sizes.
var projects = []published.Project{published.ClusterAPI, published.Karpenter, published.Kueue, published.Tekton}

// The versions of a CRD that has a policy.
const (
	oldVersion = "v1alpha1"
	newVersion = "v1"
)

// definitions returns count CRDs in different groups, with the schemas of all projects in turn. The
// versions differ, and rules convert between them.
func definitions(ctx context.Context, count int) ([]*apiextensionsv1.CustomResourceDefinition, error) {
	sources, err := published.Read(ctx, projects...)
	if err != nil {
		return nil, err
	}
	made := make([]*apiextensionsv1.CustomResourceDefinition, count)
	for i := range made {
		made[i] = definition(sources[i%len(sources)], i)
		if result := compile.Compile(made[i], rules(made[i])); result.Ruleset == nil {
			return nil, fmt.Errorf("%s: %v %v", made[i].Name, result.Errors, result.Missing)
		}
	}
	return made, nil
}

func definition(source *apiextensionsv1.CustomResourceDefinition, number int) *apiextensionsv1.CustomResourceDefinition {
	group := fmt.Sprintf("scale-%04d.example.com", number)
	spec := *source.Spec.DeepCopy()
	latest := spec.Versions[len(spec.Versions)-1]
	latest.Name, latest.Served, latest.Storage, latest.Deprecated, latest.DeprecationWarning = newVersion, true, true, false, nil
	spec.Group, spec.Conversion, spec.Versions = group, nil, []apiextensionsv1.CustomResourceDefinitionVersion{latest, older(latest)}
	spec.Names.Categories = nil
	return &apiextensionsv1.CustomResourceDefinition{
		ObjectMeta: metav1.ObjectMeta{Name: spec.Names.Plural + "." + group, Annotations: applied(&spec)},
		Spec:       spec,
	}
}

// older returns the older version of one, in which every field of spec has another name.
func older(latest apiextensionsv1.CustomResourceDefinitionVersion) apiextensionsv1.CustomResourceDefinitionVersion {
	old := *latest.DeepCopy()
	old.Name, old.Storage, old.SelectableFields = oldVersion, false, nil
	root := old.Schema.OpenAPIV3Schema
	spec, exists := root.Properties["spec"]
	if !exists {
		return old
	}
	fields := map[string]apiextensionsv1.JSONSchemaProps{}
	for name := range spec.Properties {
		fields[oldName(name)] = spec.Properties[name]
	}
	for i, name := range spec.Required {
		spec.Required[i] = oldName(name)
	}
	spec.Properties = fields
	// These name fields.
	for _, schema := range []*apiextensionsv1.JSONSchemaProps{root, &spec} {
		schema.XValidations, schema.Default = nil, nil
		schema.OneOf, schema.AnyOf, schema.AllOf, schema.Not = nil, nil, nil, nil
	}
	root.Properties["spec"] = spec
	return old
}

func oldName(field string) string { return "old-" + field }

// rules returns the rules for a definition with two versions.
func rules(crd *apiextensionsv1.CustomResourceDefinition) *v1alpha1.DeclarativeConverter {
	spoke := v1alpha1.Spoke{Version: oldVersion}
	fields := crd.Spec.Versions[0].Schema.OpenAPIV3Schema.Properties["spec"].Properties
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		move := &v1alpha1.MoveRule{From: v1alpha1.Path(".spec." + oldName(name)), To: v1alpha1.Path(".spec." + name)}
		spoke.Rules = append(spoke.Rules, v1alpha1.Rule{Move: move})
	}
	return &v1alpha1.DeclarativeConverter{Hub: newVersion, Spokes: []v1alpha1.Spoke{spoke}}
}

// applied returns the annotation of kubectl apply, unless it would be too large.
func applied(spec *apiextensionsv1.CustomResourceDefinitionSpec) map[string]string {
	text, err := json.Marshal(spec)
	const most = 200 << 10
	if err != nil || len(text) > most {
		return nil
	}
	return map[string]string{"kubectl.kubernetes.io/last-applied-configuration": string(text)}
}
