// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package soak

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
	"github.com/conversion-operator/conversion-operator/internal/migration/contract"
	"github.com/conversion-operator/conversion-operator/internal/operator/crds"
	"github.com/conversion-operator/conversion-operator/internal/operator/plan/names"
)

// invariant is a promise to users.
type invariant struct {
	name string
	// always is set if the invariant holds at any time, and not only once nothing changes any more.
	always bool
	// check reports the violations in the current and the previous observation of a subject.
	check func(now, before Observation, violated reporter)
}

type reporter func(format string, args ...any)

var invariants = []invariant{
	{"what is read is what was written", true, readsDiffer},
	{"etcd has the objects that were written, and no others", true, objectsDiffer},
	{"stored bytes are at listed versions", true, bytesUnlisted},
	{"annotations hold what the stored version cannot express, and nothing else", true, preservedDiffers},
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
	{"versions are retired, or the status says what blocks that", false, notRetired},
	{"the definition converts where the policy wants it", false, convertsElsewhere},
	{"the ruleset that a definition names is stored, and every ready pod has it", false, rulesetMissing},
	{"the fleet is ready, as large as it should be, and changes nothing", false, fleetNotReady},
	{"rulesets are stored only where the definition converts", false, rulesetsLeft},
	{"certificates are renewed in time", false, notRenewed},
	{"nothing is left of what is over", false, leaked},
}

// Check returns the violations of the invariants that always hold, or of the others.
func Check(always bool, now, before Observation) []string {
	var wrong []string
	for _, each := range invariants {
		if each.always == always {
			for _, how := range violationsOf(each.check, now, before) {
				wrong = append(wrong, fmt.Sprintf("%s: violated by %s: %s", each.name, now.Subject.Name, how))
			}
		}
	}
	return wrong
}

func violationsOf(check func(now, before Observation, violated reporter), now, before Observation) []string {
	var wrong []string
	check(now, before, func(format string, args ...any) { wrong = append(wrong, fmt.Sprintf(format, args...)) })
	return wrong
}

// readsDiffer ignores failed reads.
func readsDiffer(now, _ Observation, violated reporter) {
	for _, version := range sortedKeys(now.Reads) {
		for _, name := range sortedKeys(now.Reads[version]) {
			got, want := now.Reads[version][name], now.Subject.Objects[name]
			if got.err != "" {
				continue
			}
			if spec := want.spec(version); !reflect.DeepEqual(got.spec, spec) {
				violated("%s, written at %s last, is read at %s as %v; expected %v", name, want.WrittenAt, version, got.spec, spec)
			}
			if !maps.Equal(got.labels, want.Labels) {
				violated("%s at %s has the labels %v; expected %v", name, version, got.labels, want.Labels)
			}
		}
	}
}

func objectsDiffer(now, _ Observation, violated reporter) {
	if got, want := sortedKeys(now.Stored), sortedKeys(now.Subject.Objects); !slices.Equal(got, want) {
		violated("etcd has %v; expected %v", got, want)
	}
}

// bytesUnlisted: objects may remain at a version that another client pruned, but nothing is written
// at that version afterwards.
func bytesUnlisted(now, _ Observation, violated reporter) {
	for _, name := range now.unlisted() {
		if is := now.Stored[name]; !slices.Contains(now.Pruned.Versions, is.Version) || is.Revision >= now.Pruned.Revision {
			violated("%s is stored at %s; status.storedVersions is %v", name, is.Version, now.ListedAfter)
		}
	}
}

// preservedDiffers compares annotations in etcd with what clients wrote.
func preservedDiffers(now, _ Observation, violated reporter) {
	for _, name := range sortedKeys(now.Stored) {
		is := now.Stored[name]
		want, exists := now.Subject.Objects[name]
		for _, version := range without([]string{joined, nested}, is.Version) {
			got, expected := is.Preserved[version], want.own(version)
			if exists && len(got)+len(expected) > 0 && !reflect.DeepEqual(got, expected) {
				violated("%s, stored at %s, has the annotation of %s hold %v; expected %v", name, is.Version, version, got, expected)
			}
		}
	}
}

// goneWithValues: no version may be removed while values would be lost that the policy does not
// accept to lose.
func goneWithValues(now, _ Observation, violated reporter) {
	if now.CRD == nil {
		return
	}
	for _, version := range sortedKeys(now.Subject.Blocked) {
		if has, _ := crds.Version(now.CRD, version); has == nil {
			violated("%s is gone, and %s has values of it: %v", version, now.Subject.Blocked[version], now.wouldLose(version))
		}
	}
}

