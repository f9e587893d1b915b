// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package certificates

import (
	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
	"github.com/conversion-operator/conversion-operator/internal/pki"
	"github.com/conversion-operator/conversion-operator/internal/plan/gate"
	"github.com/conversion-operator/conversion-operator/internal/plan/observed"
)

// ofFleet is the certificate of a fleet, which the fleet issues and rotates. A policy of the fleet
// keeps only caBundle of its CustomResourceDefinition up to date.
type ofFleet struct{ *Certificates }

func (ofFleet) maintain() {}

func (f ofFleet) offer() offer {
	if f.Certificate == nil {
		return offer{wrong: new(gate.Waiting(v1alpha1.ReasonIssuing, "waiting for the serving certificate of the fleet"))}
	}
	roots, err := pki.ParseBundle(f.Certificate.Data[observed.CAKey])
	if err != nil {
		return offer{wrong: new(gate.Waiting(v1alpha1.ReasonIssuing, "waiting for the certificate authority of the fleet"))}
	}
	return offer{roots: roots, pair: observed.KeyPair(f.Certificate)}
}
