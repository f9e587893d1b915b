// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package plan_test

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
	"github.com/conversion-operator/conversion-operator/internal/migration/contract"
	"github.com/conversion-operator/conversion-operator/internal/operator/crds"
	"github.com/conversion-operator/conversion-operator/internal/operator/plan/names"
	"github.com/conversion-operator/conversion-operator/internal/operator/plan/observed"
	"github.com/conversion-operator/conversion-operator/internal/operator/plan/step"
	"github.com/conversion-operator/conversion-operator/internal/test/expect"
)

// Each of these methods changes one thing, and then lets the world come to rest.

// later lets time pass.
func (w *world) later(by time.Duration) {
	w.t.Helper()
	w.pass(by)
	w.converge()
}

// settleAPIServers lets API servers follow the last change.
func (w *world) settleAPIServers() {
	w.t.Helper()
	w.later(w.observed.Settings.PropagationDelay)
}

// define creates or changes the CustomResourceDefinition.
func (w *world) define(crd string) {
	w.t.Helper()
	w.applyCRD(crd)
	w.converge()
}

// activate does so for a policy whose migrations wait for a trigger.
func (w *world) activate(crd string) {
	w.t.Helper()
	w.observed.Policy.Spec.Migration.Mode = v1alpha1.MigrationOnTrigger
	w.define(crd)
}

// trigger asks for a migration.
func (w *world) trigger(text string) {
	w.t.Helper()
	w.observed.Policy.Spec.Migration.Trigger = text
	w.converge()
}

// reports lets the latest migration write its record.
func (w *world) reports(record contract.Record) {
	w.t.Helper()
	w.record(record)
	w.converge()
}

// completes lets the latest migration end, which has rewritten all objects.
func (w *world) completes(objects int64) {
	w.t.Helper()
	w.reports(contract.Record{State: contract.StateCompleted, Counters: contract.Counters{Total: objects, Rewritten: objects}})
}

// useRules lets the rule of the tests split at another separator.
func (w *world) useRules(separator string) {
	w.t.Helper()
	w.changeRules(separator)
	w.converge()
}

// pause changes spec.paused.
func (w *world) pause(is bool) {
	w.t.Helper()
	w.observed.Policy.Spec.Paused = is
	w.converge()
}

// loseConversion lets a field manager drop spec.conversion.
func (w *world) loseConversion(manager string) {
	w.t.Helper()
	w.drop(manager)
	w.converge()
}

// putVersions lets a field manager write spec.versions.
func (w *world) putVersions(manager string, versions []map[string]any) {
	w.t.Helper()
	w.writeVersions(manager, versions)
	w.converge()
}

// runImage changes the image of the converter.
func (w *world) runImage(image string) {
	w.t.Helper()
	w.useImage(image)
	w.converge()
}

// moveTo moves the policy to a fleet, or to pods of its own if the name is empty.
func (w *world) moveTo(fleet string) {
	w.t.Helper()
	w.move(fleet)
	w.converge()
}

// editVersions changes spec.versions as the API server would.
func (w *world) editVersions(s step.EditVersions) {
	w.t.Helper()
	versions := w.versions()
	for _, change := range s.Changes {
		expect.Equal[any](w.t, "version that is changed", change.Name, versions[change.Index]["name"])
		switch {
		case change.Field == "":
			versions = slices.Delete(versions, change.Index, change.Index+1)
		case change.Value == nil:
			delete(versions[change.Index], change.Field)
		default:
			versions[change.Index][change.Field] = change.Value
		}
	}
	w.writeVersions(names.ManagedBy, versions)
}

func (w *world) versions() []map[string]any {
	w.t.Helper()
	text, err := json.Marshal(w.observed.CRD.Spec.Versions)
	expect.NoError(w.t, err)
	var versions []map[string]any
	expect.NoError(w.t, json.Unmarshal(text, &versions))
	return versions
}

