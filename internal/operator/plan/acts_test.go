// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package plan_test

import (
	"slices"
	"strings"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
	"github.com/conversion-operator/conversion-operator/internal/migration/contract"
	"github.com/conversion-operator/conversion-operator/internal/operator/plan/names"
	"github.com/conversion-operator/conversion-operator/internal/operator/plan/observed"
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
	w.Drop(manager)
	w.converge()
}

// putVersions lets a field manager write spec.versions.
func (w *world) putVersions(manager string, versions []map[string]any) {
	w.t.Helper()
	w.WriteVersions(manager, versions)
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

// countedBy are the counts of the only API server.
func countedBy(started int64, counts map[string]int64) *observed.Requests {
	return &observed.Requests{Servers: []observed.ServerRequests{{Started: started, Counts: counts}}}
}

// change lets a field manager change something in the conversion that there is.
func (w *world) change(manager string, change func(*apiextensionsv1.WebhookClientConfig)) {
	w.t.Helper()
	conversion := w.observed.CRD.Spec.Conversion.DeepCopy()
	change(conversion.Webhook.ClientConfig)
	w.Write(manager, conversion)
}
