// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package crds

import (
	"testing"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestStoredVersionsWriter(t *testing.T) {
	const stored, conditions = `{"f:status":{"f:storedVersions":{}}}`, `{"f:status":{"f:conditions":{}}}`
	entry := func(manager, fields string, minute int) metav1.ManagedFieldsEntry {
		return metav1.ManagedFieldsEntry{Manager: manager, Subresource: "status", FieldsV1: metav1.NewFieldsV1(fields),
			Time: &metav1.Time{Time: time.Date(2026, 1, 1, 0, minute, 0, 0, time.UTC)}}
	}
	cases := map[string]struct {
		entries []metav1.ManagedFieldsEntry
		want    string
	}{
		"nobody":          {nil, ""},
		"others' fields":  {[]metav1.ManagedFieldsEntry{entry("kube-apiserver", conditions, 1), {Manager: "kubectl"}}, ""},
		"one":             {[]metav1.ManagedFieldsEntry{entry("kubectl", stored, 1), entry("kube-apiserver", conditions, 2)}, "kubectl"},
		"the last of two": {[]metav1.ManagedFieldsEntry{entry("helm", stored, 3), entry("kubectl", stored, 1)}, "helm"},
		"no account":      {[]metav1.ManagedFieldsEntry{entry("kubectl", "[", 1)}, ""},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			crd := &apiextensionsv1.CustomResourceDefinition{ObjectMeta: metav1.ObjectMeta{ManagedFields: c.entries}}
			if got := StoredVersionsWriter(crd); got != c.want {
				t.Errorf("written by %q, want %q", got, c.want)
			}
		})
	}
}
