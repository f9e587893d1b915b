// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package crds

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestByPriority(t *testing.T) {
	crd := &apiextensionsv1.CustomResourceDefinition{}
	for _, name := range []string{"v1alpha1", "foo10", "v10", "v1", "v2beta1", "v1beta2", "v1beta1", "foo1", "v2"} {
		crd.Spec.Versions = append(crd.Spec.Versions, apiextensionsv1.CustomResourceDefinitionVersion{Name: name})
	}
	var got []string
	for _, version := range ByPriority(crd) {
		got = append(got, version.Name)
	}
	want := []string{"v10", "v2", "v1", "v2beta1", "v1beta2", "v1beta1", "v1alpha1", "foo1", "foo10"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("order (-want +got):\n%s", diff)
	}
	if version, at := Version(crd, "v10"); version == nil || version.Name != "v10" || at != 2 {
		t.Errorf("v10 is %v at %d", version, at)
	}
	if version, at := Version(crd, "v3"); version != nil || at != -1 {
		t.Errorf("v3 is %v at %d", version, at)
	}
}

func TestVersionsWriter(t *testing.T) {
	const ours = "conversion-operator"
	entry := func(manager, subresource, fields string, minute int) metav1.ManagedFieldsEntry {
		at := metav1.NewTime(time.Date(2026, 1, 1, 0, minute, 0, 0, time.UTC))
		return metav1.ManagedFieldsEntry{Manager: manager, Subresource: subresource, FieldsV1: metav1.NewFieldsV1(fields), Time: &at}
	}
	const list = `{"f:spec":{"f:versions":{}}}`
	for name, test := range map[string]struct {
		entries []metav1.ManagedFieldsEntry
		ours    bool
		writer  string
	}{
		"no entry":             {},
		"us":                   {[]metav1.ManagedFieldsEntry{entry(ours, "", list, 1)}, true, ""},
		"them":                 {[]metav1.ManagedFieldsEntry{entry("argocd", "", list, 1)}, false, "argocd"},
		"us and them":          {[]metav1.ManagedFieldsEntry{entry(ours, "", list, 2), entry("argocd", "", list, 1)}, true, "argocd"},
		"the latest of them":   {[]metav1.ManagedFieldsEntry{entry("argocd", "", list, 2), entry("helm", "", list, 1)}, false, "argocd"},
		"something else":       {[]metav1.ManagedFieldsEntry{entry(ours, "", `{"f:spec":{"f:conversion":{}}}`, 1)}, false, ""},
		"the status":           {[]metav1.ManagedFieldsEntry{entry("kube-apiserver", "status", list, 1)}, false, ""},
		"what cannot be read":  {[]metav1.ManagedFieldsEntry{entry("argocd", "", `{`, 1)}, false, ""},
		"without its own time": {[]metav1.ManagedFieldsEntry{{Manager: "argocd", FieldsV1: metav1.NewFieldsV1(list)}}, false, "argocd"},
	} {
		t.Run(name, func(t *testing.T) {
			crd := &apiextensionsv1.CustomResourceDefinition{ObjectMeta: metav1.ObjectMeta{ManagedFields: test.entries}}
			if got := VersionsAreBy(crd, ours); got != test.ours {
				t.Errorf("by us: %t, want %t", got, test.ours)
			}
			if got := VersionsWriter(crd, ours); got != test.writer {
				t.Errorf("by %q, want %q", got, test.writer)
			}
		})
	}
}
