// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"encoding/json"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/conversion-operator/conversion-operator/internal/operator/dependents"
	"github.com/conversion-operator/conversion-operator/internal/operator/plan/activation"
	"github.com/conversion-operator/conversion-operator/internal/operator/plan/names"
	"github.com/conversion-operator/conversion-operator/internal/operator/plan/observed"
	"github.com/conversion-operator/conversion-operator/internal/test/expect"
)

// TestFoundDependents: what breaks is counted by version, and a search that is not complete does not
// pass, whatever it found.
func TestFoundDependents(t *testing.T) {
	breaks := func(name, version string) dependents.Dependent {
		return dependents.Dependent{Dependency: dependents.OwnerReference, Impact: dependents.Breaks, Version: version,
			Object: dependents.Object{Kind: "ConfigMap", Namespace: "a", Name: name}}
	}
	harmless := breaks("harmless", "v1beta1")
	harmless.Impact = dependents.Harmless
	cleaned := breaks("cleaned", "v1beta1")
	cleaned.Dependency = dependents.FieldManager
	unread := []dependents.NotChecked{{What: "secrets", Why: "no"}, {What: "widgets.example.com", Why: "no"}}

	cases := map[string]struct {
		report dependents.Report
		want   observed.BackgroundCheck
	}{
		"nothing":                {},
		"what does not count":    {report: dependents.Report{Dependents: []dependents.Dependent{harmless, cleaned}}},
		"what was skipped":       {report: dependents.Report{Skipped: []string{"records of Helm"}}},
		"something was not read": {dependents.Report{NotChecked: unread}, observed.BackgroundCheck{Message: "2 resources or objects could not be read, for example secrets: no"}},
		"of two versions": {
			dependents.Report{Dependents: []dependents.Dependent{breaks("1", "v1beta1"), breaks("2", "v1beta1"), harmless, breaks("3", "v1beta1"), breaks("4", "v1beta1"), breaks("5", "v1alpha1")}},
			observed.BackgroundCheck{Dependents: map[string]observed.Dependents{
				"v1beta1":  {Count: 4, Names: []string{"ConfigMap a/1 (OwnerReference)", "ConfigMap a/2 (OwnerReference)", "ConfigMap a/3 (OwnerReference)"}},
				"v1alpha1": {Count: 1, Names: []string{"ConfigMap a/5 (OwnerReference)"}},
			}}},
		"more than are read": {
			dependents.Report{Dependents: []dependents.Dependent{breaks("1", "v1beta1")}, More: 7},
			observed.BackgroundCheck{Message: "there are more than 10000 dependents",
				Dependents: map[string]observed.Dependents{"v1beta1": {Count: 1, Names: []string{"ConfigMap a/1 (OwnerReference)"}}}}},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			if c.want.Message != "" {
				c.want.Reason, c.want.Lost = "CheckFailed", true
			}
			if c.want.Dependents == nil {
				c.want.Dependents = map[string]observed.Dependents{}
			}
			expect.Equal(t, "dependents", c.want, foundDependents(&c.report))
		})
	}
}

// TestWebhooksAreNoDependents: one of the operator's webhooks names only versions that are not stored.
// The operator changes it when such a version is removed, so it must not block that.
func TestWebhooksAreNoDependents(t *testing.T) {
	crd := &apiextensionsv1.CustomResourceDefinition{}
	crd.Name = "crontabs.example.com"
	crd.Spec = apiextensionsv1.CustomResourceDefinitionSpec{
		Group: "example.com", Names: apiextensionsv1.CustomResourceDefinitionNames{Plural: "crontabs", Kind: "CronTab"}, Scope: apiextensionsv1.NamespaceScoped,
		Versions: []apiextensionsv1.CustomResourceDefinitionVersion{{Name: "v1beta1", Served: true}, {Name: "v1", Served: true, Storage: true}},
	}
	configuration := activation.AdmissionConfiguration(crd.Name, crd, "v1", []activation.AdmissionClient{{Hash: "a", Condition: "true"}})
	target, err := dependents.NewTarget(crd, []string{"v1beta1"})
	expect.NoError(t, err)
	for _, test := range []struct {
		policy string
		want   int
	}{{crd.Name, 0}, {"others.example.com", 1}} {
		configuration.Annotations[names.PolicyAnnotation] = test.policy
		content, err := json.Marshal(configuration)
		expect.NoError(t, err)
		found, err := target.Admission(content)
		expect.NoError(t, err)
		expect.Equal(t, "found of policy "+test.policy, test.want, len(found))
	}
}
