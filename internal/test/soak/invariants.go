// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package soak

import (
	"cmp"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"

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
	"github.com/conversion-operator/conversion-operator/internal/webhook/probe"
)

// Invariant is a promise to users.
type Invariant struct {
	Name string
	// broken returns what breaks it in the current observation of a subject, given the previous one.
	broken func(now, before Observation) []any
}

// each returns the invariant that holds if it holds for everything of a kind in an observation.
func each[T any](name string, of func(Observation) []T, holds func(now Observation, is T) bool) Invariant {
	return Invariant{name, func(now, _ Observation) (broken []any) {
		for _, is := range of(now) {
			if !holds(now, is) {
				broken = append(broken, is)
			}
		}
		return broken
	}}
}

// whole returns the invariant of an observation and the one before.
func whole(name string, holds func(now, before Observation) bool) Invariant {
	return Invariant{name, func(now, before Observation) []any {
		if holds(now, before) {
			return nil
		}
		return []any{"the state below"}
	}}
}

// Check returns the violations of invariants, and the state.
func Check(invariants []Invariant, now, before Observation) error {
	var wrong []error
	for _, each := range invariants {
		for _, is := range each.broken(now, before) {
			wrong = append(wrong, fmt.Errorf("%s: violated in %s: %+v", each.Name, now.Subject.Name, is))
		}
	}
	if len(wrong) == 0 {
		return nil
	}
	return fmt.Errorf("%w\n%v", errors.Join(wrong...), now)
}

// Always has the invariants that hold at any time.
var Always = []Invariant{
	readsAsWritten,
	whole("etcd has the objects that were written, and no others", func(now, _ Observation) bool {
		return len(now.Stored) == len(now.Subject.Objects) && !slices.ContainsFunc(now.Stored, func(is Stored) bool { return now.Subject.Objects[is.Name] == nil })
	}),
	// Objects may remain at a version that another client pruned, but nothing is written at that version
	// afterwards.
	each("stored bytes are at listed versions", Observation.stored, func(now Observation, is Stored) bool {
		return now.lists(is.Version) || is.Revision < now.Pruned
	}),
	preserved,
	whole("a version stays while values would be lost with it", func(now, _ Observation) bool {
		return !slices.ContainsFunc(versions, func(version string) bool { return !now.has(version) && now.Subject.blocker(version) != "" })
	}),
	each("what may be removed is stored nowhere", Observation.stored, func(now Observation, is Stored) bool {
		return !now.ofCRD() || !now.safeToRemove(is.Version)
	}),
	each("what may be removed takes no values along", Observation.stored, func(now Observation, is Stored) bool {
		return !now.current() || !slices.ContainsFunc(versions, func(version string) bool {
			accepted := (&Subject{Policy: &now.Policy.Spec}).retirement(version).AcceptedLosses
			return now.safeToRemove(version) && len(accepted) == 0 && is.Annotations[annotation(now.Subject, version)] != ""
		})
	}),
	// Unless the storage version changed, or another client pruned it.
	whole("storedVersions is pruned with evidence", func(now, before Observation) bool {
		same := now.CRD.UID == before.CRD.UID && now.Policy.Name != "" && before.Policy.Name != "" && now.storage() == before.storage() && now.Pruned == before.Pruned
		of := now.Policy.Status.CRD
		proven := now.Policy.Status.MigrationEvidence != nil && of.UID == now.CRD.UID && of.StorageVersion == now.storage()
		return !same || proven || !now.prunes(before) || slices.ContainsFunc(now.Records, func(record contract.Record) bool {
			return record.CRDUID == now.CRD.UID && record.State == contract.StateCompleted && record.Failed == 0
		})
	}),
	each("migration evidence is true", Observation.stored, func(now Observation, is Stored) bool {
		return now.Policy.Status.MigrationEvidence == nil || !now.ofCRD() || is.Version == now.Policy.Status.CRD.StorageVersion
	}),
	each("StorageMigrated is true", Observation.stored, func(now Observation, is Stored) bool {
		migrated := now.condition(v1alpha1.StorageMigratedCondition)
		return migrated.Status != metav1.ConditionTrue || !now.ofCRD() || migrated.ObservedGeneration != now.Policy.Generation || is.Version == now.storage()
	}),
	each("what a policy stops serving is stored nowhere", Observation.stored, func(now Observation, is Stored) bool {
		action := now.Subject.retirement(is.Version).Action
		goes := action == v1alpha1.RetirementUnserve || action == v1alpha1.RetirementRemove
		return !goes || crds.Serves(&now.CRD, is.Version)
	}),
	// This compares what only the operator changes, once it has reported that the policy is paused.
	whole("a paused policy changes nothing", func(now, before Observation) bool {
		said := before.condition(v1alpha1.ReadyCondition)
		paused := now.CRD.UID == before.CRD.UID && now.Subject.paused() && before.Policy.Spec.Paused &&
			said.Reason == v1alpha1.ReasonPaused && said.ObservedGeneration == before.Policy.Generation
		return !paused || equality.Semantic.DeepEqual(now.CRD.Spec.Conversion, before.CRD.Spec.Conversion) &&
			(!now.prunes(before) || now.Pruned != before.Pruned)
	}),
	each("caBundle verifies the certificates of converter pods", Observation.pods, func(_ Observation, is pod) bool {
		return is.Refused == nil || is.Refused.Reason != probe.ReasonTLSVerificationFailed
	}),
}

