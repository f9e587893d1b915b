// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package live

import (
	"context"
	"errors"
	"net/http"
	"path"
	"slices"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"

	"github.com/conversion-operator/conversion-operator/internal/cli/audit"
	"github.com/conversion-operator/conversion-operator/internal/operator/crds"
	"github.com/conversion-operator/conversion-operator/internal/operator/pages"
	verify "github.com/conversion-operator/conversion-operator/internal/operator/verify/live"
	"github.com/conversion-operator/conversion-operator/internal/webhook/probe"
)

const (
	// readTimeout is longer than the 30 seconds that API servers allow a conversion
	// webhook, so that the API server reports the error.
	readTimeout = 40 * time.Second
	// manyObjects are read if their managedFields may show that another version was stored.
	manyObjects = 100
)

// The audit requests metadata: it does not need anything else.
const (
	oneAsMetadata  = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1"
	listAsMetadata = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"
)

// reads reads the first object at each served version. A list may come from a cache; a
// single object is read from etcd, and converted by the webhook.
func (a *auditor) reads(ctx context.Context, o *audit.Observed) {
	served := crds.ServedVersions(o.CRD)
	if len(served) == 0 || unchanged(o) || !crds.Condition(o.CRD, apiextensionsv1.Established) {
		return
	}
	version := served[0]
	if storage := crds.StorageVersion(o.CRD); crds.Serves(o.CRD, storage) {
		version = storage
	}
	first, err := a.list(ctx, o, version)
	if err != nil {
		a.readFailed(o, version, "a list of "+o.CRD.Spec.Names.Plural, err)
		return
	}
	o.Reads = []audit.Read{}
	if first != nil {
		for _, version := range served {
			a.read(ctx, o, version, first)
		}
	}
}

// unchanged reports whether a definition never had another version, and converts
// nothing: then reading an object cannot show a problem.
func unchanged(o *audit.Observed) bool {
	return len(o.CRD.Spec.Versions) == 1 && o.CRD.Generation == 1 && o.ClientConfig() == nil
}

// list observes some objects, and returns the first of them, or nil.
func (a *auditor) list(ctx context.Context, o *audit.Observed, version string) (first *metav1.PartialObjectMetadata, err error) {
	most := 1
	if o.CRD.Generation > 1 && crds.StoredOnlyIn(o.CRD, crds.StorageVersion(o.CRD)) {
		most = manyObjects
	}
	resource := crds.Resource(o.CRD, version)
	request := func() *rest.Request {
		return a.client.Get().AbsPath("/apis", resource.Group, version, resource.Resource).SetHeader("Accept", listAsMetadata).MaxRetries(0)
	}
	var size pages.Size
	var all []audit.Object
	for token := ""; ; {
		list := metav1.PartialObjectMetadataList{}
		ctx, cancel := context.WithTimeout(ctx, readTimeout)
		err := verify.SendPage(ctx, &size, int64(most-len(all)), request, token, &list)
		cancel()
		if err != nil {
			return nil, err
		}
		for i := range list.Items {
			all = append(all, observed(o.CRD, &list.Items[i]))
			if first == nil {
				first = &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Namespace: list.Items[i].Namespace, Name: list.Items[i].Name}}
			}
		}
		if token = list.Continue; token == "" || len(all) >= most {
			o.Objects = all
			return first, nil
		}
	}
}

func (a *auditor) read(ctx context.Context, o *audit.Observed, version string, object *metav1.PartialObjectMetadata) {
	parent := path.Join("/apis", o.CRD.Spec.Group, version)
	if object.Namespace != "" {
		parent = path.Join(parent, "namespaces", object.Namespace)
	}
	ctx, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	// An API server that cannot convert asks clients to retry.
	request := a.client.Get().AbsPath(parent, o.CRD.Spec.Names.Plural, object.Name).SetHeader("Accept", oneAsMetadata).MaxRetries(0)
	err := verify.Send(ctx, request, &metav1.PartialObjectMetadata{})
	switch {
	case err == nil:
		o.Reads = append(o.Reads, audit.Read{Version: version, Object: fullName(object)})
	case !apierrors.IsNotFound(err): // deleted since the list
		a.readFailed(o, version, fullName(object), err)
	}
}

// readFailed records an object that was not read. For a broken object, API servers return
// an internal error; other errors are about the client, or temporary.
func (a *auditor) readFailed(o *audit.Observed, version, object string, err error) {
	reason, text, hint := probe.CauseOf(err)
	read := audit.Read{Version: version, Object: object, Failure: text, Converting: probe.CalledWebhook(err)}
	switch {
	case read.Converting:
		read.Hint, read.Untrusted = hint, reason == probe.ReasonTLSVerificationFailed
	case !isInternal(err):
		a.skip(o.CRD.Name, "objects at "+version, err)
		return
	}
	o.Reads = append(o.Reads, read)
}

func isInternal(err error) bool {
	var status apierrors.APIStatus
	return errors.As(err, &status) && status.Status().Code == http.StatusInternalServerError
}

// answered reports whether the API server has shown that it reaches the webhook.
func answered(reads []audit.Read, crd *apiextensionsv1.CustomResourceDefinition) bool {
	storage := crds.StorageVersion(crd)
	return slices.ContainsFunc(reads, func(read audit.Read) bool { return read.Converting || read.Failure == "" && read.Version != storage })
}

func observed(crd *apiextensionsv1.CustomResourceDefinition, object *metav1.PartialObjectMetadata) audit.Object {
	found := audit.Object{Name: fullName(object), Written: object.CreationTimestamp.Time}
	for _, entry := range object.ManagedFields {
		if entry.Time != nil && entry.Time.After(found.Written) {
			found.Written = entry.Time.Time
		}
		version := (&unstructured.Unstructured{Object: map[string]any{"apiVersion": entry.APIVersion}}).GroupVersionKind()
		if version.Group != crd.Spec.Group {
			continue
		}
		if !slices.Contains(found.Versions, version.Version) {
			found.Versions = append(found.Versions, version.Version)
		}
		writer := audit.Writer{Version: version.Version, Manager: crds.FieldManager(entry.Manager, entry.Operation, entry.Subresource)}
		if !slices.Contains(found.Writers, writer) {
			found.Writers = append(found.Writers, writer)
		}
	}
	return found
}

func fullName(object *metav1.PartialObjectMetadata) string {
	if object.Namespace == "" {
		return object.Name
	}
	return object.Namespace + "/" + object.Name
}
