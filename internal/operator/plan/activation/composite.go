// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package activation

import (
	"fmt"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
	"github.com/conversion-operator/conversion-operator/internal/operator/crds"
	"github.com/conversion-operator/conversion-operator/internal/operator/plan/converter"
	"github.com/conversion-operator/conversion-operator/internal/operator/plan/gate"
)

// generated stops a policy for a CustomResourceDefinition that Crossplane generates, if the operator
// cannot write spec.conversion of its CompositeResourceDefinition (XRD), or must not.
func (a *Activation) generated() gate.Outcome {
	xrd := a.Composite
	switch {
	case a.None() && a.Unconverted():
		return gate.Outcome{} // there is nothing to write
	case crds.OfClaims(a.CRD):
		return gate.Stalled(v1alpha1.ReasonCompositeNotUsable, fmt.Sprintf(
			"it defines the claims of %s: %s: delete this policy", crds.WriterOf(a.CRD).Source, crds.OneKind))
	case a.CompositeProblem.Message != "":
		a.work.Recheck(converter.CompositePause)
		return gate.Waiting(a.CompositeProblem.Reason, a.CompositeProblem.Message)
	case xrd == nil:
		return gate.Outcome{}
	case xrd.Claims() != "":
		return gate.Stalled(v1alpha1.ReasonCompositeNotUsable, fmt.Sprintf(
			"%s has claimNames, for %s: %s: use an XRD without claims, or delete this policy and convert both kinds without the operator", xrd, xrd.Claims(), crds.OneKind))
	case a.Injected():
		return gate.Stalled(v1alpha1.ReasonForeignConversion,
			"Crossplane reverts a caBundle that an injector writes to the CustomResourceDefinition: choose another type than Injected in spec.certificates")
	case xrd.Spec.Conversion != nil && xrd.Spec.Conversion.Strategy == apiextensionsv1.WebhookConverter && !a.converter.EverActive && !a.ConversionIsOurs() && !a.Copied():
		return gate.Stalled(v1alpha1.ReasonForeignConversion, fmt.Sprintf(
			"another client wrote spec.conversion of %s: remove it there, or delete this policy", xrd))
	}
	return gate.Outcome{}
}
