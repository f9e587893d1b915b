// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package deletion

import (
	"time"

	"github.com/conversion-operator/conversion-operator/internal/operator/plan/certificates"
	"github.com/conversion-operator/conversion-operator/internal/operator/plan/converter"
	"github.com/conversion-operator/conversion-operator/internal/operator/plan/gate"
	"github.com/conversion-operator/conversion-operator/internal/operator/plan/names"
	"github.com/conversion-operator/conversion-operator/internal/operator/plan/observed"
	"github.com/conversion-operator/conversion-operator/internal/operator/plan/step"
)

// An orphan is the rest of a policy that no longer exists: its deletionPolicy was Orphan, or a client removed
// its finalizer. The objects have the name of the policy, so that a new policy of that name takes
// them over. Until then:
//
//   - while a CustomResourceDefinition converts through the orphan, it stays, because objects
//     would be unreadable otherwise; the operator renews the certificates that it issued
//   - after that, it is deleted
//   - migrations are deleted, because there is no status for their evidence

// Orphan decides what to do about an orphan, and reports whether it is still needed. The observed
// policy has only a name. Released is when the operator first saw that the
// CustomResourceDefinition does not convert through the orphan.
func Orphan(cluster observed.Cluster, released time.Time) (work gate.Work, needed bool) {
	converts := converter.Gather(observed.InOrder(cluster))
	d := Gather(converts, nil)
	d.endRuns()
	switch {
	case d.active && d.Authority != nil && converts.NamesPlace():
		in := certificates.InputOf(d.Cluster)
		in.Active, in.EverActive, in.InUse, in.ServingEndpoints = true, converts.EverActive, true, converts.ServingEndpoints()
		d.work.Add(certificates.Gather(in).Upkeep())
	case d.active: // another client renews its certificates
	case d.CRD != nil && !d.work.Due(released.Add(d.Settings.PropagationDelay).Sub(d.Now)): // API servers may call it
	default:
		d.work.Add(converts.ReleaseFleets())
		d.work.Do(step.DeleteChildren{Instance: names.Child(d.Policy.Name)})
	}
	return d.work.Take(), d.active
}
