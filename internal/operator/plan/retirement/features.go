// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package retirement

import (
	"fmt"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
	"github.com/conversion-operator/conversion-operator/internal/operator/crds"
)

// losesFeatures blocks unserving the preferred version if clients that name no version, such as autoscalers, would
// not find at the next one what they use. Authors of the CustomResourceDefinition who want that remove it from
// the version first.
func (r *Retirement) losesFeatures(name string) []v1alpha1.VersionBlock {
	breaking := crds.Breaking(crds.Losses(r.CRD, r.without(name)))
	if breaking == "" {
		return nil
	}
	return []v1alpha1.VersionBlock{{Reason: v1alpha1.BlockedFeatures,
		Message: fmt.Sprintf("once it is not served, %s: declare that at the other version, or remove it from %s", breaking, name)}}
}

// refused blocks the removal of a version after which API servers would refuse the CustomResourceDefinition.
func (r *Retirement) refused(name string) []v1alpha1.VersionBlock {
	if !crds.SelectableFieldsRefused(r.without(name)) {
		return nil
	}
	return []v1alpha1.VersionBlock{{Reason: v1alpha1.BlockedFeatures,
		Message: "without it, all versions have the same selectableFields and different schemas, which API servers refuse: let the lists differ"}}
}

func (r *Retirement) without(name string) *apiextensionsv1.CustomResourceDefinition {
	return crds.Without(r.CRD, func(version string) bool { return version == name })
}
