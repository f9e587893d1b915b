// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package audit

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apiversion "k8s.io/apimachinery/pkg/version"

	"github.com/conversion-operator/conversion-operator/internal/operator/crds"
)

const curePruned = "do not drop a version from spec.versions before every object is rewritten: migrate again, and check that no object failed. " +
	"A ConversionPolicy with migration.mode Automatic proves it"

// pruned finds incomplete status.storedVersions. Kubernetes' own migration of stored
// versions removes the old ones even if it has failed, and so do users who want to
// continue with an upgrade.
func pruned(o *Observed) []Finding {
	storage := crds.StorageVersion(o.CRD)
	alone := crds.StoredOnlyIn(o.CRD, storage)
	if o.hasEvidence(storage) {
		return nil
	}
	if failed := o.failedMigration(); failed != nil {
		if alone {
			return []Finding{o.certain(PrunedAfterFailure, "",
				fmt.Sprintf("status.storedVersions lists only %s, although StorageVersionMigration %s has failed (%s): objects that it did not rewrite are still stored in another version",
					storage, failed.Name, failed.Failed), curePruned).as(SeverityWarning, Likely)}
		}
		return []Finding{o.certain(MigrationFailed, "",
			fmt.Sprintf("StorageVersionMigration %s has failed: %s", failed.Name, failed.Failed), "fix what it names, and migrate again")}
	}
	if alone && o.CRD.Generation > 1 {
		return o.doubtfulObjects(storage)
	}
	return nil
}

// hasEvidence reports whether the operator has evidence that all objects are in the
// storage version.
func (o *Observed) hasEvidence(storage string) bool {
	if o.Policy == nil || o.Policy.Status.MigrationEvidence == nil || o.Policy.Status.CRD == nil {
		return false
	}
	of := o.Policy.Status.CRD
	return of.UID == o.CRD.UID && of.StorageVersion == storage
}

// failedMigration returns a failed migration without a later success, the first by name.
func (o *Observed) failedMigration() *Migration {
	for i := range o.Migrations {
		failed := &o.Migrations[i]
		repaired := func(other Migration) bool { return other.Succeeded && !other.Ended.Before(failed.Ended) }
		if failed.Failed != "" && !slices.ContainsFunc(o.Migrations, repaired) {
			return failed
		}
	}
	return nil
}

// doubtfulObjects finds objects that may be from a time when another version was the storage
// version: last written before spec.versions changed, and never at the current storage
// version. The version of a write does not prove the stored version, so this is a hint.
func (o *Observed) doubtfulObjects(storage string) []Finding {
	changed := versionsWritten(o.CRD.ManagedFields)
	migrated := func(migration Migration) bool { return migration.Succeeded && migration.Ended.After(changed) }
	if changed.IsZero() || slices.ContainsFunc(o.Migrations, migrated) {
		return nil
	}
	var names, versions []string
	for _, object := range o.Objects {
		if object.Written.Before(changed) && len(object.Versions) > 0 && !slices.Contains(object.Versions, storage) {
			names, versions = append(names, object.Name), append(versions, object.Versions...)
		}
	}
	if len(names) == 0 {
		return nil
	}
	slices.Sort(names)
	slices.Sort(versions)
	return []Finding{o.certain(StoredVersionsDoubtful, "",
		fmt.Sprintf("status.storedVersions lists only %s, and %d of %d checked objects were last written only at %s, before spec.versions last changed: they may be stored in an older version (%s)",
			storage, len(names), len(o.Objects), few(slices.Compact(versions)), few(names)), curePruned).as(SeverityNote, Possible)}
}

// versionsWritten returns when spec.versions was last written, by any recorded field
// manager; zero if there is none.
func versionsWritten(entries []metav1.ManagedFieldsEntry) time.Time {
	var last time.Time
	for _, entry := range entries {
		var owned struct {
			Spec map[string]json.RawMessage `json:"f:spec"`
		}
		if entry.Subresource != "" || entry.FieldsV1 == nil || entry.Time == nil || json.Unmarshal(entry.FieldsV1.GetRawBytes(), &owned) != nil {
			continue
		}
		if _, has := owned.Spec["f:versions"]; has && entry.Time.After(last) {
			last = entry.Time.Time
		}
	}
	return last
}

// managers finds versions older than the storage version in metadata.managedFields of the objects
// that the audit reads anyway. It reads only some: dependents reads all.
func managers(o *Observed) []Finding {
	storage := crds.StorageVersion(o.CRD)
	names, clients := map[string][]string{}, map[string][]string{}
	for _, object := range o.Objects {
		for _, writer := range object.Writers {
			if apiversion.CompareKubeAwareVersionStrings(writer.Version, storage) >= 0 {
				continue
			}
			names[writer.Version] = append(names[writer.Version], object.Name)
			clients[writer.Version] = append(clients[writer.Version], writer.Manager)
		}
	}
	var found []Finding
	for old := range names {
		for _, list := range []map[string][]string{names, clients} {
			slices.Sort(list[old])
			list[old] = slices.Compact(list[old])
		}
		evidence := fmt.Sprintf("in %d of %d objects that the audit read, metadata.managedFields has writes at %s, by %s (%s)",
			len(names[old]), len(o.Objects), old, few(clients[old]), few(names[old]))
		if version, _ := crds.Version(o.CRD, old); version == nil {
			found = append(found, o.certain(ManagedFieldsOld, old, evidence+": the definition no longer has the version, so server-side apply of these objects fails",
				fmt.Sprintf("set metadata.managedFields of the objects to [{}]; conversion-operator dependents %s --version %s finds all of them", o.CRD.Name, old)).as(SeverityWarning, Certain))
			continue
		}
		found = append(found, o.certain(ManagedFieldsOld, old, evidence+": server-side apply of these objects fails once the version is removed",
			fmt.Sprintf("move these clients to %s; before you remove the version, conversion-operator dependents %s --version %s finds all that names it", storage, o.CRD.Name, old)))
	}
	slices.SortFunc(found, func(a, b Finding) int { return cmp.Compare(a.Version, b.Version) })
	return found
}
