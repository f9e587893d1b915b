// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package deletion

import (
	"time"

	"github.com/conversion-operator/conversion-operator/internal/plan/certificates"
	"github.com/conversion-operator/conversion-operator/internal/plan/converter"
	"github.com/conversion-operator/conversion-operator/internal/plan/gate"
	"github.com/conversion-operator/conversion-operator/internal/plan/observed"
	"github.com/conversion-operator/conversion-operator/internal/plan/step"
)

// An orphan is the rest of a policy that is gone: it was abandoned, or its
// finalizer was removed by force. Its objects carry the name of the policy, so
// that a policy of that name takes them over. Until one comes:
//
//   - a CustomResourceDefinition that converts through the orphan keeps it, with a
//     certificate that is renewed where the operator has issued it, since its objects
//     would be unreadable otherwise
//   - what no CustomResourceDefinition asks for any more is deleted
//   - migrations are stopped: no one would judge what they prove

// Orphan decides what to do about an orphan. The observed policy has nothing but a
// name. Released is when the CustomResourceDefinition was first seen not to convert
// through the orphan. It reports whether the orphan is needed.
func Orphan(cluster observed.Cluster, released time.Time) (work gate.Work, needed bool) {
	converts := converter.Gather(observed.InOrder(cluster))
	d := Gather(converts, nil)
	d.endRuns()
	switch {
	case d.active && d.Authority != nil:
		d.work.Add(certificates.Gather(certificates.Input{
			Cluster: d.Cluster, Active: true, EverActive: converts.EverActive, InUse: true, ServingEndpoints: converts.ServingEndpoints()}).Upkeep())
	case d.active: // another client issues its certificates
	case d.CRD != nil && d.Now.Before(released.Add(d.Settings.PropagationDelay)):
		d.work.Recheck(released.Add(d.Settings.PropagationDelay).Sub(d.Now))
	default:
		d.work.Do(step.DeleteChildren{Policy: d.Policy.Name})
	}
	return d.work.Take(), d.active
}
