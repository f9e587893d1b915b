// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package crds

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func crontabs() *apiextensionsv1.CustomResourceDefinition {
	return &apiextensionsv1.CustomResourceDefinition{
		Spec: apiextensionsv1.CustomResourceDefinitionSpec{
			Group: "example.com",
			Names: apiextensionsv1.CustomResourceDefinitionNames{Plural: "crontabs"},
			Versions: []apiextensionsv1.CustomResourceDefinitionVersion{
				{Name: "v1", Served: true, Storage: true}, {Name: "v1beta1", Served: true}, {Name: "v1alpha1"},
			},
		},
		Status: apiextensionsv1.CustomResourceDefinitionStatus{
			StoredVersions: []string{"v1beta1", "v1"},
			Conditions: []apiextensionsv1.CustomResourceDefinitionCondition{
				{Type: apiextensionsv1.Established, Status: apiextensionsv1.ConditionTrue},
				{Type: apiextensionsv1.Terminating, Status: apiextensionsv1.ConditionFalse},
			},
		},
	}
}

func TestVersions(t *testing.T) {
	crd := crontabs()
	if got := StorageVersion(crd); got != "v1" {
		t.Errorf("storage version %q, want v1", got)
	}
	if diff := cmp.Diff([]string{"v1", "v1beta1"}, ServedVersions(crd)); diff != "" {
		t.Error(diff)
	}
	for version, want := range map[string]bool{"v1": true, "v1beta1": true, "v1alpha1": false, "v2": false} {
		if got := Serves(crd, version); got != want {
			t.Errorf("serves %s: %t, want %t", version, got, want)
		}
	}
	if StoredOnlyIn(crd, "v1") {
		t.Error("objects may be stored at v1beta1 too")
	}
	crd.Status.StoredVersions = []string{"v1"}
	if !StoredOnlyIn(crd, "v1") {
		t.Error("objects are stored at v1 only")
	}
	if got := Resource(crd, "v1").String(); got != "example.com/v1, Resource=crontabs" {
		t.Errorf("resource %q", got)
	}
}

func TestVersionsInUse(t *testing.T) {
	crd := &apiextensionsv1.CustomResourceDefinition{}
	crd.Spec.Versions = []apiextensionsv1.CustomResourceDefinitionVersion{
		{Name: "v1", Served: true}, {Name: "v2"}, {Name: "v3"}, {Name: "v4", Storage: true}}
	crd.Status.StoredVersions = []string{"v2", "v4"}
	if diff := cmp.Diff([]string{"v1", "v2", "v4"}, VersionsInUse(crd)); diff != "" {
		t.Errorf("versions (-want +got):\n%s", diff)
	}
}

func TestStrategy(t *testing.T) {
	crd := crontabs()
	if got := Strategy(crd); got != apiextensionsv1.NoneConverter {
		t.Errorf("without spec.conversion the strategy is %q, want None", got)
	}
	crd.Spec.Conversion = &apiextensionsv1.CustomResourceConversion{Strategy: apiextensionsv1.WebhookConverter}
	if got := Strategy(crd); got != apiextensionsv1.WebhookConverter {
		t.Errorf("the strategy is %q, want Webhook", got)
	}
}

func TestCondition(t *testing.T) {
	crd := crontabs()
	for kind, want := range map[apiextensionsv1.CustomResourceDefinitionConditionType]bool{
		apiextensionsv1.Established: true, apiextensionsv1.Terminating: false, apiextensionsv1.NamesAccepted: false,
	} {
		if got := Condition(crd, kind); got != want {
			t.Errorf("condition %s is %t, want %t", kind, got, want)
		}
	}
}

func TestInjector(t *testing.T) {
	cases := map[string]struct {
		annotations map[string]string
		want        string
	}{
		"none":         {nil, ""},
		"cert-manager": {map[string]string{"cert-manager.io/inject-ca-from": "a/b"}, "cert-manager.io/inject-ca-from"},
		"service-ca":   {map[string]string{"service.beta.openshift.io/inject-cabundle": "true"}, "service.beta.openshift.io/inject-cabundle"},
		"switched off": {map[string]string{"service.beta.openshift.io/inject-cabundle": "false"}, ""},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			crd := &apiextensionsv1.CustomResourceDefinition{ObjectMeta: metav1.ObjectMeta{Annotations: c.annotations}}
			if got := Injector(crd); got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}
