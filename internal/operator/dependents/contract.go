// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package dependents

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apiversion "k8s.io/apimachinery/pkg/version"
)

// contractLabel is the beginning of the labels of Cluster API on a CustomResourceDefinition. The rest is a contract, and
// the value has the versions that implement it, with underscores between them.
const contractLabel = "cluster.x-k8s.io/"

// Contracts returns the labels by which Cluster API chooses a version that goes. It uses the latest one of a label.
func (t *Target) Contracts(crd *apiextensionsv1.CustomResourceDefinition) []Dependent {
	var found []Dependent
	for _, label := range slices.Sorted(maps.Keys(crd.Labels)) {
		if !strings.HasPrefix(label, contractLabel) {
			continue
		}
		versions := strings.Split(crd.Labels[label], "_")
		latest := slices.MaxFunc(versions, apiversion.CompareKubeAwareVersionStrings)
		for _, version := range versions {
			if _, names := t.Names(t.APIVersion(version), t.Kind); !names {
				continue
			}
			dependent := Dependent{
				Dependency: Contract, Impact: Harmless, Version: version, Field: fmt.Sprintf(".metadata.labels[%s]", label),
				Object: Object{APIVersion: apiextensionsv1.SchemeGroupVersion.String(), Kind: "CustomResourceDefinition", Name: crd.Name},
				Effect: "Cluster API uses the latest version of the label, " + latest,
				Cure:   fmt.Sprintf("remove %s from the label; the version that Cluster API is to use must implement the contract", version),
			}
			if version == latest {
				dependent.Impact, dependent.Effect = Breaks, "Cluster API requests objects at the latest version of the label, and does not find the kind"
			}
			found = append(found, dependent)
		}
	}
	return found
}
