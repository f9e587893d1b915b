// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package soak

import (
	"cmp"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utiljson "k8s.io/apimachinery/pkg/util/json"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
	"github.com/conversion-operator/conversion-operator/internal/engine/conversion"
	"github.com/conversion-operator/conversion-operator/internal/migration/contract"
	"github.com/conversion-operator/conversion-operator/internal/operator/crds"
	"github.com/conversion-operator/conversion-operator/internal/operator/plan/names"
)

// Invariant is a promise to users. check reports the violations in the current and the previous observation of
// a subject.
type Invariant struct {
	name  string
	check func(now, before Observation, violated reporter)
}

type reporter func(format string, args ...any)

// Always has the invariants that hold at any time.
var Always = []Invariant{
	readsAsWritten,
	{"etcd has the objects that were written, and no others", func(now, _ Observation, violated reporter) {
		if got, want := slices.Sorted(maps.Keys(now.Stored)), slices.Sorted(maps.Keys(now.Subject.Objects)); !slices.Equal(got, want) {
			violated("etcd has %v; expected %v", got, want)
		}
	}},
	// Objects may remain at a version that another client pruned, but nothing is written at that version
	// afterwards.
	{"stored bytes are at listed versions", func(now, _ Observation, violated reporter) {
		for name, is := range sorted(now.unlisted()) {
			if is.Revision >= now.Pruned {
				violated("%s is stored at %s; status.storedVersions is %v", name, is.Version, now.After.Status.StoredVersions)
			}
		}
	}},
	preserved,
	{"a version stays while values would be lost with it", func(now, _ Observation, violated reporter) {
		for _, version := range versions {
			if blocker := now.Subject.blocker(version); blocker != "" && !now.has(version) {
				violated("%s is gone, and %s has %s", version, blocker, ownPath(version))
			}
		}
	}},
	{"what may be removed is stored nowhere, and takes no values along", func(now, _ Observation, violated reporter) {
		for _, said := range now.Policy.Status.Versions {
			accepted := (&Subject{Policy: &now.Policy.Spec}).retirement(said.Name).AcceptedLosses
			for name, is := range sorted(now.Stored) {
				if said.SafeToRemove && now.ofCRD() && said.Name == is.Version {
					violated("%s is stored at %s, which status.versions calls safe to remove", name, is.Version)
				}
				if said.SafeToRemove && now.current() && len(accepted) == 0 && is.Annotations[annotation(now.Subject, said.Name)] != "" {
					violated("%s holds %s, and status.versions calls %s safe to remove", name, ownPath(said.Name), said.Name)
				}
			}
		}
	}},
	// Unless the storage version changed, or another client pruned it.
	{"storedVersions is pruned with evidence", func(now, before Observation, violated reporter) {
		if !now.sameCRD(before) || now.Policy.Name == "" || before.Policy.Name == "" || now.storage() != before.storage() || now.Pruned != before.Pruned {
			return
		}
		gone, evidence := without(before.CRD.Status.StoredVersions, now.CRD.Status.StoredVersions), now.Policy.Status.MigrationEvidence
		proven := evidence != nil && now.Policy.Status.CRD.UID == now.CRD.UID && now.Policy.Status.CRD.StorageVersion == now.storage() ||
			slices.ContainsFunc(now.Records, func(record contract.Record) bool {
				return record.CRDUID == now.CRD.UID && record.State == contract.StateCompleted && record.Failed == 0
			})
		if len(gone) > 0 && !proven {
			violated("%v went from status.storedVersions; expected evidence for %s in the policy's status, or a completed run without failures; found %v and %d records",
				gone, now.storage(), evidence, len(now.Records))
		}
	}},
	{"what the status says of stored bytes is true", func(now, _ Observation, violated reporter) {
		migrated, evidence := now.condition(v1alpha1.StorageMigratedCondition), now.Policy.Status.MigrationEvidence
		for name, is := range sorted(now.Stored) {
			if of := now.Policy.Status.CRD; evidence != nil && of.UID == now.CRD.UID && of.Generation == now.CRD.Generation && of.StorageVersion != is.Version {
				violated("%s is stored at %s; the evidence says that all are at %s", name, is.Version, of.StorageVersion)
			}
			if now.ofCRD() && migrated.Status == metav1.ConditionTrue && migrated.ObservedGeneration == now.Policy.Generation && is.Version != now.storage() {
				violated("%s is stored at %s; StorageMigrated is True while objects are written at %s", name, is.Version, now.storage())
			}
		}
	}},
	{"what a policy stops serving is stored nowhere", func(now, _ Observation, violated reporter) {
		for name, is := range sorted(now.Stored) {
			action := now.Subject.retirement(is.Version).Action
			goes := action == v1alpha1.RetirementUnserve || action == v1alpha1.RetirementRemove
			if goes && !crds.Serves(&now.CRD, is.Version) {
				violated("%s is stored at %s, which is not served any more", name, is.Version)
			}
		}
	}},
	// This compares what only the operator changes, once it has reported that the policy is paused.
	{"a paused policy changes nothing", func(now, before Observation, violated reporter) {
		said := before.condition(v1alpha1.ReadyCondition)
		if !now.sameCRD(before) || !now.Subject.paused() || !before.Policy.Spec.Paused ||
			said.Reason != v1alpha1.ReasonPaused || said.ObservedGeneration != before.Policy.Generation {
			return
		}
		if gone := without(before.After.Status.StoredVersions, now.After.Status.StoredVersions); len(gone) > 0 && now.Pruned == before.Pruned {
			violated("%v went from status.storedVersions", gone)
		}
		if !equality.Semantic.DeepEqual(now.After.Spec.Conversion, before.After.Spec.Conversion) {
			violated("spec.conversion is %v; it was %v", now.After.Spec.Conversion, before.After.Spec.Conversion)
		}
	}},
	{"converter pods serve certificates that are valid and trusted", func(now, _ Observation, violated reporter) {
		for _, pod := range now.Pods {
			if untrusted(pod.Refused) {
				violated("pod %s serves a certificate that caBundle of the definition does not verify: %v", pod.Name, pod.Refused)
			}
		}
	}},
}