// AtRest has the invariants that hold once nothing changes any more.
var AtRest = []Invariant{
	readable,
	whole("the policy is ready, or says that it is paused", func(now, _ Observation) bool {
		ready, migrated := now.condition(v1alpha1.ReadyCondition), now.condition(v1alpha1.StorageMigratedCondition)
		return now.Subject.Policy == nil || now.current() && (now.Subject.paused() && ready.Reason == v1alpha1.ReasonPaused ||
			now.Subject.active() && ready.Status == metav1.ConditionTrue ||
			now.Subject.active() && !now.Subject.migrates() && migrated.Reason == v1alpha1.ReasonMigrationSuspended)
	}),
	each("no migration goes on while it is suspended, or the policy paused", Observation.children, func(now Observation, child unstructured.Unstructured) bool {
		pods, _, _ := unstructured.NestedInt64(child.Object, "status", "active")
		return now.Subject.Policy == nil || now.Subject.migrates() || child.GetKind() != "Job" || pods == 0
	}),
	// Even after another client pruned status.storedVersions.
	each("every object is stored at the storage version", Observation.stored, func(now Observation, is Stored) bool {
		return !now.Subject.migrates() || is.Version == now.storage()
	}),
	whole("versions are as their authors want them", func(now, _ Observation) bool {
		return slices.Equal(describe(&now.CRD), describe(&now.Subject.CRD))
	}),
	whole("versions are retired, or the status says what blocks that", func(now, _ Observation) bool {
		retired, want, parts := now.condition(v1alpha1.VersionsRetiredCondition), metav1.ConditionTrue, []string{}
		for _, version := range versions {
			if now.Subject.blocker(version) != "" {
				want, parts = metav1.ConditionFalse, append(parts, v1alpha1.ReasonBlocked, version+" stays: ", ownPath(version))
			}
		}
		says := retired.Reason + ": " + retired.Message
		return !now.Subject.migrates() || len(now.Subject.Policy.Retirement) == 0 || retired.Status == want && retired.ObservedGeneration == now.Policy.Generation &&
			!slices.ContainsFunc(parts, func(part string) bool { return !strings.Contains(says, part) })
	}),
	whole("the definition converts where the policy wants it", func(now, _ Observation) bool {
		return !now.Subject.active() || now.named().Instance == now.Subject.instance()
	}),
	whole("the ruleset that a definition names is stored", func(now, _ Observation) bool {
		return now.named() == ruleset{} || slices.Contains(now.Rulesets, now.named())
	}),
	each("the ruleset that a definition names is in every ready pod", Observation.pods, func(now Observation, is pod) bool {
		return now.named() == ruleset{} || !is.Ready || slices.Contains(is.RulesetHashes, now.named().Hash)
	}),
	// Unless the policy may not change them.
	each("rulesets are stored only where the definition converts", Observation.rulesets, func(now Observation, is ruleset) bool {
		return now.Subject.exists() && (!now.Subject.active() || is.Instance == now.Subject.instance())
	}),
	// A rotation of the authority waits for policies that do not change their CRD.
	whole("the fleet is ready, as large as it should be, and changes nothing", func(now, _ Observation) bool {
		name, status := now.Subject.Fleet, now.Fleet.Status
		if name == "" {
			return true
		}
		size, ready := int(*now.State.Fleets[name].Replicas), func(condition string) bool { return apimeta.IsStatusConditionTrue(status.Conditions, condition) }
		rotated := ready(v1alpha1.CertificatesReadyCondition) && (status.Certificate == nil || status.Certificate.Rotation == v1alpha1.RotationIdle)
		return now.Fleet.Name != "" && status.ObservedGeneration == now.Fleet.Generation &&
			int(status.Replicas) == size && int(status.ReadyReplicas) == size && len(now.Pods) == size &&
			ready(v1alpha1.ReadyCondition) && ready(v1alpha1.WebhookAvailableCondition) && (rotated || !now.State.follows(name))
	}),
	// At least as early as the validation of ConversionPolicy demands.
	each("certificates are renewed in time", Observation.pods, func(now Observation, is pod) bool {
		return is.NotAfter.IsZero() || is.NotAfter.Sub(now.Time) >= 10*time.Minute
	}),
	// Rights of migrations and of cleaning end with them unless the policy is paused, the Job of a migration
	// ends with the next one, and everything else with the policy. An orphaned policy leaves its converter.
	each("nothing is left of what is over", Observation.children, func(now Observation, child unstructured.Unstructured) bool {
		last, crd := cmp.Or(now.Policy.Status.Migration, &v1alpha1.MigrationStatus{}), crdOf(now.Subject.Name)
		switch name, run := child.GetName(), child.GetLabels()[names.RunLabel]; {
		case !now.Subject.exists():
			return false
		case strings.HasPrefix(name, names.CleanRights(crd)):
			return now.Subject.paused()
		case run == "" && strings.HasPrefix(name, names.MigrationRights(crd)):
			return now.Subject.paused() || last.State == v1alpha1.MigrationRunning
		default:
			return run == "" || run == last.Run || run == last.RetryOf
		}
	}),
}

// readsAsWritten ignores failed reads.
var readsAsWritten = each("what is read is what was written", Observation.reads, func(now Observation, is read) bool {
	return is.Refused != nil || reflect.DeepEqual(is.Got, any(now.Subject.Objects[is.Name].spec(is.Version)))
})

var readable = each("every object is readable in every served version", Observation.reads, func(_ Observation, is read) bool {
	return is.Refused == nil
})

var preserved = each("annotations hold what the stored version cannot express, and nothing else", Observation.stored, func(now Observation, is Stored) bool {
	want, exists := now.Subject.Objects[is.Name]
	return !exists || !slices.ContainsFunc([]string{joined, nested}, func(version string) bool {
		var got map[string]any
		_ = utiljson.Unmarshal([]byte(is.Annotations[annotation(now.Subject, version)]), &got)
		delete(got, "rules")                                                // those of the time when it was written
		removing := now.Subject.version(version) == nil && now.has(version) // it may be gone or not
		return version != is.Version && !removing && !reflect.DeepEqual(got, want.preserved(version))
	})
})

// annotation is the name of that with the values of a version.
func annotation(s *Subject, version string) string {
	return conversion.AnnotationName(crdOf(s.Name), version)
}
