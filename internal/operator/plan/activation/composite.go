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
	case a.OfClaims():
		return gate.Stalled(v1alpha1.ReasonCompositeNotUsable, fmt.Sprintf(
			"it defines the claims of %s, which has one spec.conversion for composite resources and claims: delete this policy", crds.WriterOf(a.CRD).Source))
	case a.CompositeProblem.Message != "":
		a.work.Recheck(converter.CompositePause)
		return gate.Waiting(a.CompositeProblem.Reason, a.CompositeProblem.Message)
	case xrd == nil:
		return gate.Outcome{}
	case xrd.Claims() != "" && a.Rulesets():
		return gate.Stalled(v1alpha1.ReasonCompositeNotUsable, fmt.Sprintf(
			"%s has claimNames, and Crossplane copies its spec.conversion to %s, whose objects the rules do not convert: use an XRD without claims, or a converter of your own that converts both kinds", xrd, xrd.Claims()))
	case a.Injected():
		return gate.Stalled(v1alpha1.ReasonForeignConversion,
			"Crossplane reverts a caBundle that an injector writes to the CustomResourceDefinition: choose another type than Injected in spec.certificates")
	case xrd.Spec.Conversion != nil && xrd.Spec.Conversion.Strategy == apiextensionsv1.WebhookConverter && !a.converter.EverActive && !a.ConversionIsOurs() && !a.Copied():
		return gate.Stalled(v1alpha1.ReasonForeignConversion, fmt.Sprintf(
			"another client wrote spec.conversion of %s: remove it there, or delete this policy", xrd))
	}
	return gate.Outcome{}
}
