// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package retirement

import (
	"fmt"
	"slices"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	humanize "k8s.io/apimachinery/pkg/util/duration"
	"k8s.io/utils/ptr"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
	"github.com/conversion-operator/conversion-operator/internal/operator/crds"
	"github.com/conversion-operator/conversion-operator/internal/operator/plan/gate"
	"github.com/conversion-operator/conversion-operator/internal/operator/plan/migration"
	"github.com/conversion-operator/conversion-operator/internal/operator/plan/names"
	"github.com/conversion-operator/conversion-operator/internal/operator/plan/observed"
	"github.com/conversion-operator/conversion-operator/internal/operator/plan/step"
)

// Server-side apply gives spec.versions of a CustomResourceDefinition to one owner, as a whole. So
// the operator patches single fields of it, only on request of a policy, and only if the list is
// unchanged since the decision.

// change sets a field of a version.
func (r *Retirement) change(version, name string, value any) step.VersionChange {
	_, index := crds.Version(r.CRD, version)
	return step.VersionChange{Index: index, Name: version, Field: name, Value: value}
}

// editVersions changes spec.versions, or says what the change waits for. It makes one write at a
// time, and decides about the next one by its result. If a client reverts a write before the
// operator sees it, the same changes are due two generations later.
func (r *Retirement) editVersions(reason, note string, changes ...step.VersionChange) gate.Outcome {
	if theirs := r.byCrossplane(reason, note, changes); theirs.Reason != "" {
		return theirs
	}
	if held := r.heldBack(); held.Reason != "" {
		return held
	}
	if crds.Condition(r.CRD, observed.StorageMigrating) {
		return gate.Waiting(v1alpha1.ReasonForeignStorageMigration,
			"a StorageVersionMigration of the CustomResourceDefinition is in progress: waiting for it to finish before changing spec.versions")
	}
	// Since the status has it, the status has seen no other generation.
	announced, changed := r.Policy.Status.VersionsEdit, r.CRD.Generation-ptr.Deref(r.Policy.Status.CRD, v1alpha1.CRDStatus{}).Generation
	r.Status.VersionsEdit = hashOf(changes)
	switch {
	case announced != r.Status.VersionsEdit || changed == 1:
		// The status has it before it is written.
	case changed != 0 && !crds.VersionsAreBy(r.CRD, names.ManagedBy):
		r.reverted = append(r.reverted, "reverted immediately: "+note)
		r.recordVersionsDrift()
		return r.heldBack()
	default:
		r.work.Do(step.EditVersions{Pin: step.PinOf(r.CRD), Changes: changes, Note: note})
	}
	return gate.Waiting(reason, note)
}

// hashOf identifies changes without the indexes of the versions.
func hashOf(changes []step.VersionChange) string {
	parts := make([]string, 0, 3*len(changes))
	for _, change := range changes {
		parts = append(parts, change.Name, change.Field, fmt.Sprint(change.Value))
	}
	return names.Hash(parts...)[:16]
}

// Versions returns the status of each version, and the removable versions in one line.
func (r *Retirement) Versions() (versions []v1alpha1.VersionStatus, removableNames string) {
	if r.CRD == nil {
		return nil, ""
	}
	var removable []string
	for _, version := range crds.ByPriority(r.CRD) {
		is := r.versionStatus(version)
		if is.SafeToRemove {
			removable = append(removable, is.Name)
		}
		versions = append(versions, is)
	}
	if len(removable) == 0 {
		return versions, "none"
	}
	return versions, strings.Join(removable, ",")
}

func (r *Retirement) versionStatus(version apiextensionsv1.CustomResourceDefinitionVersion) v1alpha1.VersionStatus {
	keeps, blocks := r.keepsServed(version.Name), r.keeps(version.Name)
	return v1alpha1.VersionStatus{
		Name: version.Name, Requested: r.requested(version.Name),
		SafeToUnserve: len(keeps) == 0, SafeToRemove: len(blocks) == 0, BlockedBy: blocks,
	}
}