// AtRest has the invariants that hold once nothing changes any more.
var AtRest = []Invariant{
	readable,
	{"the policy is ready, or says that it is paused", func(now, _ Observation, violated reporter) {
		ready, migrated := now.condition(v1alpha1.ReadyCondition), now.condition(v1alpha1.StorageMigratedCondition)
		switch {
		case now.Subject.Policy == nil:
		case !now.current():
			violated("there is no policy, or its status is of other generations")
		case now.Subject.paused() && ready.Reason == v1alpha1.ReasonPaused, now.Subject.active() && ready.Status == metav1.ConditionTrue:
		case now.Subject.active() && !now.Subject.migrates() && migrated.Reason == v1alpha1.ReasonMigrationSuspended:
		default:
			violated("Ready is %s, %s: %s", ready.Status, ready.Reason, ready.Message)
		}
	}},
	{"no migration goes on while it is suspended, or the policy paused", func(now, _ Observation, violated reporter) {
		for _, child := range now.Children {
			pods, _, _ := unstructured.NestedInt64(child.Object, "status", "active")
			if now.Subject.Policy != nil && !now.Subject.migrates() && child.GetKind() == "Job" && pods > 0 {
				violated("%s has pods", child.GetName())
			}
		}
	}},
	// Even after another client pruned status.storedVersions.
	{"every object is stored at the storage version", func(now, _ Observation, violated reporter) {
		for name, is := range sorted(now.Stored) {
			if now.Subject.migrates() && is.Version != now.storage() {
				violated("%s is stored at %s; objects are written at %s", name, is.Version, now.storage())
			}
		}
	}},
	{"versions are as their authors want them", func(now, _ Observation, violated reporter) {
		if got, want := describe(&now.CRD), describe(now.Subject.definition()); !slices.Equal(got, want) {
			violated("the versions are %v; expected %v", got, want)
		}
	}},
	{"versions are retired, or the status says what blocks that", func(now, _ Observation, violated reporter) {
		if !now.Subject.migrates() || len(now.Subject.Policy.Retirement) == 0 {
			return
		}
		retired, want, parts := now.condition(v1alpha1.VersionsRetiredCondition), metav1.ConditionTrue, []string{}
		for _, version := range versions {
			if now.Subject.blocker(version) != "" {
				want, parts = metav1.ConditionFalse, append(parts, v1alpha1.ReasonBlocked, version+" stays: ", ownPath(version))
			}
		}
		says := retired.Reason + ": " + retired.Message
		if retired.Status != want || retired.ObservedGeneration != now.Policy.Generation ||
			slices.ContainsFunc(parts, func(part string) bool { return !strings.Contains(says, part) }) {
			violated("VersionsRetired is %s, %s; expected %s with %q", retired.Status, says, want, parts)
		}
	}},
	{"the definition converts where the policy wants it", func(now, _ Observation, violated reporter) {
		if service, _ := namedBy(&now.CRD); now.Subject.active() && service != now.Subject.instance() {
			violated("the definition converts through the Service %q; expected %s", service, now.Subject.instance())
		}
	}},
	{"the ruleset that a definition names is stored, and every ready pod has it", func(now, _ Observation, violated reporter) {
		service, ruleset := namedBy(&now.CRD)
		if service != "" && !slices.Contains(now.Rulesets[service], ruleset) {
			violated("the definition names the ruleset %s of %s, where %v are stored", ruleset, service, now.Rulesets[service])
		}
		for _, pod := range now.Pods {
			if service != "" && pod.Ready && !slices.Contains(pod.RulesetHashes, ruleset) {
				violated("the definition names the ruleset %s, and pod %s has %v: %v", ruleset, pod.Name, pod.RulesetHashes, pod.Refused)
			}
		}
	}},
	// A rotation of the authority waits for policies that do not change their CRD.
	{"the fleet is ready, as large as it should be, and changes nothing", func(now, _ Observation, violated reporter) {
		name := now.Subject.Fleet
		if name == "" {
			return
		}
		if now.Fleet.Name == "" || now.Fleet.Status.ObservedGeneration != now.Fleet.Generation {
			violated("there is no fleet %s, or its status is of another generation", name)
			return
		}
		status, size := now.Fleet.Status, int(*now.State.Fleets[name].Replicas)
		if int(status.Replicas) != size || int(status.ReadyReplicas) != size || len(now.Pods) != size {
			violated("%d pods, of which the status counts %d, and %d as ready; expected %d", len(now.Pods), status.Replicas, status.ReadyReplicas, size)
		}
		conditions := []string{v1alpha1.ReadyCondition, v1alpha1.WebhookAvailableCondition}
		if now.State.follows(name) {
			conditions = append(conditions, v1alpha1.CertificatesReadyCondition)
			if status.Certificate != nil && status.Certificate.Rotation != v1alpha1.RotationIdle {
				violated("the authority of the fleet rotates: %s", status.Certificate.Rotation)
			}
		}
		for _, condition := range conditions {
			if !apimeta.IsStatusConditionTrue(status.Conditions, condition) {
				violated("%s of the fleet is not True: %+v", condition, status.Conditions)
			}
		}
	}},
	// Unless the policy may not change them.
	{"rulesets are stored only where the definition converts", func(now, _ Observation, violated reporter) {
		for place, hashes := range sorted(now.Rulesets) {
			if now.Subject.CRD == nil || now.Subject.active() && place != now.Subject.instance() {
				violated("%s has the rulesets %v", place, hashes)
			}
		}
	}},
	{"certificates are renewed in time", func(now, _ Observation, violated reporter) {
		for _, pod := range now.Pods {
			if !pod.NotAfter.IsZero() && pod.NotAfter.Sub(now.Time) < renewalMargin {
				violated("the certificate that pod %s serves ends at %s", pod.Name, pod.NotAfter)
			}
		}
	}},
	// Rights of migrations and of cleaning end with them unless the policy is paused, the Job of a migration
	// ends with the next one, and everything else with the policy. An orphaned policy leaves its converter.
	{"nothing is left of what is over", func(now, _ Observation, violated reporter) {
		last, crd := cmp.Or(now.Policy.Status.Migration, &v1alpha1.MigrationStatus{}), crdOf(now.Subject.Name)
		for _, child := range now.Children {
			name, run, why := child.GetName(), child.GetLabels()[names.RunLabel], ""
			switch {
			case now.Subject.CRD == nil:
				why = "its policy and its definition are gone"
			case run == "" && strings.HasPrefix(name, names.MigrationRights(crd)) && last.State != v1alpha1.MigrationRunning && !now.Subject.paused():
				why = "no migration goes on"
			case strings.HasPrefix(name, names.CleanRights(crd)) && !now.Subject.paused():
				why = "no version is on its way out"
			case run != "" && run != last.Run && run != last.RetryOf:
				why = "that migration is over, and another came after it"
			default:
				continue
			}
			violated("%s %s: %s", child.GetKind(), name, why)
		}
	}},
}

