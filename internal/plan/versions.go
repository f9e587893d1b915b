// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"fmt"
	"slices"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	humanize "k8s.io/apimachinery/pkg/util/duration"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
	"github.com/conversion-operator/conversion-operator/internal/crds"
)

// spec.versions of a CustomResourceDefinition is one list, which server-side apply
// gives to one owner. So the operator patches single fields of it, only where a
// policy asks for that, and only as the list was when it decided.

// EditVersions changes fields of single versions in spec.versions, in one patch,
// unless the CustomResourceDefinition changed since it was observed.
type EditVersions struct {
	Pin     Pin
	Changes []VersionChange
	// Note says it in words.
	Note string
}

// VersionChange is one change of one version.
type VersionChange struct {
	// Index is the version's place in spec.versions, and Name its name there.
	Index int
	Name  string
	// Field that is to have the Value. Without a field the version is removed.
	Field string
	Value any
}

func (EditVersions) step() {}

// change names a field of a version and what it is to be.
func (s *state) change(version, name string, value any) VersionChange {
	_, index := crds.Version(s.CRD, version)
	return VersionChange{Index: index, Name: version, Field: name, Value: value}
}

// editVersions writes spec.versions, or says what it waits for. One write at a
// time: the next is decided by what comes of this one. Somebody who takes a write
// back before it is seen has changed the CustomResourceDefinition once more: what
// was to be written to one generation is still to be written two later.
func (s *state) editVersions(reason, note string, changes ...VersionChange) outcome {
	if held := s.heldBack(); held.reason != "" {
		return held
	}
	if crds.Condition(s.CRD, storageMigrating) {
		return waiting(v1alpha1.ReasonForeignStorageMigration,
			"a StorageVersionMigration of the CustomResourceDefinition is in flight: waits for its end before changing spec.versions")
	}
	announced, generation := s.Policy.Status.VersionsEdit, s.CRD.Generation
	s.plan.Status.VersionsEdit = &v1alpha1.VersionsEdit{Note: note, CRDGeneration: generation}
	switch {
	case announced == nil || announced.Note != note || announced.CRDGeneration == generation-1:
		// It is written down first.
	case announced.CRDGeneration != generation && !crds.VersionsAreBy(s.CRD, ManagedBy):
		s.takenBack = append(s.takenBack, "took back at once: "+note)
		s.recordVersionsDrift()
		return s.heldBack()
	case !s.switched:
		s.switched = true
		s.do(EditVersions{Pin: s.pin(), Changes: changes, Note: note})
	}
	return waiting(reason, note)
}

// reportVersions says of each version whether it may go, whatever the gates say.
func (s *state) reportVersions() {
	s.plan.Status.Versions, s.plan.Status.Removable = nil, ""
	if s.CRD == nil {
		return
	}
	var removable []string
	for _, version := range crds.ByPriority(s.CRD) {
		is := s.versionStatus(version)
		if is.SafeToRemove {
			removable = append(removable, is.Name)
		}
		s.plan.Status.Versions = append(s.plan.Status.Versions, is)
	}
	if s.plan.Status.Removable = strings.Join(removable, ","); len(removable) == 0 {
		s.plan.Status.Removable = "none"
	}
}

func (s *state) versionStatus(version apiextensionsv1.CustomResourceDefinitionVersion) v1alpha1.VersionStatus {
	keeps, blocks := s.keepsServed(version.Name), s.keeps(version.Name)
	is := v1alpha1.VersionStatus{
		Name: version.Name, Served: version.Served, Storage: version.Storage, Deprecated: version.Deprecated,
		Stored:    slices.Contains(s.CRD.Status.StoredVersions, version.Name),
		Requested: s.requested(version.Name), BlockedBy: blocks,
		SafeToUnserve: len(keeps) == 0, SafeToRemove: len(blocks) == 0,
	}
	if record := s.record(version.Name); record != nil {
		is.LastRequested = record.LastRequested
	}
	return is
}

