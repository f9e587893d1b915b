// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package migration

import (
	"context"
	"fmt"
	"net/http"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
)

// list reads metadata, patiently. It aborts the run on answers that another pod
// would get, too; an expired token, and an object that fails the list, are the
// caller's; an API server that stays away, and rights that were lost, are worth a
// restart of the pod.
func (e *Engine) list(ctx context.Context, place Place, options metav1.ListOptions) (*metav1.PartialObjectMetadataList, error) {
	return e.listWithin(ctx, patience, place, options)
}

// listWithin is list with so many tries while the API server answers that it, or
// a converter, is in trouble.
func (e *Engine) listWithin(ctx context.Context, tries int, place Place, options metav1.ListOptions) (*metav1.PartialObjectMetadataList, error) {
	var list *metav1.PartialObjectMetadataList
	worth := func(n int, err error) bool {
		switch {
		case unreadable(err):
			return n < e.unreadableTries()
		case expired(err):
			return n < tries && options.Continue == ""
		case statusOf(err) != nil:
			return n < tries && transient(err)
		}
		return n < patience
	}
	err := patientlyWhile(ctx, e.Clock, worth, func() (err error) {
		list, err = e.Lister.List(ctx, place, options)
		return err
	})
	status := statusOf(err)
	switch {
	case err == nil:
		return list, nil
	case status == nil || expired(err) || unreadable(err):
		return nil, err
	case status.Code == http.StatusNotFound:
		return nil, abortf("the API server does not serve %s at version %s any more: %v", e.GroupResource(), e.Resource.Version, err)
	case status.Code == http.StatusUnauthorized || status.Code == http.StatusForbidden:
		return nil, fmt.Errorf("not allowed to list %s: %w", e.GroupResource(), err)
	case !transient(err):
		return nil, abortf("cannot list %s: %v", e.GroupResource(), err)
	}
	return nil, fmt.Errorf("cannot list %s: %w", e.GroupResource(), err)
}

// lookUp reads one object anew, and returns nil if it is gone. The Job may list
// but not get; the API server turns this list into a get. An object that cannot
// be read at any version is there: what it was is returned.
func (e *Engine) lookUp(ctx context.Context, object *metav1.PartialObjectMetadata) (*metav1.PartialObjectMetadata, error) {
	list, err := e.listAnywhere(ctx, object.Namespace, metav1.ListOptions{
		FieldSelector: fields.OneTermEqualSelector(metav1.ObjectNameField, object.Name).String(),
	})
	if unreadable(err) {
		return object, nil
	}
	if err != nil {
		return nil, err
	}
	for i := range list.Items {
		if keyOf(&list.Items[i]) == keyOf(object) {
			return &list.Items[i], nil
		}
	}
	return nil, nil
}

// expired reports a continue token that is older than etcd's last compaction.
func expired(err error) bool {
	return apierrors.IsResourceExpired(err) || apierrors.IsGone(err)
}

// nextToken is the token that an expired list offers instead. It goes on from
// the same object in a newer state, and misses only objects written after the
// first page, hence after the barrier. Empty when the server offers none.
func nextToken(err error) string {
	if status := statusOf(err); status != nil {
		return status.Continue
	}
	return ""
}
