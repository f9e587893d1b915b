// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package dependents

import (
	"fmt"
	"strings"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/conversion-operator/conversion-operator/internal/test/expect"
)

// definition returns a CustomResourceDefinition of CronTabs. The flags of a version follow it: s is
// served, S is the storage version, and r has the subresource scale.
func definition(versions ...string) *apiextensionsv1.CustomResourceDefinition {
	crd := &apiextensionsv1.CustomResourceDefinition{ObjectMeta: metav1.ObjectMeta{Name: "crontabs.example.com"}}
	crd.Spec.Group, crd.Spec.Scope = "example.com", apiextensionsv1.NamespaceScoped
	crd.Spec.Names = apiextensionsv1.CustomResourceDefinitionNames{Plural: "crontabs", Kind: "CronTab"}
	for _, version := range versions {
		name, flags, _ := strings.Cut(version, ":")
		crd.Spec.Versions = append(crd.Spec.Versions, apiextensionsv1.CustomResourceDefinitionVersion{
			Name: name, Served: strings.ContainsAny(flags, "s"), Storage: strings.ContainsAny(flags, "S"),
		})
		if strings.Contains(flags, "r") {
			crd.Spec.Versions[len(crd.Spec.Versions)-1].Subresources = &apiextensionsv1.CustomResourceSubresources{Scale: &apiextensionsv1.CustomResourceSubresourceScale{}}
		}
	}
	return crd
}

// target returns the one with v1beta1, which goes, and v1.
func target(t *testing.T) *Target {
	t.Helper()
	target, err := NewTarget(definition("v1beta1:s", "v1:sS"), []string{"v1beta1"})
	expect.NoError(t, err)
	return target
}

func TestNewTarget(t *testing.T) {
	for name, test := range map[string]struct {
		crd      *apiextensionsv1.CustomResourceDefinition
		versions []string
		goes     string
		to       string
		err      string
	}{
		"one version":         {definition("v1beta1:s", "v1:sS"), []string{"v1beta1"}, "v1beta1", "v1", ""},
		"an absent version":   {definition("v1beta1:s", "v1:sS"), []string{"v1alpha1"}, "v1alpha1", "v1", ""},
		"all others":          {definition("v1beta1:s", "v1:sS", "v2:s"), nil, "v1alpha1 v1beta1 v2", "v1", ""},
		"the storage version": {definition("v1beta1:s", "v1:sS"), []string{"v1"}, "", "", "version v1 of crontabs.example.com is the storage version: first store objects in another version"},
		"an unserved storage": {definition("v1beta1:s", "v1:S", "v2:s"), []string{"v1beta1"}, "v1beta1", "v2", ""},
		"nothing served":      {definition("v1beta1:s", "v1:S"), []string{"v1beta1"}, "", "", "crontabs.example.com serves no version that stays: serve the storage version v1 first"},
		"nothing served, all": {definition("v1beta1:s", "v1:S"), nil, "", "", "crontabs.example.com serves no version that stays: serve the storage version v1 first"},
	} {
		t.Run(name, func(t *testing.T) {
			target, err := NewTarget(test.crd, test.versions)
			if err != nil || test.err != "" {
				expect.Equal(t, "error", test.err, fmt.Sprint(err))
				return
			}
			var goes []string
			for _, version := range []string{"v1alpha1", "v1beta1", "v1", "v2"} {
				if target.Goes(version) {
					goes = append(goes, version)
				}
			}
			expect.Equal(t, "goes", test.goes, strings.Join(goes, " "))
			expect.Equal(t, "to", test.to, target.To)
		})
	}
}

func TestNames(t *testing.T) {
	target := target(t)
	for apiVersion, want := range map[string]bool{
		"example.com/v1beta1": true, "example.com/v1": false, "example.org/v1beta1": false, "v1beta1": false, "example.com/": false, "": false,
		"example.com/v1beta1/x": false, "sub.example.com/v1beta1": false,
	} {
		_, names := target.Names(apiVersion, "CronTab")
		expect.Equal(t, apiVersion, want, names)
		_, names = target.Names(apiVersion, "Other")
		expect.Equal(t, apiVersion+" names another kind", false, names)
	}
}
