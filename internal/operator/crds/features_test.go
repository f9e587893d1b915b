// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package crds_test

import (
	"slices"
	"strings"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"

	"github.com/conversion-operator/conversion-operator/internal/operator/crds"
	"github.com/conversion-operator/conversion-operator/internal/test/expect"
)

// crontabs returns a CustomResourceDefinition with these versions, and names of the kind.
func crontabs(t *testing.T, versions, names string) *apiextensionsv1.CustomResourceDefinition {
	t.Helper()
	crd := &apiextensionsv1.CustomResourceDefinition{}
	expect.NoError(t, yaml.UnmarshalStrict([]byte("{metadata: {name: crontabs.example.com}, spec: {group: example.com, scope: Namespaced, "+
		"names: {plural: crontabs, singular: crontab, kind: CronTab, listKind: CronTabList"+names+"}, versions: ["+versions+"]}}"), crd))
	return crd
}

func texts(losses []crds.Loss) string {
	var all []string
	for _, loss := range losses {
		all = append(all, loss.String())
	}
	return strings.Join(all, "\n")
}

const (
	withScale = ", subresources: {status: {}, scale: {specReplicasPath: .spec.replicas, statusReplicasPath: .status.replicas, labelSelectorPath: .status.selector}}"
	columns   = ", additionalPrinterColumns: [{name: Ready, type: string, jsonPath: .status.ready}], selectableFields: [{jsonPath: .spec.host}]"
)

func TestPreferredLacks(t *testing.T) {
	for name, test := range map[string]struct{ versions, preferred, want string }{
		"the same":                  {"{name: v1, served: true" + withScale + "}, {name: v1beta1, served: true" + withScale + "}", "v1", ""},
		"not served":                {"{name: v1, served: true}, {name: v1beta1" + withScale + "}", "v1", ""},
		"by priority, not by order": {"{name: v1beta1, served: true}, {name: v1, served: true" + withScale + "}, {name: v2" + "}", "v1", ""},
		"subresources": {"{name: v1beta1, served: true" + withScale + "}, {name: v1, served: true}", "v1",
			"clients that name no version use v1, which lacks the subresource scale of v1beta1: HorizontalPodAutoscalers, PodDisruptionBudgets and kubectl scale fail\n" +
				"clients that name no version use v1, which lacks the subresource status of v1beta1: writes of the status by kubectl --subresource fail, and other writes may change the status"},
		"a selector": {"{name: v1beta1, served: true" + withScale + "}, {name: v1, served: true, subresources: {status: {}, scale: {specReplicasPath: .spec.replicas}}}", "v1",
			"clients that name no version use v1, which lacks scale.labelSelectorPath of v1beta1: HorizontalPodAutoscalers and PodDisruptionBudgets find no pods"},
		"of several versions": {"{name: v1alpha1, served: true" + columns + "}, {name: v1beta1, served: true" + columns + "}, {name: v1, served: true}", "v1",
			"clients that name no version use v1, which lacks the selectable field .spec.host of v1beta1: requests with this field selector fail\n" +
				"clients that name no version use v1, which lacks the columns Ready of v1beta1: kubectl get does not show them"},
		"nothing is served": {"{name: v1" + withScale + "}", "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			crd := crontabs(t, test.versions, "")
			if preferred := crds.Preferred(crd); preferred != nil || test.preferred != "" {
				expect.Equal(t, "preferred version", test.preferred, preferred.Name)
			}
			expect.Equal(t, "losses", test.want, texts(crds.PreferredLacks(crd)))
		})
	}
}

func TestLosses(t *testing.T) {
	old := crontabs(t, "{name: v1beta1, served: true"+withScale+columns+"}", ", shortNames: [ct, cron], categories: [all]")
	const names, scale = ", shortNames: [ct, cron, c], categories: [all]", "{name: v1beta1, served: true" + withScale + columns + "}"
	for name, test := range map[string]struct {
		after, names, want string
		breaks             bool
	}{
		"nothing":            {scale, names, "", false},
		"an old version":     {scale + ", {name: v1alpha1, served: true}", names, "", false},
		"an unserved one":    {scale + ", {name: v1}", names, "", false},
		"the version itself": {"{name: v1beta1, served: true" + withScale + "}", names, "v1beta1 loses the selectable field .spec.host: requests with this field selector fail\nv1beta1 loses the columns Ready: kubectl get does not show them", true},
		"a column":           {strings.Replace(scale, "name: Ready", "name: READY", 1), names, "v1beta1 loses the columns Ready: kubectl get does not show them", false},
		"names":              {scale, ", shortNames: [cron]", "the kind loses the short name ct: kubectl does not find the kind by it\nthe kind loses the category all: kubectl get of the category does not list the kind", true},
		"another preferred version": {scale + ", {name: v1, served: true, subresources: {status: {}}" + columns + "}", names,
			"clients that name no version use v1, which lacks the subresource scale of v1beta1: HorizontalPodAutoscalers, PodDisruptionBudgets and kubectl scale fail", true},
	} {
		t.Run(name, func(t *testing.T) {
			losses := crds.Losses(old, crontabs(t, test.after, test.names))
			expect.Equal(t, "losses", test.want, texts(losses))
			expect.Equal(t, "breaks", test.breaks, slices.ContainsFunc(losses, crds.Loss.Breaks))
			expect.Equal(t, "has a message", test.breaks, crds.Breaking(losses) != "")
		})
	}
	three := crontabs(t, "{name: v2, served: true"+withScale+"}, {name: v1, served: true}, {name: v1beta1, served: true"+withScale+"}", "")
	rest := crds.Without(three, func(version string) bool { return version == "v2" })
	expect.Equal(t, "scale", []bool{true, false}, []bool{crds.HasScale(crds.Preferred(three)), crds.HasScale(crds.Preferred(rest))})
	expect.Equal(t, "losses", 2, len(crds.Losses(three, rest)))
	losses := crds.Losses(crontabs(t, "{name: v1, served: true"+withScale+columns+"}", ", shortNames: [a, b]"), crontabs(t, "{name: v1, served: true}", ""))
	expect.Equal(t, "message", "v1 loses the subresource scale: HorizontalPodAutoscalers, PodDisruptionBudgets and kubectl scale fail; "+
		"v1 loses the subresource status: writes of the status by kubectl --subresource fail, and other writes may change the status; "+
		"v1 loses the selectable field .spec.host: requests with this field selector fail; 2 more", crds.Breaking(losses))
}
