// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"time"

	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
	"github.com/conversion-operator/conversion-operator/internal/migration/contract"
	"github.com/conversion-operator/conversion-operator/internal/plan/names"
)

type invariant struct {
	name string
	// always is set if the invariant holds at any time, and not only once nothing changes any more.
	always bool
	// violated returns the violations in the current and the previous observation of a subject.
	violated func(now, before observation) []string
}

var invariants = []invariant{
	{"what is read is what was written", true, readsDiffer},
	{"etcd has the objects that were written, and no others", true, objectsDiffer},
	{"stored bytes are at listed versions", true, bytesUnlisted},
	{annotationsHold, true, preservedDiffers},
	{"a version stays while values would be lost with it", true, goneWithValues},
	{"what may be removed takes no values along", true, strandsValues},
	{"storedVersions is pruned with evidence", true, prunedWithoutEvidence},
	{"what the status says of stored bytes is true", true, claimsFalse},
	{"what a policy stops serving is stored nowhere", true, retiredStored},
	{"a suspended policy changes nothing", true, changedSuspended},
	{"converter pods serve certificates that are valid and trusted", true, certificatesRefused},

	{"every object is readable in every served version", false, unreadable},
	{"the policy is ready, or says that it is suspended", false, notReady},
	{"no migration goes on while the policy is suspended", false, migratesSuspended},
	{"every object is stored at the storage version", false, notMigrated},
	{"versions are as their authors want them", false, otherVersions},
	{"the definition converts where the policy wants it", false, convertsElsewhere},
	{"the ruleset that a definition names is stored, and every ready pod has it", false, rulesetMissing},
	{"the fleet is ready, as large as it should be, and changes nothing", false, fleetNotReady},
	{"rulesets are stored only where the definition converts", false, rulesetsLeft},
	{"certificates are renewed in time", false, notRenewed},
	{"nothing is left of what is over", false, leaked},
}

// check returns the violations of the invariants that always hold, or of the others.
func check(all []invariant, always bool, now, before map[string]observation) []string {
	var wrong []string
	for _, each := range all {
		if each.always != always {
			continue
		}
		for _, subject := range sortedKeys(now) {
			for _, how := range each.violated(now[subject], before[subject]) {
				wrong = append(wrong, fmt.Sprintf("%s: violated by %s: %s", each.name, subject, how))
			}
		}
	}
	return wrong
}

// readsDiffer ignores failed reads.
func readsDiffer(now, _ observation) []string {
	var wrong []string
	for _, version := range sortedKeys(now.Reads) {
		for _, name := range sortedKeys(now.Reads[version]) {
			got, want := now.Reads[version][name], now.Objects[name]
			if got.Err != "" {
				continue
			}
			if spec := want.Record.spec(version); !reflect.DeepEqual(got.Spec, spec) {
				wrong = append(wrong, fmt.Sprintf("%s, written at %s last, is read at %s as %v; expected %v", name, want.WrittenAt, version, got.Spec, spec))
			}
			if !maps.Equal(got.Labels, want.Labels) {
				wrong = append(wrong, fmt.Sprintf("%s at %s has the labels %v; expected %v", name, version, got.Labels, want.Labels))
			}
		}
	}
	return wrong
}

func objectsDiffer(now, _ observation) []string {
	got, want := sortedKeys(now.Stored), sortedKeys(now.Objects)
	if slices.Equal(got, want) {
		return nil
	}
	return []string{fmt.Sprintf("etcd has %v; expected %v", got, want)}
}

// bytesUnlisted: objects may remain at a version that another client pruned, but nothing is written
// at that version afterwards.
func bytesUnlisted(now, _ observation) []string {
	var wrong []string
	for _, name := range now.unlisted() {
		if version := now.Stored[name]; !now.Pruned.left(version, now.Revisions[name]) {
			wrong = append(wrong, fmt.Sprintf("%s is stored at %s; status.storedVersions is %v", name, version, now.ListedAfter))
		}
	}
	return wrong
}

// prunedWithoutEvidence: a version must not disappear from storedVersions without migration evidence, unless
// the storage version changed or another client pruned it.
func prunedWithoutEvidence(now, before observation) []string {
	if !now.Defined || now.UID != before.UID || now.Policy == nil || before.Policy == nil || now.Storage != before.Storage {
		return nil
	}
	gone := slices.DeleteFunc(slices.Clone(before.Listed), func(version string) bool {
		others := now.Pruned.Revision != before.Pruned.Revision && slices.Contains(now.Pruned.Versions, version)
		return others || slices.Contains(now.Listed, version)
	})
	if len(gone) == 0 {
		return nil
	}
	evidence := now.Policy.Status.MigrationEvidence
	if evidence != nil && evidence.CRDUID == now.UID && evidence.StorageVersion == now.Storage {
		return nil
	}
	for _, record := range now.Records {
		if record.CRDUID == now.UID && record.State == contract.StateCompleted && record.Failed == 0 {
			return nil
		}
	}
	return []string{fmt.Sprintf("%v went from status.storedVersions; expected evidence for %s in the policy's status, or a completed run without failures; found %v and %d records",
		gone, now.Storage, evidence, len(now.Records))}
}

