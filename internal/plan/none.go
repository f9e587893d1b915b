// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
	"github.com/conversion-operator/conversion-operator/internal/conversion"
	"github.com/conversion-operator/conversion-operator/internal/conversion/compile"
	"github.com/conversion-operator/conversion-operator/internal/crds"
)

// equalSchemas: without a conversion nothing is lost, or nothing that the policy
// does not give up by name. Without rules, what rules would keep aside is what the
// API server removes: fields that one version has, and the storage version lacks.
func (s *state) equalSchemas() outcome {
	s.plan.Status.Plan = nil
	storage := crds.StorageVersion(s.CRD)
	lost, accepted, errors := s.losses(storage)
	if len(errors) > 0 {
		return stalled(v1alpha1.ReasonSchemasDiffer, describe(errors))
	}
	if len(lost) > 0 {
		return stalled(v1alpha1.ReasonSchemasDiffer, fmt.Sprintf(
			"%d fields are not the same in the other versions and in the storage version %s, and would be lost without a word: %s. "+
				"Choose another converter, make the schemas equal, or list what may be lost in spec.converter.none.acceptedLosses",
			len(lost), storage, firstOf(lost, maxErrors)))
	}
	if len(accepted) > 0 {
		return passed(v1alpha1.ReasonLossAccepted, fmt.Sprintf(
			"nothing converts; %d fields are lost where a version lacks them, as the policy accepts: %s", len(accepted), firstOf(accepted, maxErrors)))
	}
	return passed(v1alpha1.ReasonSchemasEqual, "all versions have the same fields")
}

// losses are the fields that are lost without a converter where objects are
// written in a version: those that the policy does not give up, and the others.
func (s *state) losses(storage string) (lost, accepted []string, errors field.ErrorList) {
	result := compile.Compile(s.CRD, &v1alpha1.DeclarativeConverter{Hub: v1alpha1.VersionName(storage)})
	if len(result.Errors) > 0 && !s.CRD.Spec.PreserveUnknownFields {
		return nil, nil, result.Errors
	}
	inUse := crds.VersionsInUse(s.CRD)
	for _, leaf := range result.Leaves {
		switch {
		case leaf.Owner == compile.OwnerExact || !slices.Contains(inUse, leaf.Spoke):
		case conversion.Accepted(s.Policy.Spec.Converter.None.AcceptedLosses, leaf.Path):
			accepted = append(accepted, leaf.String())
		default:
			lost = append(lost, leaf.String())
		}
	}
	return lost, accepted, nil
}

// strategyNone: the CustomResourceDefinition calls nobody.
func (s *state) strategyNone() outcome {
	if s.unconverted() {
		s.dropUnused()
		return passed(v1alpha1.ReasonConfigured, "the CustomResourceDefinition's conversion strategy is None")
	}
	if crds.Condition(s.CRD, storageMigrating) {
		return waiting(v1alpha1.ReasonForeignStorageMigration,
			"a StorageVersionMigration of the CustomResourceDefinition is in flight: waits for its end before changing spec.conversion")
	}
	s.switched = true
	s.do(RestoreCRD{s.pin()})
	return waiting(v1alpha1.ReasonConfiguring, "setting the CustomResourceDefinition's conversion strategy to None")
}

// forget lets go of the converter of before when no API server asks for it any more.
func (s *state) forget() {
	if s.none() && s.unconverted() && len(s.plan.Status.ArmedPlans) == 0 {
		s.engaged = false
		s.plan.Status.ArmedCRD, s.plan.Status.Webhook, s.plan.Status.Certificate = "", nil, nil
	}
}

func firstOf(names []string, most int) string {
	if len(names) > most {
		return fmt.Sprintf("%s and %d more", strings.Join(names[:most], ", "), len(names)-most)
	}
	return strings.Join(names, ", ")
}
