// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"time"

	"github.com/conversion-operator/conversion-operator/internal/plan/certificates"
	"github.com/conversion-operator/conversion-operator/internal/plan/converter"
	"github.com/conversion-operator/conversion-operator/internal/plan/deletion"
	"github.com/conversion-operator/conversion-operator/internal/plan/observed"
)

// Trust is what converter pods must be verified by, unless something else comes first.
type Trust struct {
	// Drifted tells that another client wrote spec.conversion since the policy did,
	// which is to be undone without waiting for pods.
	Drifted bool
	// CABundle is, or will be, in the CustomResourceDefinition.
	CABundle []byte
	// Successor is what it is going to be next; empty where that is the same.
	Successor []byte
	// RulesetHash is the ruleset that API servers ask for, or will; empty where there is none.
	RulesetHash string
}

// TrustOf returns what converter pods must be verified by.
func TrustOf(cluster observed.Cluster) Trust {
	converts := converter.Gather(observed.InOrder(cluster))
	keeps := certificates.Gather(certificatesInput(converts, false))
	trust := Trust{Drifted: converts.Drifted, CABundle: converts.CABundle(), Successor: keeps.Successor(), RulesetHash: converts.Wanted}
	if trust.RulesetHash == "" && converts.Active {
		trust.RulesetHash = converts.Named()
	}
	return trust
}

// MakeOrphan decides what to do about the rest of a policy that is gone; see
// deletion.Orphan.
func MakeOrphan(cluster observed.Cluster, released time.Time) (Plan, bool) {
	work, needed := deletion.Orphan(cluster, released)
	return Plan{Steps: work.Steps, RecheckAfter: work.RecheckAfter}, needed
}
