// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package audit

import (
	"fmt"
	"slices"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/conversion-operator/conversion-operator/internal/operator/crds"
)

// features reports what clients do not find that name no version, and what they lose by an upgrade.
func features(o *Observed) []Finding {
	found := o.lost(PreferredVersionLacks, crds.PreferredLacks(o.CRD))
	if o.Next != nil {
		found = append(found, o.lost(UpgradeLosesFeature, crds.Losses(o.CRD, o.Next))...)
	}
	if version := o.WithoutScale(); version != "" && len(o.Autoscalers) > 0 {
		found = append(found, o.certain(AutoscalerWithoutScale, version,
			fmt.Sprintf("HorizontalPodAutoscalers read the scale at the preferred version, whatever version they name, and %s has no subresource scale: %s", version, few(o.Autoscalers)),
			fmt.Sprintf("declare subresources.scale at %s, with the paths that the fields have there", version)))
	}
	if (o.Next != nil || !o.Live) && crds.SelectableFieldsRefused(o.written()) {
		found = append(found, o.certain(SelectableFieldsRefused, "",
			"all versions have the same selectableFields, and their schemas differ: API servers refuse that, until https://github.com/kubernetes/kubernetes/issues/140689 is fixed",
			"let the lists differ: add a field at one version, or write them in another order").as(SeverityError, Likely))
	}
	return found
}

// written is the manifest of an upgrade, or the definition if there is none.
func (o *Observed) written() *apiextensionsv1.CustomResourceDefinition {
	if o.Next != nil {
		return o.Next
	}
	return o.CRD
}

// WithoutScale is the version at which autoscalers look for a scale that it has not, although another version has
// it or had it before the upgrade. It is empty if there is none.
func (o *Observed) WithoutScale() string {
	losses := crds.PreferredLacks(o.written())
	if o.Next != nil {
		losses = append(losses, crds.Losses(o.CRD, o.Next)...)
	}
	lost := slices.ContainsFunc(losses, func(loss crds.Loss) bool { return loss.Kind == crds.Scale })
	if preferred := crds.Preferred(o.written()); lost && preferred != nil && !crds.HasScale(preferred) {
		return preferred.Name
	}
	return ""
}

// lost returns a finding for each loss. A column that is missing is only a note.
func (o *Observed) lost(id ID, losses []crds.Loss) []Finding {
	var found []Finding
	for _, loss := range losses {
		cure := fmt.Sprintf("declare %s at %s, with the path that the field has there", loss.Feature, loss.At)
		if loss.At == "" {
			cure = fmt.Sprintf("keep %s in spec.names", loss.Feature)
		}
		finding := o.certain(id, loss.At, loss.String(), cure)
		if !loss.Breaks() {
			finding = finding.as(SeverityNote, Certain)
		}
		found = append(found, finding)
	}
	return found
}
