// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package retirement

import (
	"fmt"
	"strings"
	"time"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
	"github.com/conversion-operator/conversion-operator/internal/operator/plan/gate"
	"github.com/conversion-operator/conversion-operator/internal/operator/plan/names"
	"github.com/conversion-operator/conversion-operator/internal/operator/plan/rights"
	"github.com/conversion-operator/conversion-operator/internal/operator/plan/step"
)

// managedFields of objects name the versions at which clients wrote them. Once such a version
// does not exist any more, API servers refuse every server-side apply of the object, because
// they cannot convert it to compare owners.

// clearLifetime is how long a check counts for the removal of a version. A version may stay unserved for
// months before that, and an update with old managedFields may bring entries back. It exceeds the time
// of a search for dependents, which comes between the check and the removal.
const clearLifetime = 24 * time.Hour

// clear removes a version from the managedFields of all objects. It returns no outcome once no
// object names the version. The result is kept in memory only, so that every manager checks it
// itself before it removes the version.
func (r *Retirement) clear(record *v1alpha1.RetirementStatus) gate.Outcome {
	discard := r.toDiscard(record)
	subject := names.Hash(string(r.CRD.UID), record.Version, record.UnservedTime.UTC().Format(time.RFC3339), r.converter.Ruleset(), strings.Join(discard, "\n"))
	check := r.Cleared
	outdated := check.ProvenOf(subject) && record.CleanedTime != nil && !r.Now.Before(check.Ended.Add(clearLifetime))
	switch {
	case check.ProvenOf(subject) && !outdated:
		if record.CleanedTime == nil {
			record.CleanedTime = r.Second()
		}
		return gate.Outcome{}
	case rights.ToClear(r.Cluster).Missing() != "":
		r.work.Recheck(rights.Pause)
		return gate.Pending(v1alpha1.ReasonRightsNotGranted, rights.ToClear(r.Cluster).Missing())
	case outdated || r.work.DueCheck(check, subject, r.Now):
		r.work.Do(rights.ToClear(r.Cluster).Steps()...)
		r.work.Do(step.ClearManagedFields{Subject: subject, CRD: r.CRD, Version: record.Version, Rules: r.Rules.Ruleset, Discard: discard,
			User: names.Cleaner(r.Policy.Name, r.Settings.Namespace)})
	case !check.Running:
		what := ""
		if len(discard) > 0 {
			what = ", or have preserved values of it whose loss spec.retirement accepts"
		}
		return gate.Pending(v1alpha1.ReasonCheckFailed, fmt.Sprintf("objects still name %s in metadata.managedFields%s: %s", record.Version, what, gate.Cut(check.Message)))
	}
	r.CleansManagedFields = true
	what := ""
	if len(discard) > 0 {
		what = ", and preserved values whose loss spec.retirement accepts from their annotations"
	}
	return gate.Pending(v1alpha1.ReasonRetiring, fmt.Sprintf("removing %s from metadata.managedFields of the objects%s", record.Version, what))
}

// toDiscard are the fields whose preserved values may be lost with the version. There are none
// before a count, made after the version was unserved, and a search for dependents if the policy asks
// for one, show that nothing else blocks it.
func (r *Retirement) toDiscard(record *v1alpha1.RetirementStatus) []string {
	entry, known := r.retirement(record.Version), r.migration.Status.PreservedData
	if entry == nil || !reaches(entry.Action, v1alpha1.RetirementRemove) || len(r.strands(record.Version)) > 0 || known == nil || len(r.named(record.Version)) > 0 {
		return nil
	}
	return entry.AcceptedLosses
}
