// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package live

import (
	"context"
	"errors"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"

	"github.com/conversion-operator/conversion-operator/internal/operator/dependents"
	"github.com/conversion-operator/conversion-operator/internal/operator/pages"
)

// resource is a resource with objects that the API server can list.
type resource struct {
	schema.GroupVersionResource
	kind       string
	namespaced bool
}

// isSkipped reports whether objects of a resource are not stored, or live for an hour and own
// nothing.
func isSkipped(group, name string) bool {
	return group == "metrics.k8s.io" || name == "events" || name == "componentstatuses" && group == ""
}

// resources returns the resources of the cluster, each at one version, that of the target first.
func (s *search) resources() ([]resource, error) {
	lists, err := s.api.ServerPreferredResources()
	var failed *discovery.ErrGroupDiscoveryFailed
	switch {
	case errors.As(err, &failed):
		for version, err := range failed.Groups {
			s.notChecked("resources of "+version.String(), err)
		}
	case err != nil:
		return nil, fmt.Errorf("list the resources of the API server: %w", err)
	}
	own := schema.GroupVersionResource{Group: s.target.Group, Version: s.target.To, Resource: s.target.Plural}
	all := []resource{{own, s.target.Kind, s.target.Namespaced}}
	for _, list := range lists {
		version, err := schema.ParseGroupVersion(list.GroupVersion)
		if err != nil {
			return nil, fmt.Errorf("list the resources of the API server: %w", err)
		}
		for _, found := range list.APIResources {
			listed := version.WithResource(found.Name)
			if slices.Contains(found.Verbs, "list") && !isSkipped(version.Group, found.Name) && listed.GroupResource() != own.GroupResource() {
				all = append(all, resource{listed, found.Kind, found.Namespaced})
			}
		}
	}
	return all, nil
}

// scan reads the metadata of all objects.
func (s *search) scan(ctx context.Context, resources []resource) error {
	for _, resource := range resources {
		what := resource.GroupResource().String()
		objects := s.metadata.Resource(resource.GroupVersionResource)
		var stop error
		err := eachPage(ctx, s.PageSize, func(bounded context.Context, options metav1.ListOptions) (*metav1.ListMeta, error) {
			s.Progress(what, s.report.Cost.Objects)
			page, err := objects.List(bounded, options)
			if err != nil {
				return nil, err
			}
			s.report.Cost.Objects += int64(len(page.Items))
			for i := range page.Items {
				if stop = s.visit(ctx, resource, &page.Items[i]); stop != nil {
					return nil, stop
				}
			}
			return &page.ListMeta, nil
		})
		if stop != nil {
			return stop
		}
		if err != nil && !apierrors.IsNotFound(err) { // a kind that is gone meanwhile has no objects
			s.notChecked(what, err)
		}
	}
	return nil
}

// visit looks for dependents in the metadata of an object. It fails if a repair cannot be recorded.
func (s *search) visit(ctx context.Context, resource resource, object *metav1.PartialObjectMetadata) error {
	named := dependents.Object{
		APIVersion: resource.GroupVersion().String(), Kind: resource.kind, Namespace: object.Namespace, Name: object.Name,
	}
	if resource.Group == s.target.Group && resource.Resource == s.target.Plural {
		s.managers.Add(named, object.ManagedFields)
	}
	found := s.target.OfOwners(named, object.OwnerReferences)
	if len(found) == 0 {
		return nil
	}
	if s.Repair {
		repaired, err := s.repairOwners(ctx, resource, named, object)
		if err != nil || repaired {
			return err
		}
	}
	s.add(found)
	return nil
}

// add adds dependents to the report, as long as there is room.
func (s *search) add(found []dependents.Dependent) {
	room := min(max(0, s.Most-len(s.report.Dependents)), len(found))
	s.report.Dependents = append(s.report.Dependents, found[:room]...)
	s.report.More += len(found) - room
}

// eachPage lists page by page.
func eachPage(ctx context.Context, most int64, list func(context.Context, metav1.ListOptions) (*metav1.ListMeta, error)) error {
	var options metav1.ListOptions
	var size pages.Size
	for {
		var page *metav1.ListMeta
		err := size.List(ctx, most, &options, func(ctx context.Context, options metav1.ListOptions) (err error) {
			page, err = list(ctx, options)
			return err
		})
		if err != nil {
			return err
		}
		if options.Continue = page.Continue; options.Continue == "" {
			return nil
		}
	}
}
