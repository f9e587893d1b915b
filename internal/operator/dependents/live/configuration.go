// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package live

import (
	"context"
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/conversion-operator/conversion-operator/internal/operator/dependents"
)

var admissionResources = []string{
	"validatingwebhookconfigurations", "mutatingwebhookconfigurations",
	"validatingadmissionpolicies", "mutatingadmissionpolicies",
	"validatingadmissionpolicybindings", "mutatingadmissionpolicybindings",
}

// configuration reads the objects of those kinds that may name versions.
func (s *search) configuration(ctx context.Context, resources []resource) {
	also := slices.Clone(s.Also)
	for _, resource := range resources {
		name := resource.GroupResource()
		find := s.inReferences(name)
		if name.Group == "admissionregistration.k8s.io" && slices.Contains(admissionResources, name.Resource) {
			find = s.inAdmission
		}
		also = slices.DeleteFunc(also, func(other string) bool { return schema.ParseGroupResource(other) == name })
		if find != nil {
			s.readConfiguration(ctx, resource, find)
		}
	}
	if configMaps := dependents.ConfigMaps.Resource; !slices.Contains(s.Also, configMaps) {
		s.report.Skipped = append(s.report.Skipped, "manifests in ConfigMaps: add --also "+configMaps)
	}
	for _, name := range also {
		s.notChecked(name, fmt.Errorf("the API server does not list this resource: name it <plural>.<group>"))
	}
}

type findIn func(*unstructured.Unstructured) ([]dependents.Dependent, error)

func (s *search) readConfiguration(ctx context.Context, resource resource, find findIn) {
	what := resource.GroupResource().String() + ", their fields"
	err := eachPage(ctx, s.PageSize, func(ctx context.Context, options metav1.ListOptions) (*metav1.ListMeta, error) {
		s.Progress(what, s.report.Cost.Objects)
		page, err := s.dynamic.Resource(resource.GroupVersionResource).List(ctx, options)
		if err != nil {
			return nil, err
		}
		for i := range page.Items {
			found, err := find(&page.Items[i])
			if err != nil {
				s.notChecked(fmt.Sprintf("%s %s", resource.kind, page.Items[i].GetName()), err)
			}
			s.add(found)
		}
		return &metav1.ListMeta{Continue: page.GetContinue()}, nil
	})
	if err != nil {
		s.notChecked(what, err)
	}
}

func (s *search) inAdmission(object *unstructured.Unstructured) ([]dependents.Dependent, error) {
	content, err := object.MarshalJSON()
	if err != nil {
		return nil, err
	}
	return s.target.Admission(content)
}

// inReferences returns nil for a resource whose objects are not read completely.
func (s *search) inReferences(name schema.GroupResource) findIn {
	source := dependents.Source{
		Group: name.Group, Resource: name.Resource, Dependency: dependents.Reference, Impact: dependents.Breaks,
		Effect: "its controller does not find the kind at the version",
	}
	isNamed := func(known dependents.Source) bool {
		return known.Group == name.Group && known.Resource == name.Resource
	}
	also := slices.ContainsFunc(s.Also, func(also string) bool { return schema.ParseGroupResource(also) == name })
	known := slices.IndexFunc(dependents.Sources, isNamed)
	switch {
	case known >= 0:
		source = dependents.Sources[known]
	case !also:
		return nil
	case isNamed(dependents.ConfigMaps):
		source = dependents.ConfigMaps
	}
	return func(object *unstructured.Unstructured) ([]dependents.Dependent, error) {
		return source.In(s.target, object.Object), nil
	}
}