func (w *world) writeVersions(manager string, versions []map[string]any) {
	w.t.Helper()
	text, err := json.Marshal(versions)
	expect.NoError(w.t, err)
	crd := w.observed.CRD.DeepCopy()
	crd.Spec.Versions = nil
	expect.NoError(w.t, json.Unmarshal(text, &crd.Spec.Versions))
	for _, version := range crd.Spec.Versions {
		if version.Storage && !slices.Contains(crd.Status.StoredVersions, version.Name) {
			crd.Status.StoredVersions = append(crd.Status.StoredVersions, version.Name)
		}
	}
	for _, stored := range crd.Status.StoredVersions {
		if there, _ := crds.Version(crd, stored); there == nil {
			w.t.Fatalf("the API server refuses to remove %s: objects may be stored in it", stored)
		}
	}
	crd.Generation++
	w.observed.CRD, w.versionsBy = crd, manager
	w.account(manager)
}

// retire sets what is to become of a version.
func (w *world) retire(version string, action v1alpha1.RetirementAction) {
	w.observed.Policy.Spec.Retirement = []v1alpha1.Retirement{{Version: v1alpha1.VersionName(version), Action: action}}
	w.observed.Policy.Generation++
}

// ask lets an API server have counted requests for a version.
func (w *world) ask(version string, requests int64) {
	w.requested.Requests = countedBy(1767225600, map[string]int64{version: requests})
}

// tellVersions tells what the status says of each version.
func (w *world) tellVersions() {
	crd := w.observed.Policy.Status.CRD
	for _, version := range w.observed.Policy.Status.Versions {
		var is []string
		for name, so := range map[string]bool{
			"served": slices.Contains(crd.ServedVersions, version.Name), "storage": crd.StorageVersion == version.Name,
			"stored":          slices.Contains(crd.StoredVersions, version.Name),
			"safe to unserve": version.SafeToUnserve, "safe to remove": version.SafeToRemove,
		} {
			if so {
				is = append(is, name)
			}
		}
		slices.Sort(is)
		line := version.Name + ": " + strings.Join(is, ", ")
		for i, block := range version.BlockedBy {
			line += map[bool]string{true: "; blocked by ", false: ", "}[i == 0] + string(block.Reason)
		}
		w.tell("  | %s; requested %s", line, version.Requested)
	}
	w.tell("  | removable: %s", w.observed.Policy.Status.Removable)
	for _, record := range w.observed.Policy.Status.Retirement {
		w.tell("  | of %s is remembered: deprecated %t, unserved %t, cleared %t, removed %t", record.Version,
			record.DeprecatedTime != nil, record.UnservedTime != nil, record.CleanedTime != nil, record.RemovedTime != nil)
	}
}

// rightsOf names what the manager's own rights on objects are for.
var rightsOf = map[string]string{names.ReadRights(crontabs): "read", names.CleanRights(crontabs): "clear"}

// rights tells whether rights of a name exist.
func (w *world) rights(name string) *bool {
	switch rightsOf[name] {
	case "read":
		return &w.observed.ReadRights
	case "clear":
		return &w.observed.CleanRights
	}
	return &w.observed.Rights
}

// countedBy are the counts of the only API server.
func countedBy(started int64, counts map[string]int64) *observed.Requests {
	return &observed.Requests{Servers: []observed.ServerRequests{{Started: started, Counts: counts}}}
}

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
		for name := range strings.SplitSeq(path, "/") {
			if fields["f:"+name] == nil {
				fields["f:"+name] = map[string]any{}
			}
			fields = fields["f:"+name].(map[string]any)
		}
	}
	w.observed.CRD.ManagedFields = nil
	for _, owner := range slices.Sorted(maps.Keys(owned)) {
		text, err := json.Marshal(map[string]any{"f:spec": map[string]any{"f:conversion": owned[owner]}})
		expect.NoError(w.t, err)
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
	expect.NoError(w.t, err)
	var walk func(prefix string, content map[string]any)
	walk = func(prefix string, content map[string]any) {
		for key, value := range content {
			if below, isMap := value.(map[string]any); isMap {
				walk(prefix+key+"/", below)
				continue
			}
			text, err := json.Marshal(value)
			expect.NoError(w.t, err)
			found[prefix+key] = string(text)
		}
	}
	walk("", content)
	return found
}