// claimsFalse compares the status with the bytes in etcd.
func claimsFalse(now, _ observation) []string {
	if now.Policy == nil || !now.Defined {
		return nil
	}
	var wrong []string
	status := now.Policy.Status
	current := status.CRD != nil && status.CRD.UID == now.UID && status.CRD.Generation == now.Generation
	migrated := apimeta.FindStatusCondition(status.Conditions, v1alpha1.StorageMigratedCondition)
	all := current && migrated != nil && migrated.Status == metav1.ConditionTrue && migrated.ObservedGeneration == now.Policy.Generation
	for _, name := range sortedKeys(now.Stored) {
		version := now.Stored[name]
		if evidence := status.MigrationEvidence; evidence != nil && evidence.CRDUID == now.UID && evidence.CRDGeneration == now.Generation && evidence.StorageVersion != version {
			wrong = append(wrong, fmt.Sprintf("%s is stored at %s; the evidence says that all are at %s", name, version, evidence.StorageVersion))
		}
		if all && version != now.Storage {
			wrong = append(wrong, fmt.Sprintf("%s is stored at %s; StorageMigrated is True while objects are written at %s", name, version, now.Storage))
		}
		for _, said := range status.Versions {
			if current && said.SafeToRemove && said.Name == version {
				wrong = append(wrong, fmt.Sprintf("%s is stored at %s, which status.versions calls safe to remove", name, version))
			}
		}
	}
	return wrong
}

// certificatesRefused checks ready pods, if the CRD converts through them.
func certificatesRefused(now, _ observation) []string {
	var wrong []string
	for _, pod := range now.Pods {
		switch {
		case !pod.Ready || pod.Err != "":
		case now.Time.After(pod.NotAfter):
			wrong = append(wrong, fmt.Sprintf("pod %s serves a certificate that ended at %s", pod.Name, pod.NotAfter))
		case now.Active && !pod.Trusted:
			wrong = append(wrong, fmt.Sprintf("pod %s serves a certificate that caBundle of the definition does not verify", pod.Name))
		}
	}
	return wrong
}

func unreadable(now, _ observation) []string {
	var wrong []string
	for _, version := range now.Subject.Served {
		for _, name := range sortedKeys(now.Objects) {
			if got, tried := now.Reads[version][name]; !tried || got.Err != "" {
				wrong = append(wrong, fmt.Sprintf("%s at %s: %s", name, version, got.Err))
			}
		}
	}
	return wrong[:min(len(wrong), 5)]
}

func notReady(now, _ observation) []string {
	switch {
	case !now.Subject.Policy:
		return nil
	case now.Policy == nil:
		return []string{"there is no policy"}
	case now.Policy.Status.ObservedGeneration != now.Policy.Generation:
		return []string{"the status is not of the policy's generation"}
	case now.Policy.Status.CRD == nil || now.Policy.Status.CRD.Generation != now.Generation:
		return []string{"the status is not of the definition's generation"}
	}
	ready := apimeta.FindStatusCondition(now.Policy.Status.Conditions, v1alpha1.ReadyCondition)
	migrated := apimeta.FindStatusCondition(now.Policy.Status.Conditions, v1alpha1.StorageMigratedCondition)
	switch {
	case ready == nil:
		return []string{"there is no condition Ready"}
	case now.Subject.Suspended && ready.Reason == v1alpha1.ReasonSuspended:
		return nil
	case now.Subject.Suspended:
	case ready.Status == metav1.ConditionTrue:
		return nil
	case now.Subject.MigrationsSuspended && migrated != nil && migrated.Reason == v1alpha1.ReasonMigrationSuspended:
		return nil
	}
	return []string{fmt.Sprintf("Ready is %s, %s: %s", ready.Status, ready.Reason, ready.Message)}
}

// renewalMargin is the minimum remaining validity of a certificate that is renewed in time, by the
// validation of ConversionPolicy.
const renewalMargin = 10 * time.Minute

func notRenewed(now, _ observation) []string {
	if !now.Subject.Policy {
		return nil
	}
	var wrong []string
	if now.Mounted.Sub(now.Time) < renewalMargin {
		wrong = append(wrong, fmt.Sprintf("the certificate that pods mount ends at %s", now.Mounted))
	}
	for _, pod := range now.Pods {
		if pod.Ready && pod.Err == "" && pod.NotAfter.Sub(now.Time) < renewalMargin {
			wrong = append(wrong, fmt.Sprintf("the certificate that pod %s serves ends at %s", pod.Name, pod.NotAfter))
		}
	}
	return wrong
}

// leaked: migration rights end with the migration unless the policy is suspended, the Job of a
// migration ends with the next one, and everything else with the policy. An abandoned policy leaves
// its converter.
func leaked(now, _ observation) []string {
	var running bool
	var runs []string
	if now.Policy != nil && now.Policy.Status.Migration != nil {
		last := now.Policy.Status.Migration
		running, runs = last.State == v1alpha1.MigrationRunning, []string{last.Run, last.RetryOf}
	}
	var wrong []string
	for _, child := range now.Children {
		isRun := child.Run != ""
		isRight := strings.HasPrefix(child.Name, names.MigrationRights(crdOf(now.Subject.Name))) && !isRun
		clears := strings.HasPrefix(child.Name, names.CleanRights(crdOf(now.Subject.Name)))
		switch {
		case !now.Subject.Exists:
			wrong = append(wrong, child.String()+": its policy and its definition are gone")
		case isRight && !running && !now.Subject.Suspended:
			wrong = append(wrong, child.String()+": no migration goes on")
		case clears && !now.Subject.Suspended:
			wrong = append(wrong, child.String()+": no version is on its way out")
		case isRun && !slices.Contains(runs, child.Run):
			wrong = append(wrong, child.String()+": that migration is over, and another came after it")
		}
	}
	return wrong
}
