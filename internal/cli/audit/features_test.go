// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package audit

import (
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
)

// TestFeatures: a version without scale is preferred, now or after an upgrade.
func TestFeatures(t *testing.T) {
	const one = "versions: {v1beta1 served storage: {a: string}}"
	const both = "versions: {v1 served storage: {a: string}, v1beta1 served: {a: string}}"
	// scaled gives v1beta1 a scale, a selectable field and a column, and the kind a category.
	scaled := func(crd *apiextensionsv1.CustomResourceDefinition) {
		last := &crd.Spec.Versions[len(crd.Spec.Versions)-1]
		last.Subresources = &apiextensionsv1.CustomResourceSubresources{Scale: &apiextensionsv1.CustomResourceSubresourceScale{}}
		last.SelectableFields = []apiextensionsv1.SelectableField{{JSONPath: ".a"}}
		last.AdditionalPrinterColumns = []apiextensionsv1.CustomResourceColumnDefinition{{Name: "A"}}
		crd.Spec.Names.Categories = []string{"all"}
	}
	lacks := func(kind string) []string {
		return []string{
			"Warning Certain " + kind + ": clients that name no version use v1, which lacks the subresource scale of v1beta1: HorizontalPodAutoscalers, PodDisruptionBudgets and kubectl scale fail",
			"Warning Certain " + kind + ": clients that name no version use v1, which lacks the selectable field .a of v1beta1: requests with this field selector fail",
			"Note Certain " + kind + ": clients that name no version use v1, which lacks the columns A of v1beta1: kubectl get does not show them",
		}
	}
	const scaler = "Error Certain AutoscalerWithoutScale v1: HorizontalPodAutoscalers read the scale at the preferred version, whatever version they name, and v1 has no subresource scale: shop/web"
	upgrade := func(next func(*apiextensionsv1.CustomResourceDefinition)) func(*Observed) {
		return func(o *Observed) {
			scaled(o.CRD)
			o.Next, o.Autoscalers = definition(t, both), []string{"shop/web"}
			next(o.Next)
		}
	}
	run(t, map[string]check{
		"a preferred version without them": {crd: both, observe: func(o *Observed) { scaled(o.CRD) }, want: lacks("PreferredVersionLacks v1")},
		"with an autoscaler": {crd: both, observe: func(o *Observed) { scaled(o.CRD); o.Autoscalers = []string{"shop/web"} },
			want: append(lacks("PreferredVersionLacks v1"), scaler)},
		"an upgrade that keeps them": {crd: one, observe: upgrade(func(next *apiextensionsv1.CustomResourceDefinition) {
			scaled(next)
			next.Spec.Versions[0].Subresources, next.Spec.Versions[0].SelectableFields = next.Spec.Versions[1].Subresources, next.Spec.Versions[1].SelectableFields
			next.Spec.Versions[0].AdditionalPrinterColumns = next.Spec.Versions[1].AdditionalPrinterColumns
		})},
		"an upgrade without them": {crd: one, observe: upgrade(scaled), want: append(lacks("UpgradeLosesFeature v1"), scaler)},
		"an upgrade of the names": {crd: one, observe: upgrade(func(next *apiextensionsv1.CustomResourceDefinition) {
			scaled(next)
			next.Spec.Versions, next.Spec.Names.Categories = next.Spec.Versions[1:], nil
			next.Spec.Versions[0].Storage = true
		}), want: []string{"Warning Certain UpgradeLosesFeature -: the kind loses the category all: kubectl get of the category does not list the kind"}},
		"an upgrade that serves nothing": {crd: both, observe: func(o *Observed) {
			scaled(o.CRD)
			o.Next, o.Autoscalers = definition(t, "versions: {v1 storage: {a: string}}"), []string{"shop/web"}
		}, want: append(lacks("PreferredVersionLacks v1"),
			"Warning Certain UpgradeLosesFeature -: the kind loses the category all: kubectl get of the category does not list the kind")},
	})
}

// TestSelectableFieldsRefused is about manifests: a definition in a cluster was accepted.
func TestSelectableFieldsRefused(t *testing.T) {
	const differ = "versions: {v1 served storage: {a: string}, v1beta1: {a: string, b: string}}"
	selectable := func(crd *apiextensionsv1.CustomResourceDefinition) *apiextensionsv1.CustomResourceDefinition {
		for i := range crd.Spec.Versions {
			crd.Spec.Versions[i].SelectableFields = []apiextensionsv1.SelectableField{{JSONPath: ".a"}}
		}
		return crd
	}
	refused := []string{"Error Likely SelectableFieldsRefused -: all versions have the same selectableFields, and their schemas differ: API servers refuse that, until https://github.com/kubernetes/kubernetes/issues/140689 is fixed"}
	run(t, map[string]check{
		"in a file":    {crd: differ, observe: func(o *Observed) { selectable(o.CRD); o.Live = false }, want: refused},
		"in a cluster": {crd: differ, observe: func(o *Observed) { selectable(o.CRD) }},
		"an upgrade":   {crd: differ, observe: func(o *Observed) { o.Next = selectable(definition(t, differ)) }, want: refused},
	})
}
