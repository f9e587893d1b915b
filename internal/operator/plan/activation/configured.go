// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package activation

import (
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/equality"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
	"github.com/conversion-operator/conversion-operator/internal/operator/crds"
	"github.com/conversion-operator/conversion-operator/internal/operator/plan/gate"
	"github.com/conversion-operator/conversion-operator/internal/operator/plan/observed"
)

// Configured is the gate ConversionConfigured: spec.conversion points at these endpoints.
func (a *Activation) Configured() gate.Decision { return a.work.Decide(a.configured()) }

// configured points the CustomResourceDefinition at the verified converter. It writes only
// a difference: every write of the spec makes every API server rebuild the storage of the
// kind.
func (a *Activation) configured() gate.Outcome {
	if !a.CRD.DeletionTimestamp.IsZero() {
		return gate.Unknown(v1alpha1.ReasonCRDTerminating,
			"the CustomResourceDefinition is being deleted and needs its webhook: keeping the converter until it is gone")
	}
	if a.None() {
		return a.strategyNone()
	}
	if waits := a.refuseTooLarge(); waits.Stop {
		return waits
	}
	wanted := a.converter.Conversion(a.converter.Wanted)
	if a.isConfigured(wanted) {
		return gate.Passed(v1alpha1.ReasonConfigured, "the CustomResourceDefinition converts through "+observed.WebhookOf(a.CRD))
	}
	if a.repair == "" && crds.Condition(a.CRD, observed.StorageMigrating) {
		return gate.Waiting(v1alpha1.ReasonForeignStorageMigration,
			"a StorageVersionMigration of the CustomResourceDefinition is in progress: waiting for it to finish before changing spec.conversion")
	}
	if a.repair == "" {
		a.point(a.converter.Wanted)
	}
	return gate.Waiting(v1alpha1.ReasonConfiguring, a.converter.Progress("switching the CustomResourceDefinition to the webhook"))
}

// isConfigured reports that spec.conversion is the desired one, except for a caBundle that a
// rotation changes later.
func (a *Activation) isConfigured(wanted *apiextensionsv1.CustomResourceConversion) bool {
	there := a.CRD.Spec.Conversion
	if a.certificates.TrustsOther() {
		there = there.DeepCopy()
		there.Webhook.ClientConfig.CABundle = a.CABundle()
	}
	return equality.Semantic.DeepEqual(there, wanted)
}

// strategyNone sets the conversion strategy None.
func (a *Activation) strategyNone() gate.Outcome {
	if a.Unconverted() {
		a.work.Add(a.converter.DropUnused())
		return gate.Passed(v1alpha1.ReasonConfigured, "the CustomResourceDefinition's conversion strategy is None")
	}
	if crds.Condition(a.CRD, observed.StorageMigrating) {
		return gate.Waiting(v1alpha1.ReasonForeignStorageMigration,
			"a StorageVersionMigration of the CustomResourceDefinition is in progress: waiting for it to finish before changing spec.conversion")
	}
	a.work.Add(a.converter.RemoveConversion())
	return gate.Waiting(v1alpha1.ReasonConfiguring, a.converter.Progress("setting the CustomResourceDefinition's conversion strategy to None"))
}
