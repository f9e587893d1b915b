// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"fmt"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
	"github.com/conversion-operator/conversion-operator/internal/crds"
)

// The budget of repairs of spec.versions. Every manifest of a CustomResourceDefinition
// has that list, other than spec.conversion: who applies it again says something
// else of storage and served each time. One release that was forgotten is repaired;
// against a tool that applies it every few minutes, people have to decide.
const (
	versionRepairsAtMost = 2
	versionRepairWindow  = 24 * time.Hour
)

// noteVersions compares what this policy had reached in spec.versions with what
// is there, and remembers both that and what somebody took back.
func (s *state) noteVersions() {
	if s.CRD == nil || s.recreated() {
		s.plan.Status.VersionsDrift = nil
	}
	s.notePromotion()
	s.noteRetirement()
	if len(s.takenBack) > 0 && crds.VersionsAreBy(s.CRD, ManagedBy) {
		s.takenBack = nil // by this policy, as it was before
	}
	if len(s.takenBack) > 0 {
		s.recordVersionsDrift()
	}
}

// recordVersionsDrift counts a foreign write before it is answered, and answers it
// at the next look: a repair is never uncounted.
func (s *state) recordVersionsDrift() {
	before := s.plan.Status.VersionsDrift
	now := *s.second()
	drift := v1alpha1.DriftStatus{
		LastManager: crds.VersionsWriter(s.CRD, ManagedBy), LastTime: now,
		CRDGeneration: s.CRD.Generation, PolicyGeneration: s.Policy.Generation, Answer: v1alpha1.DriftRepaired,
	}
	if before != nil && before.PolicyGeneration == s.Policy.Generation {
		drift.Repairs = slices.DeleteFunc(slices.Clone(before.Repairs), func(repair metav1.Time) bool {
			return !s.Now.Before(repair.Add(versionRepairWindow))
		})
	}
	switch {
	case s.Policy.Spec.Drift == v1alpha1.DriftReport:
		drift.Answer = v1alpha1.DriftReported
	case len(drift.Repairs) >= versionRepairsAtMost:
		drift.Answer = v1alpha1.DriftContested
	default:
		drift.Repairs = append(drift.Repairs, now)
	}
	s.plan.Status.VersionsDrift = &drift
	s.do(Warn{s.CRD, versionsDriftReason(drift.Answer), s.whoTookBack() + " " + strings.Join(s.takenBack, ", and ") + ", in spec.versions of the CustomResourceDefinition"})
}

// gaveIn: what somebody took back, and was left so, is there again. Nothing is held
// back any more; the repairs stay counted.
func (s *state) gaveIn() {
	if drift := s.plan.Status.VersionsDrift; drift != nil {
		drift.Answer = v1alpha1.DriftRepaired
	}
}

func versionsDriftReason(answer v1alpha1.DriftAnswer) string {
	if answer == v1alpha1.DriftContested {
		return v1alpha1.ReasonVersionsContested
	}
	return v1alpha1.ReasonVersionsDrifted
}

func (s *state) whoTookBack() string {
	if drift := s.plan.Status.VersionsDrift; drift != nil {
		return fieldManager(drift.LastManager)
	}
	return fieldManager("")
}

// heldBack says why spec.versions is not written although it differs.
func (s *state) heldBack() outcome {
	drift := s.plan.Status.VersionsDrift
	if drift == nil || drift.PolicyGeneration != s.Policy.Generation {
		return outcome{}
	}
	const cure = "let its manifest say what this policy says of spec.versions, or change spec.storageVersion and spec.retirement here"
	switch {
	case len(s.takenBack) > 0 && drift.Answer == v1alpha1.DriftRepaired:
		return waiting(v1alpha1.ReasonVersionsDrifted, s.whoTookBack()+" took back what this policy had changed in spec.versions: writing it again")
	case drift.Answer == v1alpha1.DriftReported:
		return stalled(v1alpha1.ReasonVersionsDrifted,
			s.whoTookBack()+" took back what this policy had changed in spec.versions; spec.drift is Report, so nothing is written: "+cure)
	case drift.Answer == v1alpha1.DriftContested && len(drift.Repairs) > 0 && s.left(&drift.Repairs[0], versionRepairWindow) > 0:
		s.recheck(s.left(&drift.Repairs[0], versionRepairWindow))
		return stalled(v1alpha1.ReasonVersionsContested, fmt.Sprintf(
			"%s takes back what this policy changes in spec.versions, and it was written again %d times within a day: %s; it is written again when the day is past, or when the spec of this policy changes",
			s.whoTookBack(), versionRepairsAtMost, cure))
	}
	return outcome{}
}

// left is how much of a time is left since a moment.
func (s *state) left(since *metav1.Time, of time.Duration) time.Duration {
	return since.Add(of).Sub(s.Now)
}
