// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package live

import (
	"context"
	"encoding/json"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"

	"github.com/conversion-operator/conversion-operator/internal/engine/manifest"
	"github.com/conversion-operator/conversion-operator/internal/operator/pages"
)

// headsPerPage is the most objects in one page.
const headsPerPage = 500

// metadataOnly asks the API server for a list of metadata only.
const metadataOnly = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"

// Head is the metadata of an object that describes its history.
type Head struct {
	Namespace string      `json:"namespace"`
	Name      string      `json:"name"`
	Created   metav1.Time `json:"creationTimestamp"`
	// ResourceVersion is that of the latest write, recorded or not.
	ResourceVersion string `json:"resourceVersion"`
	// Writes are the entries of managedFields: the latest write of each manager.
	Writes []Write `json:"managedFields"`
	// Annotations may have 256 KiB: do not store all of them.
	Annotations map[string]string `json:"annotations"`
}

// Write is the last write of a manager.
type Write struct {
	// APIVersion is its group and version.
	APIVersion string `json:"apiVersion"`
	// Time is accurate to the second.
	Time metav1.Time `json:"time"`
}

// String is the name of the object, or namespace/name.
func (h Head) String() string {
	if h.Namespace == "" {
		return h.Name
	}
	return h.Namespace + "/" + h.Name
}

// Between reports whether a write for which is returns true lies in a time range. For an
// object without recorded writes, its creation counts as one.
func (h Head) Between(since, until time.Time, is func(Write) bool) bool {
	for _, write := range h.Writes {
		if !write.Time.Time.Before(since) && !write.Time.After(until) && is(write) {
			return true
		}
	}
	return len(h.Writes) == 0 && !h.Created.Time.Before(since) && !h.Created.After(until) && is(Write{})
}

// Heads reads the metadata of all objects, in the order of namespaces and names,
// page by page, and calls visit for each until that returns false.
func (c *Cluster) Heads(ctx context.Context, resource schema.GroupVersionResource, visit func(Head) bool) error {
	token := ""
	var size pages.Size
	for {
		list := struct {
			Metadata metav1.ListMeta `json:"metadata"`
			Items    []struct {
				Metadata Head `json:"metadata"`
			} `json:"items"`
		}{}
		request := func() *rest.Request {
			return c.client.Get().AbsPath("/apis", resource.Group, resource.Version, resource.Resource).
				SetHeader("Accept", metadataOnly)
		}
		if err := SendPage(ctx, &size, headsPerPage, request, token, &list); err != nil {
			return err
		}
		for _, item := range list.Items {
			if !visit(item.Metadata) {
				return nil
			}
		}
		if token = list.Metadata.Continue; token == "" {
			return nil
		}
	}
}

// Object reads one object, as the API server sends it; it returns false if the object is gone.
func (c *Cluster) Object(ctx context.Context, resource schema.GroupVersionResource, namespace, name string) (manifest.Object, bool, error) {
	var text json.RawMessage
	err := Send(ctx, c.client.Get().AbsPath(pathOf(resource, namespace), name), &text)
	if apierrors.IsNotFound(err) {
		return manifest.Object{}, false, nil
	}
	return manifest.NewObject("", text), err == nil, err
}