// wouldLose returns the fields because of which a version is kept.
func (now Observation) wouldLose(version string) []string {
	return now.Subject.Objects[now.Subject.Blocked[version]].wouldLose(version, now.Subject.retirement(version).AcceptedLosses)
}

// strandsValues compares safeToRemove in status.versions with the bytes in etcd.
func strandsValues(now, _ Observation, violated reporter) {
	if !now.current() {
		return
	}
	for _, said := range now.Policy.Status.Versions {
		accepted := (&Subject{Policy: &now.Policy.Spec}).retirement(said.Name).AcceptedLosses
		for _, name := range sortedKeys(now.Stored) {
			for _, path := range sortedKeys(now.Stored[name].Preserved[said.Name]) {
				if said.SafeToRemove && !accepts(accepted, path) {
					violated("%s holds %s of %s, which status.versions calls safe to remove", name, path, said.Name)
				}
			}
		}
	}
}

// prunedWithoutEvidence: a version must not disappear from storedVersions without migration evidence, unless
// the storage version changed or another client pruned it.
func prunedWithoutEvidence(now, before Observation, violated reporter) {
	if !now.sameCRD(before) || now.Policy == nil || before.Policy == nil || now.storage() != before.storage() {
		return
	}
	gone := slices.DeleteFunc(without(before.CRD.Status.StoredVersions, now.CRD.Status.StoredVersions...), func(version string) bool {
		return now.prunedByOthers(before, version)
	})
	evidence := now.Policy.Status.MigrationEvidence
	if len(gone) == 0 || evidence != nil && evidence.CRDUID == now.CRD.UID && evidence.StorageVersion == now.storage() {
		return
	}
	completed := func(record contract.Record) bool {
		return record.CRDUID == now.CRD.UID && record.State == contract.StateCompleted && record.Failed == 0
	}
	if !slices.ContainsFunc(now.Records, completed) {
		violated("%v went from status.storedVersions; expected evidence for %s in the policy's status, or a completed run without failures; found %v and %d records",
			gone, now.storage(), evidence, len(now.Records))
	}
}

// claimsFalse compares the status with the bytes in etcd.
func claimsFalse(now, _ Observation, violated reporter) {
	if now.Policy == nil || now.CRD == nil {
		return
	}
	migrated, evidence := now.condition(v1alpha1.StorageMigratedCondition), now.Policy.Status.MigrationEvidence
	for _, name := range sortedKeys(now.Stored) {
		version := now.Stored[name].Version
		if evidence != nil && evidence.CRDUID == now.CRD.UID && evidence.CRDGeneration == now.CRD.Generation && evidence.StorageVersion != version {
			violated("%s is stored at %s; the evidence says that all are at %s", name, version, evidence.StorageVersion)
		}
		if now.ofCRD() && migrated.Status == metav1.ConditionTrue && migrated.ObservedGeneration == now.Policy.Generation && version != now.storage() {
			violated("%s is stored at %s; StorageMigrated is True while objects are written at %s", name, version, now.storage())
		}
		for _, said := range now.Policy.Status.Versions {
			if now.ofCRD() && said.SafeToRemove && said.Name == version {
				violated("%s is stored at %s, which status.versions calls safe to remove", name, version)
			}
		}
	}
}

// retiredStored: a policy unserves or removes a version only after every object is proven to be
// stored at another version.
func retiredStored(now, _ Observation, violated reporter) {
	for _, name := range sortedKeys(now.Stored) {
		version := now.Stored[name].Version
		action := now.Subject.retirement(version).Action
		goes := action == v1alpha1.RetirementUnserve || action == v1alpha1.RetirementRemove
		if now.CRD != nil && goes && !crds.Serves(now.CRD, version) {
			violated("%s is stored at %s, which is not served any more", name, version)
		}
	}
}

// changedSuspended compares what only the operator changes, once it has reported that the policy is
// suspended.
func changedSuspended(now, before Observation, violated reporter) {
	said := before.condition(v1alpha1.ReadyCondition)
	if !now.sameCRD(before) || !now.Subject.suspended() || before.Policy == nil || !before.Policy.Spec.Suspend ||
		said.Reason != v1alpha1.ReasonSuspended || said.ObservedGeneration != before.Policy.Generation {
		return
	}
	for _, version := range without(before.ListedAfter, now.ListedAfter...) {
		if !now.prunedByOthers(before, version) {
			violated("%s went from status.storedVersions", version)
		}
	}
	if !equality.Semantic.DeepEqual(now.Conversion, before.Conversion) {
		violated("spec.conversion is %v; it was %v", now.Conversion, before.Conversion)
	}
}

