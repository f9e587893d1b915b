// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"fmt"
	"slices"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
	"github.com/conversion-operator/conversion-operator/internal/crds"
)

// leave takes the operator out of the CustomResourceDefinition's way when the
// policy is deleted: the CustomResourceDefinition first, then, once no API server
// asks them any more, the pods, then the policy. While objects would become
// unreadable without the converter, the policy works on as if it were not
// deleted: certificates are renewed, and a migration may be what the deletion
// waits for. Its conditions go on to say how that is, Ready among them; that it
// cannot go is DeletionBlocked's alone. Where it is to be abandoned, all that goes
// is the policy, and what still changes things in its name.
func (s *state) leave() {
	if !slices.Contains(s.Policy.Finalizers, Finalizer) {
		return
	}
	inUse := s.inUse()
	if inUse.reason == "" || s.abandoned() {
		apimeta.RemoveStatusCondition(&s.plan.Status.Conditions, v1alpha1.DeletionBlockedCondition)
	}
	switch {
	case s.abandoned():
		s.endRuns()
		s.do(Release{})
		s.summarize(unknown(v1alpha1.ReasonDeleting, "leaving the CustomResourceDefinition and its converter as they are"))
	case inUse.reason != "" && s.Policy.Spec.Suspend:
		s.pause()
		s.report(v1alpha1.DeletionBlockedCondition, inUse)
	case inUse.reason != "":
		s.reach()
		s.report(v1alpha1.DeletionBlockedCondition, inUse)
	case s.CRD != nil && s.armed:
		s.switched = true
		s.do(RestoreCRD{s.pin()})
		s.summarize(unknown(v1alpha1.ReasonDeleting, "setting the CustomResourceDefinition's conversion strategy to None"))
	case s.draining():
		s.summarize(unknown(v1alpha1.ReasonDeleting,
			"the CustomResourceDefinition does not need the converter any more: converter pods answer until no API server asks them"))
	default:
		s.do(DeleteChildren{s.Policy.Name})
		s.do(Release{})
		s.summarize(unknown(v1alpha1.ReasonDeleting, "removing the converter"))
	}
}

func (s *state) abandoned() bool {
	return !s.Policy.DeletionTimestamp.IsZero() && s.Policy.Spec.DeletionPolicy == v1alpha1.DeletionAbandon
}

// lettingGo reports whether spec.conversion is, or is about to be, no business of
// this policy any more.
func (s *state) lettingGo() bool {
	return !s.Policy.DeletionTimestamp.IsZero() && (s.abandoned() || s.inUse().reason == "")
}

// endRuns stops migrations for good, and takes all rights on objects away.
func (s *state) endRuns() {
	for _, run := range s.Runs {
		s.do(DeleteRun{RunName(s.Policy.Name, run.ID)})
	}
	if s.Rights {
		s.withdraw(MigrationRightsName(s.Policy.Name))
	}
	if s.ReadRights {
		s.ReadRights = false
		s.withdraw(ReadRightsName(s.Policy.Name))
	}
	if s.ClearRights {
		s.ClearRights = false
		s.withdraw(ClearRightsName(s.Policy.Name))
	}
}

// draining reports whether API servers may still call the converter, by a
// CustomResourceDefinition as it was before.
func (s *state) draining() bool {
	if s.CRD == nil || !s.engaged {
		return false
	}
	if s.plan.Status.ReleasedTime == nil {
		s.plan.Status.ReleasedTime = &metav1.Time{Time: s.Now}
	}
	left := s.plan.Status.ReleasedTime.Add(s.Settings.Settle).Sub(s.Now)
	if left > 0 {
		s.recheck(left)
	}
	return left > 0
}

// inUse says why the CustomResourceDefinition still needs the converter, or
// nothing: also when somebody else dropped spec.conversion, which does not make
// stored objects readable. Another webhook has taken over.
func (s *state) inUse() outcome {
	if s.CRD == nil || !s.engaged || s.none() && s.unconverted() || !s.armed && crds.Strategy(s.CRD) == apiextensionsv1.WebhookConverter {
		return outcome{}
	}
	if !s.CRD.DeletionTimestamp.IsZero() {
		return outcome{status: metav1.ConditionTrue, reason: v1alpha1.ReasonCRDTerminating,
			message: "the CustomResourceDefinition is being deleted, which needs its webhook: waits until it is gone"}
	}
	inUse := s.versionsInUse()
	if inUse == "" {
		return outcome{}
	}
	// The plan covers every version that there is.
	identity := s.Rules.Plan != nil && s.Rules.Plan.Identity()
	restorable := s.Policy.Spec.DeletionPolicy == v1alpha1.DeletionRestoreNone
	switch {
	case identity && restorable:
		return outcome{}
	case identity:
		inUse += "; the versions differ in nothing, so that strategy None would give the same: set spec.deletionPolicy to RestoreNone"
	default:
		inUse += "; without the converter objects would be unreadable or wrong: serve and store one version only, " +
			"delete the CustomResourceDefinition, or set spec.deletionPolicy to Abandon, which leaves the converter at work"
	}
	return outcome{status: metav1.ConditionTrue, reason: v1alpha1.ReasonVersionsInUse, message: inUse}
}

// versionsInUse names what still needs a conversion, or is empty.
func (s *state) versionsInUse() string {
	if len(s.CRD.Spec.Versions) == 1 {
		return "" // there is nothing to convert into
	}
	storage := crds.StorageVersion(s.CRD)
	for _, served := range crds.ServedVersions(s.CRD) {
		if served != storage {
			return "version " + served + " is served, and objects are written at " + storage
		}
	}
	if !crds.StoredOnlyIn(s.CRD, storage) {
		return "objects may be stored at " + strings.Join(s.CRD.Status.StoredVersions, ", ")
	}
	if s.plan.Status.Evidence == nil {
		return fmt.Sprintf("no migration of this policy has proven that every object is stored at %s (%s)", storage, howToMigrate(s.Policy))
	}
	return ""
}