// keepsServed is what keeps a version from being unserved.
func (s *state) keepsServed(name string) []v1alpha1.VersionBlock {
	blocks := s.holdsObjects(name)
	if s.onlyServed(name) {
		blocks = append(blocks, v1alpha1.VersionBlock{Reason: v1alpha1.BlockedOnlyServed,
			Message: "clients could use no other version: serve " + crds.StorageVersion(s.CRD)})
	}
	if s.lately(name) {
		blocks = append(blocks, v1alpha1.VersionBlock{Reason: v1alpha1.BlockedRequested,
			Message: "somebody asked for it a short time ago: let clients use " + crds.StorageVersion(s.CRD)})
	}
	return blocks
}

// keeps is what keeps a version from being removed, in the order in which it is
// to be seen to.
func (s *state) keeps(name string) []v1alpha1.VersionBlock {
	if name == crds.StorageVersion(s.CRD) {
		return s.holdsObjects(name) // nothing else is of interest until then
	}
	blocks := s.keepsServed(name)
	if len(s.holdsObjects(name)) == 0 {
		blocks = append(blocks, s.strands(name)...) // a migration counts as well
	}
	add := func(reason v1alpha1.VersionBlockReason, message string) {
		blocks = append(blocks, v1alpha1.VersionBlock{Reason: reason, Message: message})
	}
	if s.isHub(name) {
		add(v1alpha1.BlockedHub, "the other versions convert by way of it: write the rules with another hub in spec.converter.declarative")
	}
	record := s.record(name)
	switch {
	case crds.Serves(s.CRD, name):
		add(v1alpha1.BlockedServed, "clients may use it: set served: false, or its action in spec.retirement to Unserve or Remove")
	case record != nil && record.UnservedTime != nil && s.left(record.UnservedTime, s.soak(name)) > 0:
		add(v1alpha1.BlockedSoaking, fmt.Sprintf("it is to be unserved for %s before it goes", humanize.HumanDuration(s.soak(name))))
	}
	if record == nil || record.ClearedTime == nil {
		add(v1alpha1.BlockedManagedFields, "objects may name it in metadata.managedFields, and could not be applied server-side without it: "+
			"set its action in spec.retirement to Unserve or Remove, and the operator clears that")
	}
	return blocks
}

// holdsObjects is what keeps objects in a version, or may.
func (s *state) holdsObjects(name string) []v1alpha1.VersionBlock {
	switch storage := crds.StorageVersion(s.CRD); {
	case name == storage:
		return []v1alpha1.VersionBlock{{Reason: v1alpha1.BlockedStorageVersion,
			Message: "objects are written in it: make another version the storage version, for example by spec.storageVersion"}}
	case slices.Contains(s.CRD.Status.StoredVersions, name):
		return []v1alpha1.VersionBlock{{Reason: v1alpha1.BlockedStored,
			Message: "objects may be stored in it until a migration has rewritten all of them: " + s.howMigrated()}}
	case s.plan.Status.Evidence == nil:
		return []v1alpha1.VersionBlock{{Reason: v1alpha1.BlockedNotProven,
			Message: fmt.Sprintf("no migration of this policy has proven that every object is stored in %s: %s", storage, s.howMigrated())}}
	}
	return nil
}

func (s *state) howMigrated() string {
	if s.Policy.Spec.Migration.Mode == v1alpha1.MigrationAutomatic {
		return "see the condition " + v1alpha1.StorageMigratedCondition
	}
	return howToMigrate(s.Policy)
}

func (s *state) onlyServed(name string) bool {
	return slices.Equal(crds.ServedVersions(s.CRD), []string{name})
}

// isHub reports whether several other versions convert by way of this one: with
// one other, nothing is left to convert without it.
func (s *state) isHub(name string) bool {
	declarative := s.Policy.Spec.Converter.Declarative
	return declarative != nil && string(declarative.Hub) == name && len(s.CRD.Spec.Versions) > 2
}