// certificatesRefused checks ready pods, if the CRD converts through them.
func certificatesRefused(now, _ Observation, violated reporter) {
	for _, pod := range now.Pods {
		if service, _ := namedBy(now.CRD); service != "" && pod.Ready && untrusted(pod.Refused) {
			violated("pod %s serves a certificate that caBundle of the definition does not verify: %v", pod.Name, pod.Refused)
		}
	}
}

func unreadable(now, _ Observation, violated reporter) {
	for _, version := range now.Subject.Served {
		for _, name := range sortedKeys(now.Subject.Objects) {
			if got, tried := now.Reads[version][name]; !tried || got.err != "" {
				violated("%s at %s: %s", name, version, got.err)
			}
		}
	}
}

func notReady(now, _ Observation, violated reporter) {
	ready, migrated := now.condition(v1alpha1.ReadyCondition), now.condition(v1alpha1.StorageMigratedCondition)
	switch {
	case now.Subject.Policy == nil:
	case now.Policy == nil:
		violated("there is no policy")
	case !now.current():
		violated("the status is of other generations")
	case now.Subject.suspended() && ready.Reason == v1alpha1.ReasonSuspended, now.Subject.active() && ready.Status == metav1.ConditionTrue:
	case now.Subject.active() && !now.Subject.migrates() && migrated.Reason == v1alpha1.ReasonMigrationSuspended:
	default:
		violated("Ready is %s, %s: %s", ready.Status, ready.Reason, ready.Message)
	}
}

func migratesSuspended(now, _ Observation, violated reporter) {
	for _, child := range now.Children {
		if now.Subject.suspended() && child.Active {
			violated("%s has pods", child)
		}
	}
}

// notMigrated: a policy that migrates leaves every object at the storage version, even after
// another client pruned storedVersions.
func notMigrated(now, _ Observation, violated reporter) {
	for _, name := range sortedKeys(now.Stored) {
		if version := now.Stored[name].Version; now.Subject.migrates() && version != now.storage() {
			violated("%s is stored at %s; objects are written at %s", name, version, now.storage())
		}
	}
}

// otherVersions compares spec.versions with what the CRD's author and the policy set.
func otherVersions(now, _ Observation, violated reporter) {
	if exists := now.CRD != nil; exists != now.Subject.Exists {
		violated("there is a definition: %t; expected %t", exists, now.Subject.Exists)
	}
	if now.CRD == nil {
		return
	}
	var got, want []string
	for _, version := range now.CRD.Spec.Versions {
		got = append(got, describe(version.Name, version.Served, version.Storage, version.Deprecated))
	}
	for _, name := range now.Subject.Versions {
		is := now.Subject
		want = append(want, describe(name, slices.Contains(is.Served, name), name == is.Storage, slices.Contains(is.Deprecated, name)))
	}
	if !slices.Equal(got, want) {
		violated("its versions are %v; expected %v", got, want)
	}
}

func describe(version string, served, storage, deprecated bool) string {
	return fmt.Sprintf("%s (served: %t, storage: %t, deprecated: %t)", version, served, storage, deprecated)
}

// notRetired: all retirements are complete, or the status names the values that block one.
func notRetired(now, _ Observation, violated reporter) {
	if !now.Subject.migrates() || len(now.Subject.Policy.Retirement) == 0 || now.Policy == nil {
		return
	}
	retired, want := now.condition(v1alpha1.VersionsRetiredCondition), metav1.ConditionTrue
	if len(now.Subject.Blocked) > 0 {
		want = metav1.ConditionFalse
	}
	if retired.Status != want || want == metav1.ConditionFalse && retired.Reason != v1alpha1.ReasonBlocked || retired.ObservedGeneration != now.Policy.Generation {
		violated("VersionsRetired is %s, %s: %s; expected it to be blocked by %v", retired.Status, retired.Reason, retired.Message, now.Subject.Blocked)
		return
	}
	for _, version := range sortedKeys(now.Subject.Blocked) {
		told := strings.Contains(retired.Message, version+" stays: ") && slices.ContainsFunc(now.Policy.Status.Versions, func(said v1alpha1.VersionStatus) bool {
			return said.Name == version && slices.ContainsFunc(said.BlockedBy, func(by v1alpha1.VersionBlock) bool { return by.Reason == v1alpha1.BlockedPreservedData })
		})
		for _, path := range now.wouldLose(version) {
			told = told && strings.Contains(retired.Message, path)
		}
		if !told {
			violated("the status does not say that %s is blocked by %v: %s", version, now.wouldLose(version), retired.Message)
		}
	}
}

// convertsElsewhere compares the Service in the CRD with that of the wanted pods.
func convertsElsewhere(now, _ Observation, violated reporter) {
	if service, _ := namedBy(now.CRD); service != "" && service != now.Subject.place().workload {
		violated("the definition converts through the Service %s; expected %s", service, now.Subject.place().workload)
	}
}

