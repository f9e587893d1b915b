// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package plan_test

import (
	"encoding/json"
	"slices"
	"strings"
	"time"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
	"github.com/conversion-operator/conversion-operator/internal/crds"
	"github.com/conversion-operator/conversion-operator/internal/migration/contract"
	"github.com/conversion-operator/conversion-operator/internal/plan/names"
	"github.com/conversion-operator/conversion-operator/internal/plan/observed"
	"github.com/conversion-operator/conversion-operator/internal/plan/step"
)

// editVersions changes spec.versions as the API server would.
func (w *world) editVersions(s step.EditVersions) {
	w.t.Helper()
	versions := w.versions()
	for _, change := range s.Changes {
		if versions[change.Index]["name"] != change.Name {
			w.t.Fatalf("version %d is not %s", change.Index, change.Name)
		}
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
	if err != nil {
		w.t.Fatal(err)
	}
	var versions []map[string]any
	if err := json.Unmarshal(text, &versions); err != nil {
		w.t.Fatal(err)
	}
	return versions
}

func (w *world) writeVersions(manager string, versions []map[string]any) {
	w.t.Helper()
	text, err := json.Marshal(versions)
	if err != nil {
		w.t.Fatal(err)
	}
	crd := w.observed.CRD.DeepCopy()
	crd.Spec.Versions = nil
	if err := json.Unmarshal(text, &crd.Spec.Versions); err != nil {
		w.t.Fatal(err)
	}
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

// later lets time pass.
func (w *world) later(by time.Duration) {
	w.observed.Now = w.observed.Now.Add(by)
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

// migrated lets the migration that runs end well.
func (w *world) migrated() {
	w.t.Helper()
	w.record(contract.Record{State: contract.StateCompleted, Counters: contract.Counters{Total: 1000, Rewritten: 1000}})
	w.converge()
}

// tellVersions tells what the status says of each version.
func (w *world) tellVersions() {
	for _, version := range w.observed.Policy.Status.Versions {
		var is []string
		for name, so := range map[string]bool{
			"served": version.Served, "storage": version.Storage, "stored": version.Stored, "deprecated": version.Deprecated,
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
