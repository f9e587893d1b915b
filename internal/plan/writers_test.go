// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package plan_test

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/conversion-operator/conversion-operator/internal/plan/names"
)

// write lets a field manager write spec.conversion, and keeps the account that
// the API server keeps of it: who changes a field owns it from then on, who
// removes one leaves nothing behind, and the operator, which applies, owns
// whatever it writes.
func (w *world) write(manager string, conversion *apiextensionsv1.CustomResourceConversion) {
	w.t.Helper()
	crd := w.observed.CRD
	before, after := w.fields(crd.Spec.Conversion), w.fields(conversion)
	owners := map[string]string{}
	for path, value := range after {
		owners[path] = w.owners[path]
		if before[path] != value || manager == names.ManagedBy {
			owners[path] = manager
		}
	}
	if !maps.Equal(before, after) {
		crd.Generation++
	}
	w.owners, crd.Spec.Conversion = owners, conversion
	w.account(manager)
}

// change lets a field manager change something in the conversion that there is.
func (w *world) change(manager string, change func(*apiextensionsv1.WebhookClientConfig)) {
	w.t.Helper()
	conversion := w.observed.CRD.Spec.Conversion.DeepCopy()
	change(conversion.Webhook.ClientConfig)
	w.write(manager, conversion)
}

// drop does what kubectl replace does with a manifest without spec.conversion:
// the API server fills in its default.
func (w *world) drop(manager string) {
	w.t.Helper()
	w.write(manager, &apiextensionsv1.CustomResourceConversion{Strategy: apiextensionsv1.NoneConverter})
}

// account writes metadata.managedFields; the latest writer has the latest time.
func (w *world) account(latest string) {
	w.t.Helper()
	owned := map[string]map[string]any{}
	for path, owner := range w.owners {
		if owned[owner] == nil {
			owned[owner] = map[string]any{}
		}
		fields := owned[owner]
		for step := range strings.SplitSeq(path, "/") {
			if fields["f:"+step] == nil {
				fields["f:"+step] = map[string]any{}
			}
			fields = fields["f:"+step].(map[string]any)
		}
	}
	w.observed.CRD.ManagedFields = nil
	for _, owner := range slices.Sorted(maps.Keys(owned)) {
		text, err := json.Marshal(map[string]any{"f:spec": map[string]any{"f:conversion": owned[owner]}})
		if err != nil {
			w.t.Fatal(err)
		}
		operation := metav1.ManagedFieldsOperationUpdate
		if owner == names.ManagedBy {
			operation = metav1.ManagedFieldsOperationApply
		}
		entry := metav1.ManagedFieldsEntry{Manager: owner, Operation: operation, FieldsV1: metav1.NewFieldsV1(string(text)), Time: &metav1.Time{}}
		if owner == latest {
			entry.Time.Time = w.observed.Now
		}
		w.observed.CRD.ManagedFields = append(w.observed.CRD.ManagedFields, entry)
	}
	if w.versionsBy != "" {
		w.observed.CRD.ManagedFields = append(w.observed.CRD.ManagedFields, metav1.ManagedFieldsEntry{
			Manager: w.versionsBy, Operation: metav1.ManagedFieldsOperationUpdate, Time: &metav1.Time{Time: w.observed.Now},
			FieldsV1: metav1.NewFieldsV1(`{"f:spec":{"f:versions":{}}}`)})
	}
}

// fields are the fields of a conversion by their paths.
func (w *world) fields(conversion *apiextensionsv1.CustomResourceConversion) map[string]string {
	w.t.Helper()
	found := map[string]string{}
	if conversion == nil {
		return found
	}
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(conversion)
	if err != nil {
		w.t.Fatal(err)
	}
	var walk func(prefix string, content map[string]any)
	walk = func(prefix string, content map[string]any) {
		for key, value := range content {
			if below, isMap := value.(map[string]any); isMap {
				walk(prefix+key+"/", below)
				continue
			}
			text, err := json.Marshal(value)
			if err != nil {
				w.t.Fatal(err)
			}
			found[prefix+key] = string(text)
		}
	}
	walk("", content)
	return found
}