// rulesetMissing: the ruleset that the CRD names is stored where pods mount it, and every ready pod
// has loaded it.
func rulesetMissing(now, _ Observation, violated reporter) {
	service, ruleset := namedBy(now.CRD)
	if service != "" && !slices.Contains(now.Rulesets[service], ruleset) {
		violated("the definition names the ruleset %s of %s, where %v are stored", ruleset, service, now.Rulesets[service])
	}
	for _, pod := range now.Pods {
		if service != "" && pod.Ready && !slices.Contains(pod.Rulesets, ruleset) {
			violated("the definition names the ruleset %s, and pod %s has %v: %v", ruleset, pod.Name, pod.Rulesets, pod.Refused)
		}
	}
}

// rulesetsLeft: a policy stores rulesets only where its CRD converts, unless it may not change them.
func rulesetsLeft(now, _ Observation, violated reporter) {
	for _, place := range sortedKeys(now.Rulesets) {
		if !now.Subject.Exists || now.Subject.active() && place != now.Subject.place().workload {
			violated("%s has the rulesets %v", place, now.Rulesets[place])
		}
	}
}

// fleetNotReady: the fleet of a policy has its size, and has completed what was changed. A rotation
// of its authority waits for policies that do not change their CRD.
func fleetNotReady(now, _ Observation, violated reporter) {
	if now.Subject.Fleet == "" || !now.Subject.Exists {
		return
	}
	if now.Fleet == nil {
		violated("there is no fleet %s", now.Subject.Fleet)
		return
	}
	status := now.Fleet.Status
	if status.ObservedGeneration != now.Fleet.Generation {
		violated("the status is not of the fleet's generation")
	}
	if int(status.Replicas) != now.Size || int(status.ReadyReplicas) != now.Size || len(now.Pods) != now.Size {
		violated("%d pods, of which the status counts %d, and %d as ready; expected %d", len(now.Pods), status.Replicas, status.ReadyReplicas, now.Size)
	}
	for _, condition := range []string{v1alpha1.ReadyCondition, v1alpha1.CertificatesReadyCondition, v1alpha1.WebhookAvailableCondition} {
		waits := condition == v1alpha1.CertificatesReadyCondition && !now.Follow
		if !waits && !apimeta.IsStatusConditionTrue(status.Conditions, condition) {
			violated("%s of the fleet is not True: %+v", condition, status.Conditions)
		}
	}
	if rotation := status.Rotation; now.Follow && rotation != nil && rotation.State != v1alpha1.RotationIdle {
		violated("the authority of the fleet rotates: %s", rotation.State)
	}
	if apimeta.FindStatusCondition(status.Conditions, v1alpha1.DeletionBlockedCondition) != nil {
		violated("the fleet is being deleted")
	}
}

// renewalMargin is the minimum remaining validity of a certificate that is renewed in time, by the
// validation of ConversionPolicy.
const renewalMargin = 10 * time.Minute

func notRenewed(now, _ Observation, violated reporter) {
	if now.Subject.Policy == nil {
		return
	}
	if now.Mounted.Sub(now.Time) < renewalMargin {
		violated("the certificate that pods mount ends at %s", now.Mounted)
	}
	for _, pod := range now.Pods {
		if unknown := pod.NotAfter.IsZero() && !untrusted(pod.Refused); pod.Ready && !unknown && pod.NotAfter.Sub(now.Time) < renewalMargin {
			violated("the certificate that pod %s serves ends at %s: %v", pod.Name, pod.NotAfter, pod.Refused)
		}
	}
}

// leaked: rights of migrations and of cleaning end with them unless the policy is suspended, the Job of
// a migration ends with the next one, and everything else with the policy. An abandoned policy leaves
// its converter.
func leaked(now, _ Observation, violated reporter) {
	last := &v1alpha1.MigrationStatus{}
	if now.Policy != nil && now.Policy.Status.Migration != nil {
		last = now.Policy.Status.Migration
	}
	crd := crdOf(now.Subject.Name)
	for _, child := range now.Children {
		isRight := child.Run == "" && strings.HasPrefix(child.Name, names.MigrationRights(crd))
		switch {
		case !now.Subject.Exists:
			violated("%s: its policy and its definition are gone", child)
		case isRight && last.State != v1alpha1.MigrationRunning && !now.Subject.suspended():
			violated("%s: no migration goes on", child)
		case strings.HasPrefix(child.Name, names.CleanRights(crd)) && !now.Subject.suspended():
			violated("%s: no version is on its way out", child)
		case child.Run != "" && child.Run != last.Run && child.Run != last.RetryOf:
			violated("%s: that migration is over, and another came after it", child)
		}
	}
}
