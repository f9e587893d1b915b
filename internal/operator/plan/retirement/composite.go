// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package retirement

import (
	"fmt"
	"strings"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
	"github.com/conversion-operator/conversion-operator/internal/operator/crds"
	"github.com/conversion-operator/conversion-operator/internal/operator/plan/gate"
	"github.com/conversion-operator/conversion-operator/internal/operator/plan/step"
)

// byCrossplane says how users make a change of spec.versions that the operator must not make, because
// Crossplane generates the CustomResourceDefinition and would revert it. The outcome has no reason if
// Crossplane does not. A promotion stops what follows; a retirement only waits.
func (r *Retirement) byCrossplane(reason, note string, changes []step.VersionChange) gate.Outcome {
	if crds.CompositeOf(r.CRD) == nil {
		return gate.Outcome{}
	}
	var edits []string
	for _, change := range changes {
		switch {
		case change.Field == "":
			edits = append(edits, "remove "+change.Name)
		case change.Field == "storage":
			edits = append(edits, fmt.Sprintf("set referenceable: %v for %s", change.Value, change.Name))
		case change.Value == nil:
			edits = append(edits, fmt.Sprintf("remove %s from %s", change.Field, change.Name))
		default:
			edits = append(edits, fmt.Sprintf("set %s: %v for %s", change.Field, change.Value, change.Name))
		}
	}
	message := fmt.Sprintf("%s waits for you: Crossplane writes spec.versions from %s: there, %s",
		note, crds.WriterOf(r.CRD).Source, strings.Join(edits, ", and "))
	if r.Composite != nil && r.Composite.Claims() != "" {
		message += fmt.Sprintf("; that also changes %s: migrate its objects, too", r.Composite.Other(r.CRD.Name))
	}
	if reason == v1alpha1.ReasonPromoting {
		return gate.Stalled(v1alpha1.ReasonPromotionRefused, message)
	}
	return gate.Pending(v1alpha1.ReasonBlocked, message)
}