// readsAsWritten ignores failed reads.
var readsAsWritten = Invariant{"what is read is what was written", func(now, _ Observation, violated reporter) {
	for version, reads := range sorted(now.Reads) {
		for name, got := range sorted(reads) {
			if want := now.Subject.Objects[name].spec(version); !reflect.DeepEqual(got, any(want)) {
				violated("%s is read at %s as %v; expected %v", name, version, got, want)
			}
		}
	}
}}

var preserved = Invariant{"annotations hold what the stored version cannot express, and nothing else", func(now, _ Observation, violated reporter) {
	for name, is := range sorted(now.Stored) {
		want, exists := now.Subject.Objects[name]
		for _, version := range []string{joined, nested} {
			var data map[string]any
			_ = utiljson.Unmarshal([]byte(is.Annotations[annotation(now.Subject, version)]), &data)
			delete(data, "rules") // those of the time when it was written
			var got any
			if data != nil {
				got = data
			}
			removing := now.Subject.version(version) == nil && now.has(version) // it may be gone or not
			if exists && version != is.Version && !removing && !reflect.DeepEqual(got, want.preserved(version)) {
				violated("%s, stored at %s, preserves %v of %s; expected %v", name, is.Version, got, version, want.preserved(version))
			}
		}
	}
}}

var readable = Invariant{"every object is readable in every served version", func(now, _ Observation, violated reporter) {
	for _, version := range now.Subject.served() {
		for name := range sorted(now.Subject.Objects) {
			if _, read := now.Reads[version][name]; !read {
				violated("%s cannot be read at %s: %v", name, version, now.Refused[version])
			}
		}
	}
}}

// renewalMargin is the minimum remaining validity of a certificate that is renewed in time, by the
// validation of ConversionPolicy.
const renewalMargin = 10 * time.Minute

// Check returns the violations of invariants.
func Check(invariants []Invariant, now, before Observation) (wrong []error) {
	for _, each := range invariants {
		each.check(now, before, func(format string, args ...any) {
			wrong = append(wrong, fmt.Errorf("%s: violated by %s: %s", each.name, now.Subject.Name, fmt.Sprintf(format, args...)))
		})
	}
	return wrong
}

// describe returns what authors set of the versions of a CRD.
func describe(crd *apiextensionsv1.CustomResourceDefinition) (all []string) {
	for _, is := range crd.Spec.Versions {
		all = append(all, fmt.Sprintf("%s (served: %t, storage: %t, deprecated: %t)", is.Name, is.Served, is.Storage, is.Deprecated))
	}
	return all
}

// annotation is the name of that with the values of a version.
func annotation(s *Subject, version string) string {
	return conversion.AnnotationName(crdOf(s.Name), version)
}

func without(all, some []string) []string {
	return slices.DeleteFunc(slices.Clone(all), func(each string) bool { return slices.Contains(some, each) })
}
