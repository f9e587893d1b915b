// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"reflect"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
)

// Invariants of preserved values: annotations hold them, and they are only removed with a version
// if the policy accepts that loss.

const annotationsHold = "annotations hold what the stored version cannot express, and nothing else"

// preservedDiffers compares annotations in etcd with the ledger.
func preservedDiffers(now, _ observation) []string {
	var wrong []string
	for _, name := range sortedKeys(now.Stored) {
		want, written := now.Objects[name]
		for _, version := range sortedKeys(ownFields) {
			if !written || now.Stored[name] == version {
				continue
			}
			for _, field := range ownFields[version] {
				got, expected := now.Preserved[name][version][field.path], field.value(want.Record)
				stale := expected == nil && field.path == hostOnlyPath && now.Subject.Stale[name]
				if !stale && !reflect.DeepEqual(got, expected) {
					wrong = append(wrong, fmt.Sprintf("%s, stored at %s, has the annotation of %s hold %s %v; expected %v",
						name, now.Stored[name], version, field.path, got, expected))
				}
			}
		}
	}
	return wrong
}

// goneWithValues: no version may be removed while values would be lost that the policy does not
// accept to lose.
func goneWithValues(now, _ observation) []string {
	var wrong []string
	for _, version := range sortedKeys(now.Subject.Blocked) {
		if now.Defined && !slices.Contains(now.Has, version) {
			blocker := now.Subject.Blocked[version]
			wrong = append(wrong, fmt.Sprintf("%s is gone, and %s has values of it: %v", version, blocker, now.wouldLose(version)))
		}
	}
	return wrong
}

// wouldLose returns the fields because of which a version is kept.
func (now observation) wouldLose(version string) []string {
	return now.Objects[now.Subject.Blocked[version]].Record.wouldLose(version, now.Subject.Accepts[version])
}

// strandsValues compares safeToRemove in status.versions with the bytes in etcd.
func strandsValues(now, _ observation) []string {
	if now.Policy == nil || !now.Defined || now.Policy.Status.ObservedGeneration != now.Policy.Generation ||
		now.Policy.Status.CRD == nil || now.Policy.Status.CRD.UID != now.UID || now.Policy.Status.CRD.Generation != now.Generation {
		return nil
	}
	var wrong []string
	for _, said := range now.Policy.Status.Versions {
		if !said.SafeToRemove {
			continue
		}
		for _, name := range sortedKeys(now.Preserved) {
			for _, path := range sortedKeys(now.Preserved[name][said.Name]) {
				if !accepts(now.acceptedLosses(said.Name), path) {
					wrong = append(wrong, fmt.Sprintf("%s holds %s of %s, which status.versions calls safe to remove", name, path, said.Name))
				}
			}
		}
	}
	return wrong
}

func (now observation) acceptedLosses(version string) []string {
	for _, entry := range now.Policy.Spec.Retirement {
		if string(entry.Version) == version {
			return entry.AcceptedLosses
		}
	}
	return nil
}

// notBlocked: the status must name the values that block a removal.
func notBlocked(now observation, retired *metav1.Condition) []string {
	if retired.Status != metav1.ConditionFalse || retired.Reason != v1alpha1.ReasonBlocked || retired.ObservedGeneration != now.Policy.Generation {
		return []string{fmt.Sprintf("VersionsRetired is %s, %s: %s; expected it to be Blocked by %v", retired.Status, retired.Reason, retired.Message, now.Subject.Blocked)}
	}
	var wrong []string
	for _, version := range sortedKeys(now.Subject.Blocked) {
		told := strings.Contains(retired.Message, version+" stays: ") && blockedBy(now.Policy.Status.Versions, version, v1alpha1.BlockedPreservedData)
		for _, path := range now.wouldLose(version) {
			told = told && strings.Contains(retired.Message, path)
		}
		if !told {
			wrong = append(wrong, fmt.Sprintf("the status does not say that %s is blocked by %v: %s", version, now.wouldLose(version), retired.Message))
		}
	}
	return wrong
}

// blockedBy reports whether status.versions has a reason for which a version cannot be removed.
func blockedBy(all []v1alpha1.VersionStatus, version string, reason v1alpha1.VersionBlockReason) bool {
	return slices.ContainsFunc(all, func(said v1alpha1.VersionStatus) bool {
		return said.Name == version && slices.ContainsFunc(said.BlockedBy, func(by v1alpha1.VersionBlock) bool { return by.Reason == reason })
	})
}
