// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package converter

import (
	"fmt"
	"slices"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	appsv1apply "k8s.io/client-go/applyconfigurations/apps/v1"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
	"github.com/conversion-operator/conversion-operator/internal/engine/conversion"
	"github.com/conversion-operator/conversion-operator/internal/engine/conversion/compile"
	"github.com/conversion-operator/conversion-operator/internal/operator/crds"
	"github.com/conversion-operator/conversion-operator/internal/operator/plan/gate"
)

// none is the kind of a policy without a converter.
type none struct{ pods }

func (none) choose()  {}
func (none) prepare() {}

func (none) client() (*apiextensionsv1.WebhookClientConfig, []string) {
	return &apiextensionsv1.WebhookClientConfig{}, nil
}

func (none) deployment() *appsv1apply.DeploymentApplyConfiguration { return nil }

func (none) available() gate.Outcome { return gate.NotNeeded() }

// valid passes if no field is lost without a conversion, except those that the policy accepts
// by name. API servers remove the fields that rules would preserve: fields of one version that
// the storage version lacks.
func (n none) valid([]string) gate.Outcome {
	n.Status.Revision = ""
	storage := crds.StorageVersion(n.CRD)
	lost, accepted, errors := n.losses(storage)
	if len(errors) > 0 {
		return gate.Stalled(v1alpha1.ReasonInvalidSpec, gate.Errors(errors))
	}
	if len(lost) > 0 {
		return gate.Stalled(v1alpha1.ReasonInvalidSpec, fmt.Sprintf(
			"%d fields differ between the storage version %s and the other versions, and API servers would drop them silently: %s. "+
				"Choose another converter, make the schemas equal, or list what may be lost in spec.converter.none.acceptedLosses",
			len(lost), storage, gate.FirstOf(lost, gate.MaxErrors)))
	}
	if len(accepted) > 0 {
		return gate.Passed(v1alpha1.ReasonValid, fmt.Sprintf(
			"no converter: the policy accepts the loss of %d fields that some versions lack: %s", len(accepted), gate.FirstOf(accepted, gate.MaxErrors)))
	}
	return gate.Passed(v1alpha1.ReasonValid, "all versions have the same fields")
}

// LossAt says which fields would be lost if objects were stored at a version without a
// converter; empty if none would be.
func (c *Converter) LossAt(storage string) string {
	lost, _, errors := c.losses(storage)
	if len(errors) > 0 {
		return gate.Errors(errors)
	}
	if len(lost) > 0 {
		return "API servers would drop fields without a converter: " + gate.FirstOf(lost, gate.MaxErrors)
	}
	return ""
}

// losses are the fields that are lost if objects are stored at a version without a converter,
// and among them those that the policy accepts.
func (c *Converter) losses(storage string) (lost, accepted []string, errors field.ErrorList) {
	result := compile.Compile(c.CRD, &v1alpha1.DeclarativeConverter{Hub: v1alpha1.VersionName(storage)})
	if len(result.Errors) > 0 && !c.CRD.Spec.PreserveUnknownFields {
		return nil, nil, result.Errors
	}
	inUse := crds.VersionsInUse(c.CRD)
	for _, leaf := range result.Leaves {
		switch {
		case leaf.Owner == compile.OwnerExact || !slices.Contains(inUse, leaf.Spoke):
		case conversion.Accepts(c.Policy.Spec.Converter.AcceptedLosses(), leaf.Path):
			accepted = append(accepted, leaf.String())
		default:
			lost = append(lost, leaf.String())
		}
	}
	return lost, accepted, nil
}
