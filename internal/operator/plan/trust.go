// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"time"

	"github.com/conversion-operator/conversion-operator/internal/operator/plan/certificates"
	"github.com/conversion-operator/conversion-operator/internal/operator/plan/converter"
	"github.com/conversion-operator/conversion-operator/internal/operator/plan/deletion"
	"github.com/conversion-operator/conversion-operator/internal/operator/plan/names"
	"github.com/conversion-operator/conversion-operator/internal/operator/plan/observed"
)

// Trust is the input of the probes of converter pods.
type Trust struct {
	// Drifted tells that another client changed spec.conversion. The repair does not wait for
	// probes, so that no pod needs one.
	Drifted bool
	// CABundle is the current or future caBundle of the CustomResourceDefinition.
	CABundle []byte
	// Successor is the caBundle after a rotation that is under way; empty if there is none.
	Successor []byte
	// RulesetHash is the ruleset that API servers request, or will request; empty if there is
	// none.
	RulesetHash string
}

// TrustOf returns the input of the probes, which come before Make.
func TrustOf(cluster observed.Cluster) Trust {
	converts := converter.Gather(observed.InOrder(cluster))
	keeps := certificates.Gather(certificatesInput(converts, false))
	trust := Trust{Drifted: converts.Drifted, CABundle: converts.CABundle(), Successor: keeps.Successor(), RulesetHash: converts.Ruleset()}
	if trust.RulesetHash == "" && converts.Active && converts.NamesPlace() {
		trust.RulesetHash = names.RevisionOf(converts.Named()).Hash
	}
	return trust
}

// MakeOrphan decides what to do with the objects of a policy that no longer exists; see
// deletion.Orphan.
func MakeOrphan(cluster observed.Cluster, released time.Time) (Plan, bool) {
	work, needed := deletion.Orphan(cluster, released)
	return Plan{Steps: work.Steps, RecheckAfter: work.RecheckAfter}, needed
}