// keepsServed is what blocks unserving a version.
func (r *Retirement) keepsServed(name string) []v1alpha1.VersionBlock {
	blocks := r.holdsObjects(name)
	if r.onlyServed(name) {
		blocks = append(blocks, v1alpha1.VersionBlock{Reason: v1alpha1.BlockedOnlyServed,
			Message: "it is the only served version: serve " + crds.StorageVersion(r.CRD)})
	}
	blocks = append(blocks, r.losesFeatures(name)...)
	if r.lately(name) {
		blocks = append(blocks, v1alpha1.VersionBlock{Reason: v1alpha1.BlockedRequested,
			Message: "a client requested it recently: move clients to " + crds.StorageVersion(r.CRD)})
	}
	if crds.Serves(r.CRD, name) {
		blocks = append(blocks, r.named(name)...)
	}
	return blocks
}

// keeps is what blocks the removal of a version, in the order in which users should resolve it.
func (r *Retirement) keeps(name string) []v1alpha1.VersionBlock {
	if name == crds.StorageVersion(r.CRD) {
		return r.holdsObjects(name) // nothing else matters before that
	}
	blocks := r.keepsServed(name)
	if len(r.holdsObjects(name)) == 0 {
		blocks = append(blocks, r.strands(name)...) // otherwise a migration follows, which counts
	}
	add := func(reason v1alpha1.VersionBlockReason, message string) {
		blocks = append(blocks, v1alpha1.VersionBlock{Reason: reason, Message: message})
	}
	if r.isHub(name) {
		add(v1alpha1.BlockedHub, "it is the hub: write the rules with another hub in spec.converter.declarative")
	}
	record := r.record(name)
	switch {
	case crds.Serves(r.CRD, name):
		add(v1alpha1.BlockedServed, "it is served: set served: false, or its action in spec.retirement to Unserve or Remove")
	case record != nil && record.UnservedTime != nil && r.Left(record.UnservedTime, r.soak(name)) > 0:
		add(v1alpha1.BlockedSoaking, fmt.Sprintf("it must be unserved for %s before its removal", humanize.HumanDuration(r.soak(name))))
	}
	if record == nil || record.CleanedTime == nil {
		add(v1alpha1.BlockedManagedFields, "objects may have it in metadata.managedFields, and server-side apply would fail without it: "+
			"set its action in spec.retirement to Unserve or Remove, and the operator cleans managedFields")
	}
	if !crds.Serves(r.CRD, name) {
		blocks = append(blocks, r.refused(name)...)
		blocks = append(blocks, r.named(name)...)
	}
	return blocks
}

// holdsObjects blocks a version in which objects are stored, or may be.
func (r *Retirement) holdsObjects(name string) []v1alpha1.VersionBlock {
	switch storage := crds.StorageVersion(r.CRD); {
	case name == storage:
		return []v1alpha1.VersionBlock{{Reason: v1alpha1.BlockedStorageVersion,
			Message: "objects are written in it: make another version the storage version, for example by spec.storageVersion"}}
	case slices.Contains(r.CRD.Status.StoredVersions, name):
		return []v1alpha1.VersionBlock{{Reason: v1alpha1.BlockedStored,
			Message: "objects may be stored in it until a migration has rewritten all of them: " + r.howMigrated()}}
	case r.migration.Status.MigrationEvidence == nil:
		return []v1alpha1.VersionBlock{{Reason: v1alpha1.BlockedNotProven,
			Message: fmt.Sprintf("no migration of this policy has proven that every object is stored in %s: %s", storage, r.howMigrated())}}
	}
	return nil
}

func (r *Retirement) howMigrated() string {
	if r.Policy.Spec.Migration.Mode == v1alpha1.MigrationAutomatic {
		return "see the condition " + v1alpha1.StorageMigratedCondition
	}
	return migration.HowToMigrate(r.Policy)
}

func (r *Retirement) onlyServed(name string) bool {
	return slices.Equal(crds.ServedVersions(r.CRD), []string{name})
}

// isHub reports that several other versions convert through this one. With one other version,
// nothing needs to be converted after its removal.
func (r *Retirement) isHub(name string) bool {
	declarative := r.Policy.Spec.Converter.Declarative
	return declarative != nil && string(declarative.Hub) == name && len(r.CRD.Spec.Versions) > 2
}
