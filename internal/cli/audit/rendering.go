// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package audit

import (
	"fmt"
	"maps"
	"slices"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/conversion-operator/conversion-operator/internal/operator/crds"
)

// Rendering is what one file or folder has, such as a chart with some of its values.
type Rendering struct {
	Source string
	// CRDs are its definitions.
	CRDs []*apiextensionsv1.CustomResourceDefinition
	// Services by name, because manifests often have no namespace. They are nil if the rendering has neither pods
	// nor Services: then these are elsewhere.
	Services map[string]*Service
	// Bundle for OLM that the files are, nil if they have no ClusterServiceVersion.
	Bundle *Bundle
}

// Service returns the Service of the rendering that a definition calls, not found if it has none; nil if that
// is unknown.
func (r *Rendering) Service(crd *apiextensionsv1.CustomResourceDefinition) *Service {
	config := (&Observed{CRD: crd}).ClientConfig()
	if r.Services == nil || config == nil || config.Service == nil {
		return nil
	}
	if service := r.Services[config.Service.Name]; service != nil {
		return service
	}
	return &Service{}
}

// Compare returns what a definition has in some renderings, and lacks in others: a change of the values removes it.
func Compare(renderings []Rendering) []Finding {
	byName := map[string][]Rendering{} // each with one definition; of those in one folder, the first counts
	for _, rendering := range renderings {
		for i, crd := range rendering.CRDs {
			if of := byName[crd.Name]; len(of) == 0 || of[len(of)-1].Source != rendering.Source {
				byName[crd.Name] = append(of, Rendering{Source: rendering.Source, CRDs: rendering.CRDs[i : i+1]})
			}
		}
	}
	var found []Finding
	for _, name := range slices.Sorted(maps.Keys(byName)) {
		var all []string
		for _, rendering := range byName[name] {
			all = append(all, rendering.has()...)
		}
		for _, what := range slices.Compact(slices.Sorted(slices.Values(all))) {
			found = append(found, differs(byName[name], what)...)
		}
	}
	return found
}

// has are the versions of the first definition, and an empty text for a conversion webhook.
func (r *Rendering) has() []string {
	var names []string
	if crds.Strategy(r.CRDs[0]) == apiextensionsv1.WebhookConverter {
		names = append(names, "")
	}
	for _, version := range r.CRDs[0].Spec.Versions {
		names = append(names, version.Name)
	}
	return names
}

// differs reports what some renderings of a definition lack.
func differs(renderings []Rendering, version string) []Finding {
	var with, without []string
	for _, rendering := range renderings {
		if slices.Contains(rendering.has(), version) {
			with = append(with, rendering.Source)
		} else {
			without = append(without, rendering.Source)
		}
	}
	what, consequence := version, "a change of the values removes it, which API servers refuse while objects may be stored in it, and its clients fail"
	cure := "render the same versions with all values; to stop serving one, render served: false"
	if version == "" {
		what, consequence = "a conversion webhook", "there, API servers do not convert, and drop fields"
		cure = "render spec.conversion with all values, or leave it out of the chart and let a ConversionPolicy write it"
	}
	if len(without) == 0 {
		return nil
	}
	return []Finding{(&Observed{CRD: renderings[0].CRDs[0]}).certain(RenderingsDiffer, version,
		fmt.Sprintf("%s is in %s, and not in %s: %s", what, few(with), few(without), consequence), cure)}
}
