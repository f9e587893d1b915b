// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package realworld

import (
	"slices"
	"testing"

	"github.com/openkruise/rollouts/api/v1alpha1"
	"github.com/openkruise/rollouts/api/v1beta1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
)

// keptAnnotation is a difference of both kinds.
var keptAnnotation = difference{"v1beta1", ".metadata.annotations**", func(_, ours any) bool { return ours == nil || ours == absent },
	"theirs keeps the annotation beside the field; ours moves it"}

// TestBatchRelease: OpenKruise Rollouts' v1beta1.
func TestBatchRelease(t *testing.T) {
	p := kind[v1alpha1.BatchRelease, v1beta1.BatchRelease]("openkruise-batchreleases", "github.com/openkruise/rollouts", "config/crd/bases/rollouts.kruise.io_batchreleases.yaml")
	p.examples = map[string][]any{
		".spec.releasePlan.rollingStyle": {"Canary", "Partition", "BlueGreen"},
		"v1alpha1:.metadata.annotations": {style("partition"), style("Canary"), style("bluegreen"), style("other")},
	}
	const none = "theirs loses an empty list; ours writes it"
	unstyled := func(theirs, ours any) bool {
		return isZero(ours) && (theirs == "" || show(theirs) == `{"rollouts.kruise.io/rolling-style":""}`)
	}
	p.differences = []difference{
		keptAnnotation,
		{"v1alpha1", ".spec.releasePlan.batches", emptied, none},
		{"v1beta1", ".spec.releasePlan.batches", emptied, none},
		{"v1alpha1", ".metadata.annotations**", unstyled, "theirs writes an empty annotation for an empty style; ours writes nothing"},
		{"v1alpha1", ".spec.targetReference.workloadRef", onlyTheirs, "theirs writes a reference without a name where there is none; ours writes nothing"},
		{"v1beta1", ".spec.releasePlan.rollingStyle", onlyOurs, "theirs ignores the field of v1alpha1, and reads only the annotation; ours reads both"},
	}
	p.adapt = func(crd *apiextensionsv1.CustomResourceDefinition) {
		require(crd.Spec.Versions[0].Schema.OpenAPIV3Schema, "spec", "targetReference", "workloadRef")
	}
	p.check(t)
}

// TestRollout: OpenKruise Rollouts' v1beta1.
func TestRollout(t *testing.T) {
	p := kind[v1alpha1.Rollout, v1beta1.Rollout]("openkruise-rollouts", "github.com/openkruise/rollouts", "config/crd/bases/rollouts.kruise.io_rollouts.yaml")
	p.examples = map[string][]any{
		"v1beta1:.spec.strategy.canary.steps[*].traffic": {"20%", "100%", "5%"},
		"v1alpha1:.metadata.annotations":                 {style("partition"), style("Canary"), map[string]any{"rollouts.kruise.io/trafficrouting": "routing"}},
	}
	p.adapt = func(crd *apiextensionsv1.CustomResourceDefinition) {
		require(crd.Spec.Versions[0].Schema.OpenAPIV3Schema, "spec", "objectRef", "workloadRef")
		require(crd.Spec.Versions[0].Schema.OpenAPIV3Schema, "spec", "strategy", "canary")
		require(crd.Spec.Versions[1].Schema.OpenAPIV3Schema, "spec", "strategy", "canary")
		// Of a blue-green rollout, the functions convert the metadata only, and they end with a panic on the way back.
		delete(crd.Spec.Versions[1].Schema.OpenAPIV3Schema.Properties["spec"].Properties["strategy"].Properties, "blueGreen")
	}
	const forgotten = "theirs loses disableGenerateCanaryService, which both versions have; ours copies it"
	p.differences = []difference{
		keptAnnotation,
		{"v1alpha1", ".spec.strategy.canary.disableGenerateCanaryService", onlyOurs, forgotten},
		{"v1beta1", ".spec.strategy.canary.disableGenerateCanaryService", onlyOurs, forgotten},
		{"v1alpha1", ".spec.strategy.canary", onlyTheirs, "theirs writes an empty canary strategy for an object without a spec; ours writes nothing"},
		{"v1alpha1", `.metadata.annotations["rollouts.kruise.io/trafficrouting"]`, onlyOurs, "theirs loses an empty reference; ours writes it"},
	}
	p.check(t)
}

func style(name string) any { return map[string]any{"rollouts.kruise.io/rolling-style": name} }

// require makes a field required, with all objects around it. The functions of OpenKruise Rollouts end with a
// panic where it is missing.
func require(schema *apiextensionsv1.JSONSchemaProps, names ...string) {
	if len(names) == 0 {
		return
	}
	if !slices.Contains(schema.Required, names[0]) {
		schema.Required = append(schema.Required, names[0])
	}
	inner := schema.Properties[names[0]]
	require(&inner, names[1:]...)
	schema.Properties[names[0]] = inner
}
