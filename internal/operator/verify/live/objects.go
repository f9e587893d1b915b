// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package live

import (
	"context"
	"encoding/json"
	"fmt"
	"path"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"

	"github.com/conversion-operator/conversion-operator/internal/engine/manifest"
	"github.com/conversion-operator/conversion-operator/internal/operator/crds"
	"github.com/conversion-operator/conversion-operator/internal/operator/pages"
)

// Query selects the objects to read.
type Query struct {
	Resource schema.GroupVersionResource
	// Namespace is empty for all.
	Namespace string
	// Selector of labels, empty for all.
	Selector string
	// Sample is the maximum number of objects to read, 0 for all.
	Sample int64
	// PageSize is the most objects that are in memory at once.
	PageSize int64
}

// VersionToRead is the version at which to read a kind's objects.
//
// It is the storage version, if that is served: then the API server sends the objects
// as they are stored, and only the tested rules convert them. At any other version,
// the current conversion of the CustomResourceDefinition would convert them first.
// With the strategy None, it prunes unknown fields, so that the test could not see
// the loss; with a webhook that does not exist yet, all reads fail.
//
// Objects that are still stored in an older version pass through that conversion in
// any case; only a migration ends that.
func VersionToRead(crd *apiextensionsv1.CustomResourceDefinition) (version string, asStored bool, err error) {
	if storage := crds.StorageVersion(crd); crds.Serves(crd, storage) {
		return storage, true, nil
	}
	served := crds.ServedVersions(crd)
	if len(served) == 0 {
		return "", false, fmt.Errorf("CustomResourceDefinition %s serves no version: its objects cannot be read", crd.Name)
	}
	return served[0], false, nil
}

type page struct {
	Metadata metav1.ListMeta   `json:"metadata"`
	Items    []json.RawMessage `json:"items"`
}

// Objects reads objects in the order of namespaces and names, and calls visit
// for each. After each page it calls progress with the number of objects read, and
// with the number of remaining objects if the API server knows it.
func (c *Cluster) Objects(ctx context.Context, query Query, visit func(manifest.Object), progress func(done, remaining int64)) error {
	var done int64
	next := ""
	var size pages.Size
	for {
		limit := query.PageSize
		if query.Sample > 0 {
			limit = min(limit, query.Sample-done)
		}
		list, err := c.list(ctx, query, &size, limit, next)
		if err != nil {
			return err
		}
		for _, item := range list.Items {
			visit(manifest.NewObject("", item))
		}
		done += int64(len(list.Items))
		remaining := int64(0)
		if list.Metadata.RemainingItemCount != nil {
			remaining = *list.Metadata.RemainingItemCount
		}
		if query.Sample > 0 {
			remaining = min(remaining, query.Sample-done)
		}
		progress(done, remaining)
		if next = list.Metadata.Continue; next == "" || query.Sample > 0 && done >= query.Sample {
			return nil
		}
	}
}

// list reads one page.
func (c *Cluster) list(ctx context.Context, query Query, size *pages.Size, limit int64, token string) (*page, error) {
	list := &page{}
	err := SendPage(ctx, size, limit, func() *rest.Request {
		request := c.client.Get().AbsPath(pathOf(query.Resource, query.Namespace))
		if query.Selector != "" {
			request = request.Param("labelSelector", query.Selector)
		}
		return request
	}, token, list)
	if err != nil {
		return nil, fmt.Errorf("list %s at version %s: %w", query.Resource.GroupResource(), query.Resource.Version, err)
	}
	return list, nil
}

// pathOf returns the URL path of a resource, in a namespace if that is not empty.
func pathOf(resource schema.GroupVersionResource, namespace string) string {
	if namespace == "" {
		return path.Join("/apis", resource.Group, resource.Version, resource.Resource)
	}
	return path.Join("/apis", resource.Group, resource.Version, "namespaces", namespace, resource.Resource)
}
