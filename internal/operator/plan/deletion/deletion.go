// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package deletion

import (
	"fmt"
	"slices"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
	"github.com/conversion-operator/conversion-operator/internal/operator/crds"
	"github.com/conversion-operator/conversion-operator/internal/operator/plan/converter"
	"github.com/conversion-operator/conversion-operator/internal/operator/plan/gate"
	"github.com/conversion-operator/conversion-operator/internal/operator/plan/migration"
	"github.com/conversion-operator/conversion-operator/internal/operator/plan/names"
	"github.com/conversion-operator/conversion-operator/internal/operator/plan/observed"
	"github.com/conversion-operator/conversion-operator/internal/operator/plan/rights"
	"github.com/conversion-operator/conversion-operator/internal/operator/plan/step"
)

// Deletion decides about the deletion of a policy.
type Deletion struct {
	observed.Cluster
	// work that was decided and not handed out yet.
	work gate.Work
	// Released is when the operator first saw that the CustomResourceDefinition no longer
	// needs the converter.
	Released *metav1.Time

	// active tells that the CustomResourceDefinition converts through the converter, and
	// everActive that it does, or did until another client changed it.
	active, everActive bool
	converter          *converter.Converter
	evidence           *v1alpha1.MigrationEvidence
}

// Gather reads whether the CustomResourceDefinition converts through the converter, and the
// evidence of a migration.
func Gather(converts *converter.Converter, evidence *v1alpha1.MigrationEvidence) *Deletion {
	return &Deletion{Cluster: converts.Cluster, converter: converts, Released: converts.Status.Released, evidence: evidence,
		active: converts.Active, everActive: converts.EverActive}
}

// Held reports that the policy has the finalizer.
func (d *Deletion) Held() bool { return slices.Contains(d.Policy.Finalizers, names.Finalizer) }

// EndsRuns reports that migrations end, and all rights to objects are deleted with them.
func (d *Deletion) EndsRuns() bool { return d.Held() && d.Orphaned() }

// Leave takes the next step of a deletion that nothing blocks, or orphans the converter.
func (d *Deletion) Leave() gate.Decision { return d.work.Decide(d.leave()) }

func (d *Deletion) leave() gate.Outcome {
	switch {
	case d.Orphaned():
		d.endRuns()
		d.work.Do(step.RemoveFinalizer{})
		return gate.Unknown(v1alpha1.ReasonDeleting, "leaving the CustomResourceDefinition and its converter in place")
	case d.CRD != nil && d.active:
		d.work.Add(d.converter.RemoveConversion())
		return gate.Unknown(v1alpha1.ReasonDeleting, d.converter.Progress("setting the CustomResourceDefinition's conversion strategy to None"))
	case d.draining():
		return gate.Unknown(v1alpha1.ReasonDeleting,
			"conversion removed from the CustomResourceDefinition: converter pods serve until API servers stop calling them")
	}
	d.work.Add(d.converter.ReleaseFleets())
	d.work.Do(step.DeleteChildren{Instance: names.Child(d.Policy.Name)}, step.RemoveFinalizer{})
	return gate.Unknown(v1alpha1.ReasonDeleting, "removing the converter")
}

// Orphaned reports that the converter stays after the policy is deleted.
func (d *Deletion) Orphaned() bool {
	return d.IsDeleted() && d.Policy.Spec.DeletionPolicy == v1alpha1.DeletionOrphan
}

// LetsGo reports that the policy is deleted and no longer manages spec.conversion.
func (d *Deletion) LetsGo() bool {
	return d.IsDeleted() && (d.Orphaned() || d.InUse().Reason == "")
}

// endRuns deletes migrations and all rights to objects.
func (d *Deletion) endRuns() {
	for _, run := range d.Runs {
		d.work.Do(step.DeleteRun{Name: names.Run(d.Policy.Name, run.ID)})
	}
	if d.Rights {
		d.work.Do(rights.WithdrawOfRuns(d.Cluster))
	}
	if d.ReadRights {
		d.work.Do(rights.Withdraw(d.Cluster, names.ReadRights(d.Policy.Name)))
	}
	if d.CleanRights {
		d.work.Do(rights.Withdraw(d.Cluster, names.CleanRights(d.Policy.Name)))
	}
}

// draining reports that API servers may still call the converter, because they have not seen the
// change of the CustomResourceDefinition. Without a status it is not known whether they have called it.
func (d *Deletion) draining() bool {
	lost := len(d.Policy.Status.Conditions) == 0
	if d.CRD == nil || !d.everActive && d.Released == nil && !lost {
		return false
	}
	if d.Released == nil {
		d.Released = &metav1.Time{Time: d.Now}
	}
	return !d.work.Due(d.Released.Add(d.Settings.PropagationDelay).Sub(d.Now))
}

// InUse is the outcome if the CustomResourceDefinition still needs the converter. It does so after
// another client removed spec.conversion, too, because that makes no stored object readable. It
// does not if another webhook converts now.
func (d *Deletion) InUse() gate.Outcome {
	if d.CRD == nil || !d.everActive || d.None() && d.Unconverted() || !d.active && crds.Strategy(d.CRD) == apiextensionsv1.WebhookConverter {
		return gate.Outcome{}
	}
	if !d.CRD.DeletionTimestamp.IsZero() {
		return gate.Abnormal(v1alpha1.ReasonCRDTerminating, "the CustomResourceDefinition is being deleted and needs its webhook: waiting until it is gone")
	}
	inUse := d.versionsInUse()
	if inUse == "" {
		return gate.Outcome{}
	}
	// There is a ruleset only if the rules cover every version.
	identity := d.Rules.Ruleset != nil && d.Rules.Ruleset.Identity()
	restorable := d.Policy.Spec.DeletionPolicy == v1alpha1.DeletionRestoreNone
	switch {
	case identity && restorable:
		return gate.Outcome{}
	case identity:
		inUse += "; the versions are identical, so strategy None converts correctly: set spec.deletionPolicy to RestoreNone"
	default:
		inUse += "; without the converter, objects would be unreadable or incorrect: serve and store only one version, " +
			"delete the CustomResourceDefinition, or set spec.deletionPolicy to Orphan, which leaves the converter running"
	}
	return gate.Abnormal(v1alpha1.ReasonInUse, inUse)
}

// versionsInUse says what still needs a conversion; empty if nothing does.
func (d *Deletion) versionsInUse() string {
	if len(d.CRD.Spec.Versions) == 1 {
		return "" // there is no other version
	}
	if xrd := d.Composite; xrd != nil && xrd.Claims() != "" {
		return "objects of " + xrd.Other(d.CRD.Name) + ", which has the same conversion, may be stored at any version" // it got claims later
	}
	storage := crds.StorageVersion(d.CRD)
	for _, served := range crds.ServedVersions(d.CRD) {
		if served != storage {
			return "version " + served + " is served, and objects are written at " + storage
		}
	}
	if !crds.StoredOnlyIn(d.CRD, storage) {
		return "objects may be stored at " + strings.Join(d.CRD.Status.StoredVersions, ", ")
	}
	if d.evidence == nil {
		return fmt.Sprintf("no migration of this policy has proven that every object is stored at %s (%s)", storage, migration.HowToMigrate(d.Policy))
	}
	return ""
}
