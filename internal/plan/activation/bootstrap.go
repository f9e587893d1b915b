// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package activation

import (
	"fmt"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
	"github.com/conversion-operator/conversion-operator/internal/plan/gate"
)

// NoDeadlock is a gate: the converter needs no objects of the kind that it is to convert.
func (a *Activation) NoDeadlock() gate.Decision { return a.work.Decide(a.noDeadlock()) }

// noDeadlock stops a policy before the activation if one outage of the converter would last for
// ever. An active converter continues, because objects may be unreadable without it: the condition
// BootstrapDependency warns of it. It also warns if a deadlock is only possible.
func (a *Activation) noDeadlock() gate.Outcome {
	if a.None() || a.converter.EverActive {
		return gate.Outcome{}
	}
	fleet := a.converter.Fleet()
	if !a.IssuesItself(fleet) {
		return gate.Outcome{}
	}
	remedy := "set spec.certificates.selfManaged"
	if fleet != "" {
		remedy = fmt.Sprintf("set spec.workload: {}, or name a fleet with certificates.selfManaged in spec.converterFleetName instead of ConverterFleet %s", fleet)
	}
	return gate.Stalled(v1alpha1.ReasonBootstrapDeadlock,
		"cert-manager reads objects of this kind to renew the certificate of the converter, and API servers could not convert them after the certificate expired: "+remedy)
}
