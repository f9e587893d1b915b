// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package crds

import (
	"testing"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// allFields is the managedFields entry of a manager that applied a whole conversion.
const allFields = `{"f:spec":{"f:conversion":{"f:strategy":{},"f:webhook":{"f:clientConfig":{"f:caBundle":{},
	"f:service":{"f:name":{},"f:namespace":{},"f:path":{},"f:port":{}}},"f:conversionReviewVersions":{}}}}}`

const withoutBundle = `{"f:spec":{"f:conversion":{"f:strategy":{},"f:webhook":{"f:clientConfig":{
	"f:service":{"f:name":{},"f:namespace":{},"f:path":{},"f:port":{}}},"f:conversionReviewVersions":{}}}}}`

const onlyBundle = `{"f:spec":{"f:conversion":{"f:webhook":{"f:clientConfig":{"f:caBundle":{}}}}}}`

const onlyStrategy = `{"f:spec":{"f:conversion":{"f:strategy":{}}}}`

// author is the entry of the client that created the CustomResourceDefinition: the object
// spec.conversion, and no field in it.
const author = `{"f:spec":{"f:conversion":{".":{},"f:webhook":{".":{},"f:clientConfig":{}}},"f:group":{}}}`

func viaService() *apiextensionsv1.CustomResourceConversion {
	return &apiextensionsv1.CustomResourceConversion{
		Strategy: apiextensionsv1.WebhookConverter,
		Webhook: &apiextensionsv1.WebhookConversion{
			ConversionReviewVersions: []string{"v1"},
			ClientConfig: &apiextensionsv1.WebhookClientConfig{
				CABundle: []byte("x"),
				Service:  &apiextensionsv1.ServiceReference{Namespace: "a", Name: "b", Path: new("/c"), Port: new(int32(443))},
			},
		},
	}
}

func entry(manager, fields string, second int) metav1.ManagedFieldsEntry {
	return metav1.ManagedFieldsEntry{Manager: manager, Operation: metav1.ManagedFieldsOperationApply, FieldsV1: metav1.NewFieldsV1(fields),
		Time: &metav1.Time{Time: time.Unix(int64(second), 0)}}
}

func TestConversionOwners(t *testing.T) {
	without := viaService()
	without.Webhook.ClientConfig.CABundle = nil
	none := &apiextensionsv1.CustomResourceConversion{Strategy: apiextensionsv1.NoneConverter}
	ofStatus := entry("theirs", allFields, 9)
	ofStatus.Subresource = "status"
	forged := entry("ours", allFields, 3)
	forged.Operation = metav1.ManagedFieldsOperationUpdate
	cases := map[string]struct {
		conversion *apiextensionsv1.CustomResourceConversion
		entries    []metav1.ManagedFieldsEntry
		ours       bool
		writer     string
	}{
		"ours":                    {viaService(), []metav1.ManagedFieldsEntry{entry("author", author, 1), entry("ours", allFields, 2)}, true, ""},
		"ours, and another's":     {viaService(), []metav1.ManagedFieldsEntry{entry("ours", allFields, 2), entry("theirs", onlyBundle, 3)}, true, "theirs"},
		"in two entries":          {viaService(), []metav1.ManagedFieldsEntry{entry("ours", withoutBundle, 2), entry("ours", onlyBundle, 3)}, true, ""},
		"dropped":                 {none, []metav1.ManagedFieldsEntry{entry("author", author, 5), entry("theirs", onlyStrategy, 3)}, false, "theirs"},
		"updated under our name":  {viaService(), []metav1.ManagedFieldsEntry{forged}, false, "ours"},
		"None, applied by us":     {none, []metav1.ManagedFieldsEntry{entry("ours", onlyStrategy, 3)}, true, ""},
		"caBundle changed":        {viaService(), []metav1.ManagedFieldsEntry{entry("ours", withoutBundle, 2), entry("theirs", onlyBundle, 3)}, false, "theirs"},
		"caBundle removed":        {without, []metav1.ManagedFieldsEntry{entry("ours", withoutBundle, 2)}, false, ""},
		"the latest of two":       {none, []metav1.ManagedFieldsEntry{entry("later", onlyStrategy, 4), entry("theirs", onlyBundle, 3)}, false, "later"},
		"only of the status":      {viaService(), []metav1.ManagedFieldsEntry{ofStatus}, false, ""},
		"no account":              {viaService(), nil, false, ""},
		"no account, no block":    {nil, nil, false, ""},
		"an account of no fields": {viaService(), []metav1.ManagedFieldsEntry{{Manager: "ours"}, entry("theirs", "?", 1)}, false, ""},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			crd := &apiextensionsv1.CustomResourceDefinition{ObjectMeta: metav1.ObjectMeta{ManagedFields: c.entries}}
			crd.Spec.Conversion = c.conversion
			if got := ConversionIsBy(crd, "ours"); got != c.ours {
				t.Errorf("ours: %t, want %t", got, c.ours)
			}
			if got := ConversionWriter(crd, "ours"); got != c.writer {
				t.Errorf("the writer is %q, want %q", got, c.writer)
			}
		})
	}
}

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
		"no entry":        {nil, ""},
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
