// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package audit

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
)

func TestPruned(t *testing.T) {
	const one = "versions: {v1 served storage: {a: string}, v2 served: {a: string}}\nstatus: {storedVersions: [v1]}\n"
	const changed = one + "metadata: {uid: u, generation: 2, managedFields: [{manager: m, operation: Apply, apiVersion: apiextensions.k8s.io/v1, time: 2025-12-30T00:00:00Z, fieldsType: FieldsV1, fieldsV1: {f:spec: {f:versions: {}}}}]}\n"
	day := func(n int) time.Time { return time.Date(2025, 12, n, 0, 0, 0, 0, time.UTC) }
	failed := Migration{Name: "m", Failed: "7 of 10", Ended: day(28)}
	migrated := func(migrations ...Migration) func(*Observed) {
		return func(o *Observed) { o.Migrations = migrations }
	}
	objects := func(objects ...Object) func(*Observed) { return func(o *Observed) { o.Objects = objects } }
	proven := func(storage string) *v1alpha1.ConversionPolicy {
		policy := &v1alpha1.ConversionPolicy{}
		policy.Status.CRD, policy.Status.MigrationEvidence = &v1alpha1.CRDStatus{UID: "u", StorageVersion: storage}, &v1alpha1.MigrationEvidence{}
		policy.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ReadyCondition, Status: metav1.ConditionTrue}}
		return policy
	}
	const likely = "Warning Likely PrunedAfterFailure -: status.storedVersions lists only v1, although StorageVersionMigration m has failed (7 of 10): objects that it did not rewrite are still stored in another version"
	const possible = "Note Possible StoredVersionsDoubtful -: status.storedVersions lists only v1, and 1 of 1 checked objects were last written only at v2, before spec.versions last changed: they may be stored in an older version (n/o)"
	run(t, map[string]check{
		"no migration":          {crd: one},
		"one that succeeded":    {crd: one, observe: migrated(Migration{Name: "m", Succeeded: true, Ended: day(28)})},
		"one that failed":       {crd: one, observe: migrated(failed), want: []string{likely}},
		"one that was repeated": {crd: one, observe: migrated(failed, Migration{Name: "n", Succeeded: true, Ended: day(29)})},
		"one that failed later": {crd: one, observe: migrated(failed, Migration{Name: "l", Succeeded: true, Ended: day(27)}), want: []string{likely}},
		"one that runs":         {crd: one, observe: migrated(Migration{Name: "m"})},
		"failed, but not pruned": {crd: "versions: {v1 served storage: {a: string}, v2 served: {a: string}}\nstatus: {storedVersions: [v2, v1]}", observe: migrated(failed), want: []string{
			"Warning Certain StoredVersionOld v2: status.storedVersions lists v2 beside the storage version v1: the API server refuses an upgrade that drops v2",
			"Warning Certain MigrationFailed -: StorageVersionMigration m has failed: 7 of 10"}},
		"failed, with evidence":                    {crd: changed, observe: func(o *Observed) { migrated(failed)(o); o.Policy = proven("v1") }},
		"failed, with evidence of another version": {crd: changed, observe: func(o *Observed) { migrated(failed)(o); o.Policy = proven("v2") }, want: []string{likely}},

		"written before at another version":     {crd: changed, observe: objects(Object{"n/o", day(29), []string{"v2"}, nil}), want: []string{possible}},
		"written since":                         {crd: changed, observe: objects(Object{"n/o", day(31), []string{"v2"}, nil})},
		"written at the storage version":        {crd: changed, observe: objects(Object{"n/o", day(29), []string{"v2", "v1"}, nil})},
		"written at an unknown version":         {crd: changed, observe: objects(Object{"n/o", day(29), nil, nil})},
		"definition changed at an unknown time": {crd: one + "metadata: {generation: 2}", observe: objects(Object{"n/o", day(29), []string{"v2"}, nil})},
		"never changed":                         {crd: one, observe: objects(Object{"n/o", day(29), []string{"v2"}, nil})},
		"migrated since": {crd: changed, observe: func(o *Observed) {
			objects(Object{"n/o", day(29), []string{"v2"}, nil})(o)
			migrated(Migration{Name: "m", Succeeded: true, Ended: day(31)})(o)
		}},
	})
}

func TestManagers(t *testing.T) {
	const crd = "versions: {v1beta1 served: {a: string}, v1 served storage: {a: string}, v2 served: {a: string}}\nstatus: {storedVersions: [v1]}\n"
	written := func(objects ...Object) func(*Observed) { return func(o *Observed) { o.Objects = objects } }
	by := func(name string, writers ...Writer) Object { return Object{Name: name, Writers: writers} }
	const old = "Note Certain ManagedFieldsOld v1beta1: in 2 of 3 objects that the audit read, metadata.managedFields has writes at v1beta1, by flux (Apply), kubectl (Update) (n/a, n/b): server-side apply of these objects fails once the version is removed"
	const gone = "Warning Certain ManagedFieldsOld v1alpha1: in 1 of 1 objects that the audit read, metadata.managedFields has writes at v1alpha1, by kubectl (Update) (n/a): the definition no longer has the version, so server-side apply of these objects fails"
	run(t, map[string]check{
		"no objects":             {crd: crd},
		"the storage version":    {crd: crd, observe: written(by("n/a", Writer{"v1", "kubectl (Update)"}))},
		"a newer version":        {crd: crd, observe: written(by("n/a", Writer{"v2", "kubectl (Update)"}))},
		"an old version":         {crd: crd, observe: written(by("n/b", Writer{"v1beta1", "kubectl (Update)"}), by("n/c"), by("n/a", Writer{"v1beta1", "kubectl (Update)"}, Writer{"v1beta1", "flux (Apply)"}, Writer{"v1", "x"})), want: []string{old}},
		"a version that is gone": {crd: crd, observe: written(by("n/a", Writer{"v1alpha1", "kubectl (Update)"})), want: []string{gone}},
	})
}
