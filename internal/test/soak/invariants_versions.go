// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/api/equality"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
)

// Invariants of versions, no matter who their author is.

// unlisted returns the objects that are stored at a version that status.storedVersions lists
// neither before nor after the read of etcd.
func (now observation) unlisted() []string {
	var names []string
	for _, name := range sortedKeys(now.Stored) {
		version := now.Stored[name]
		if now.Defined && !slices.Contains(now.Listed, version) && !slices.Contains(now.ListedAfter, version) {
			names = append(names, name)
		}
	}
	return names
}

// retiredStored: a policy unserves or removes a version only after every object is proven to be
// stored at another version.
func retiredStored(now, _ observation) []string {
	var wrong []string
	for _, version := range sortedKeys(now.Subject.Retires) {
		action := now.Subject.Retires[version]
		goes := action == v1alpha1.RetirementUnserve || action == v1alpha1.RetirementRemove
		if !now.Defined || !goes || slices.Contains(now.Serves, version) {
			continue
		}
		for _, name := range sortedKeys(now.Stored) {
			if now.Stored[name] == version {
				wrong = append(wrong, fmt.Sprintf("%s is stored at %s, which is not served any more", name, version))
			}
		}
	}
	return wrong
}

// changedSuspended compares what only the operator changes, once it has reported that the policy is
// suspended.
func changedSuspended(now, before observation) []string {
	if now.UID != before.UID || !now.Subject.Suspended || !before.saysSuspended() {
		return nil
	}
	var wrong []string
	for _, version := range before.ListedAfter {
		others := now.Pruned.Revision != before.Pruned.Revision && slices.Contains(now.Pruned.Versions, version)
		if !others && !slices.Contains(now.ListedAfter, version) {
			wrong = append(wrong, fmt.Sprintf("%s went from status.storedVersions", version))
		}
	}
	if !equality.Semantic.DeepEqual(now.Conversion, before.Conversion) {
		wrong = append(wrong, fmt.Sprintf("spec.conversion is %v; it was %v", now.Conversion, before.Conversion))
	}
	return wrong
}

// saysSuspended reports whether the status shows the suspension.
func (now observation) saysSuspended() bool {
	if now.Policy == nil || !now.Policy.Spec.Suspend {
		return false
	}
	ready := apimeta.FindStatusCondition(now.Policy.Status.Conditions, v1alpha1.ReadyCondition)
	return ready != nil && ready.Reason == v1alpha1.ReasonSuspended && ready.ObservedGeneration == now.Policy.Generation
}

func migratesSuspended(now, _ observation) []string {
	var wrong []string
	for _, child := range now.Children {
		if now.Subject.Suspended && child.Active {
			wrong = append(wrong, child.String()+" has pods")
		}
	}
	return wrong
}

// notMigrated: a policy that migrates leaves every object at the storage version, even after
// another client pruned storedVersions.
func notMigrated(now, _ observation) []string {
	if !now.Subject.active() || now.Subject.MigrationsSuspended {
		return nil
	}
	var wrong []string
	for _, name := range sortedKeys(now.Stored) {
		if version := now.Stored[name]; version != now.Storage {
			wrong = append(wrong, fmt.Sprintf("%s is stored at %s; objects are written at %s", name, version, now.Storage))
		}
	}
	return wrong[:min(len(wrong), 5)]
}

// otherVersions compares spec.versions with what the CRD's author and the policy set.
func otherVersions(now, _ observation) []string {
	if now.Defined != now.Subject.Exists {
		return []string{fmt.Sprintf("there is a definition: %t; expected %t", now.Defined, now.Subject.Exists)}
	}
	var wrong []string
	compare := func(what string, got, want []string) {
		if !slices.Equal(got, want) {
			wrong = append(wrong, fmt.Sprintf("%s versions are %v; expected %v", what, got, want))
		}
	}
	compare("its", now.Has, now.Subject.Versions)
	compare("the served", now.Serves, now.Subject.Served)
	compare("the deprecated", now.Deprecates, now.Subject.Deprecated)
	if now.Defined && now.Storage != now.Subject.Storage {
		wrong = append(wrong, fmt.Sprintf("the storage version is %s; expected %s", now.Storage, now.Subject.Storage))
	}
	return append(wrong, notRetired(now)...)
}

// notRetired: all retirements are complete, or the status names the values that block one.
func notRetired(now observation) []string {
	if len(now.Subject.Retires) == 0 || !now.Subject.active() || now.Subject.MigrationsSuspended || now.Policy == nil {
		return nil
	}
	retired := apimeta.FindStatusCondition(now.Policy.Status.Conditions, v1alpha1.VersionsRetiredCondition)
	switch {
	case retired == nil:
		return []string{"there is no condition VersionsRetired"}
	case len(now.Subject.Blocked) > 0:
		return notBlocked(now, retired)
	case retired.Status != metav1.ConditionTrue || retired.ObservedGeneration != now.Policy.Generation:
		return []string{fmt.Sprintf("VersionsRetired is %s, %s: %s", retired.Status, retired.Reason, retired.Message)}
	}
	return nil
}
