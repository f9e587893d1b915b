// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package retirement

import (
	"fmt"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
	"github.com/conversion-operator/conversion-operator/internal/operator/crds"
	"github.com/conversion-operator/conversion-operator/internal/operator/plan/gate"
	"github.com/conversion-operator/conversion-operator/internal/operator/plan/names"
	"github.com/conversion-operator/conversion-operator/internal/operator/plan/step"
)

// The budget of repairs of spec.versions. Unlike spec.conversion, every manifest of a
// CustomResourceDefinition has this list, and each apply of an old manifest reverts it. The
// operator repairs that once or twice; if a tool applies it again and again, users must decide.
const (
	versionRepairsAtMost = 2
	versionRepairWindow  = 24 * time.Hour
)

// noteVersions compares the recorded steps with spec.versions, and records new steps and
// reverted ones.
func (r *Retirement) noteVersions() {
	r.notePromotion()
	r.noteRetirement()
	if len(r.reverted) > 0 && crds.VersionsAreBy(r.CRD, names.ManagedBy) {
		r.reverted = nil // an earlier generation of this policy did that
	}
	if len(r.reverted) > 0 {
		r.recordVersionsDrift()
	}
}

// recordVersionsDrift counts a foreign write. The repair follows in the next reconciliation, so
// that no repair goes uncounted.
func (r *Retirement) recordVersionsDrift() {
	before := r.Status.VersionsDrift
	now := *r.Second()
	drift := v1alpha1.DriftStatus{
		LastManager: crds.VersionsWriter(r.CRD, names.ManagedBy), LastTime: now,
		CRDGeneration: r.CRD.Generation, Answer: v1alpha1.DriftRepaired,
	}
	if before != nil {
		drift.Repairs = slices.DeleteFunc(slices.Clone(before.Repairs), func(repair metav1.Time) bool {
			return !r.Now.Before(repair.Add(versionRepairWindow))
		})
	}
	switch {
	case r.Policy.Spec.Drift == v1alpha1.DriftTolerate:
		drift.Answer = v1alpha1.DriftTolerated
	case len(drift.Repairs) >= versionRepairsAtMost:
		drift.Answer = v1alpha1.DriftContested
	default:
		drift.Repairs = append(drift.Repairs, now)
	}
	r.Status.VersionsDrift = &drift
	r.work.Do(step.Warn{CRD: r.CRD, Reason: versionsDriftReason(drift.Answer), Note: r.revertedBy() + " " + strings.Join(r.reverted, ", and ") + ", in spec.versions of the CustomResourceDefinition"})
}

// driftEnded records that a reverted step was taken again. The repairs stay counted.
func (r *Retirement) driftEnded() {
	if drift := r.Status.VersionsDrift; drift != nil {
		drift.Answer = v1alpha1.DriftRepaired
	}
}

func versionsDriftReason(answer v1alpha1.DriftAnswer) string {
	if answer == v1alpha1.DriftContested {
		return v1alpha1.ReasonContested
	}
	return v1alpha1.ReasonDrifted
}

func (r *Retirement) revertedBy() string {
	if drift := r.Status.VersionsDrift; drift != nil {
		return gate.FieldManager(drift.LastManager)
	}
	return gate.FieldManager("")
}

// heldBack is the outcome if drift keeps the operator from changing spec.versions.
func (r *Retirement) heldBack() gate.Outcome {
	drift := r.Status.VersionsDrift
	if drift == nil {
		return gate.Outcome{}
	}
	manifest := "its manifest"
	if writer := crds.WriterOf(r.CRD); writer != nil {
		manifest = writer.Change
	}
	cure := "align " + manifest + " with this policy, or change spec.storageVersion and spec.retirement here"
	switch {
	case len(r.reverted) > 0 && drift.Answer == v1alpha1.DriftRepaired:
		return gate.Waiting(v1alpha1.ReasonDrifted, r.revertedBy()+" reverted this policy's changes of spec.versions: restoring them")
	case drift.Answer == v1alpha1.DriftTolerated:
		return gate.Stalled(v1alpha1.ReasonDrifted,
			r.revertedBy()+" reverted this policy's changes of spec.versions; spec.drift is Tolerate, so the operator does not restore them: "+cure)
	case drift.Answer == v1alpha1.DriftContested && len(drift.Repairs) > 0 && r.Left(&drift.Repairs[0], versionRepairWindow) > 0:
		r.work.Recheck(r.Left(&drift.Repairs[0], versionRepairWindow))
		return gate.Stalled(v1alpha1.ReasonContested, fmt.Sprintf(
			"%s keeps reverting this policy's changes of spec.versions, and the operator restored them %d times within a day: %s; the operator restores them again after that day, or when the spec of this policy changes",
			r.revertedBy(), versionRepairsAtMost, cure))
	}
	return gate.Outcome{}
}
