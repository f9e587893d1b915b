// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package migration

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	"github.com/go-logr/logr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
)

// list reads metadata, with retries. It aborts the run on errors that another pod would also get.
// The caller handles expired tokens and objects that fail the list. If the API server remains
// unavailable or rights are lost, the pod ends, and the next one retries.
func (e *Engine) list(ctx context.Context, scope ListScope, options metav1.ListOptions) (*metav1.PartialObjectMetadataList, error) {
	return e.listWithin(ctx, maxAttempts, scope, options)
}

// listWithin is list with another number of attempts while the API server, or a
// converter, answers with errors.
func (e *Engine) listWithin(ctx context.Context, tries int, scope ListScope, options metav1.ListOptions) (*metav1.PartialObjectMetadataList, error) {
	var list *metav1.PartialObjectMetadataList
	retryable := func(n int, err error) bool {
		switch {
		case unreadable(err):
			return n < e.unreadableTries()
		case expired(err):
			return n < tries && options.Continue == ""
		case statusOf(err) != nil:
			return n < tries && transient(err)
		}
		return n < maxAttempts
	}
	err := retryWhile(ctx, e.Clock, retryable, func() (err error) {
		list, err = e.Lister.List(ctx, scope, options)
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

// getLatest reads one object, and returns nil if it was deleted. The Job may list but not get; the
// API server turns this list into a get. If no version of the object can be read, it returns the
// object unchanged. Only a read at an exact resourceVersion shows that an object was deleted: a watch
// cache may lack it (pageOptions).
func (e *Engine) getLatest(ctx context.Context, object *metav1.PartialObjectMetadata) (*metav1.PartialObjectMetadata, error) {
	options := metav1.ListOptions{FieldSelector: fields.OneTermEqualSelector(metav1.ObjectNameField, object.Name).String()}
	for {
		list, err := e.listAtAnyVersion(ctx, object.Namespace, options)
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
		if options.ResourceVersionMatch == metav1.ResourceVersionMatchExact {
			return nil, nil
		}
		options.ResourceVersion, options.ResourceVersionMatch = list.ResourceVersion, metav1.ResourceVersionMatchExact
	}
}

// expired reports whether the continue token is older than the last compaction of etcd.
func expired(err error) bool {
	return apierrors.IsResourceExpired(err) || apierrors.IsGone(err)
}

// nextToken returns the token that the API server offers instead of an expired one, or an empty
// string. That token continues at the same object in a newer state. It misses only objects that
// were written after the first page, and therefore after the barrier.
func nextToken(err error) string {
	if status := statusOf(err); status != nil {
		return status.Continue
	}
	return ""
}

// unreadableTries is how often a list that fails because of an object is patchResult, as its
// converter may just have restarted. Once the bisection has begun, the cause is certain.
func (e *Engine) unreadableTries() int {
	if e.pageSize < e.PageSize {
		return 1
	}
	return 3
}

// pageTries is the number of attempts for a page before the record says that the run waits, which
// is after some seconds.
const pageTries = 5

// unreadable reports whether a list failed because one of its objects cannot be converted: the API
// server then returns no objects.
func unreadable(err error) bool {
	status := statusOf(err)
	return status != nil && status.Code == http.StatusInternalServerError && !infrastructure(err)
}

// readPage lists the page of the token. If one object fails the whole list, readPage bisects until
// that object is alone, and then reads it at the other versions: the version in which it is stored
// needs no conversion. The later patch of the object reports its error. While converters are
// unavailable, readPage waits for them.
func (e *Engine) readPage(ctx context.Context, j *journal, token string) (*metav1.PartialObjectMetadataList, error) {
	for {
		page, err := e.listPage(ctx, token)
		if statusOf(err) != nil && infrastructure(err) {
			if err := e.awaitListable(ctx, j, err); err != nil {
				return nil, err
			}
			continue
		}
		if waitErr := j.setWaiting(ctx, ""); waitErr != nil {
			return nil, waitErr
		}
		switch {
		case err == nil:
			e.pageSize = min(2*e.pageSize, e.PageSize)
			if n := len(page.Items); n > 0 {
				e.lastRead = keyOf(&page.Items[n-1])
			}
			e.startPrefetch(ctx, page.Continue)
			return page, nil
		case !unreadable(err):
			return nil, err
		case e.pageSize == 1:
			return e.readAtOtherVersions(ctx, token, err)
		}
		e.pageSize /= 2
	}
}

func (e *Engine) listPage(ctx context.Context, token string) (*metav1.PartialObjectMetadataList, error) {
	if page := e.takePrefetched(token); page != nil {
		return page, nil
	}
	options, err := e.pageOptions(ctx, token)
	if err != nil {
		return nil, err
	}
	return e.listWithin(ctx, pageTries, ListScope{}, options)
}

// pageOptions returns the options for the page of a token. The first page is read at an exact
// resourceVersion, and therefore from etcd: the watch cache of Kubernetes 1.32 may lack an object
// that could not be converted when it was written (k8s.io/apiserver 0.32
// pkg/storage/etcd3/watcher.go continues after such an event), and the run would not migrate it.
func (e *Engine) pageOptions(ctx context.Context, token string) (metav1.ListOptions, error) {
	options := e.nextPageOptions(token)
	if token != "" {
		return options, nil
	}
	latest, err := e.listAtAnyVersion(ctx, "", metav1.ListOptions{Limit: 1})
	if err != nil {
		return options, err
	}
	options.ResourceVersion, options.ResourceVersionMatch = latest.ResourceVersion, metav1.ResourceVersionMatchExact
	return options, nil
}

func (e *Engine) nextPageOptions(token string) metav1.ListOptions {
	return metav1.ListOptions{Limit: e.pageSize, Continue: token}
}

// awaitListable records why no page can be read, and waits until the next attempt.
func (e *Engine) awaitListable(ctx context.Context, j *journal, cause error) error {
	if j.record.Waiting == "" {
		logr.FromContextOrDiscard(ctx).Info("Waiting: objects cannot be listed because of infrastructure errors", "cause", cause.Error())
	}
	if err := j.setWaiting(ctx, "objects cannot be listed: "+truncate(cause.Error(), maxMessage)); err != nil {
		return err
	}
	if err := e.Clock.Sleep(ctx, maxDelay); err != nil {
		return err
	}
	return e.checkPin(ctx)
}

// readAtOtherVersions reads the one object that the token names at the other served
// versions. A token is valid for all versions of a resource: they are stored together.
func (e *Engine) readAtOtherVersions(ctx context.Context, token string, cause error) (*metav1.PartialObjectMetadataList, error) {
	var page *metav1.PartialObjectMetadataList
	options, err := e.pageOptions(ctx, token)
	if err == nil {
		page, err = e.listAtOtherVersions(ctx, "", options)
	}
	if page == nil && (err == nil || unreadable(err)) {
		return nil, abortf("cannot list %s: the object after %q cannot be read at any served version: "+
			"serve the version that it is stored at, or repair its conversion: %v", e.GroupResource(), e.lastRead, cause)
	}
	if page != nil {
		for i := range page.Items {
			logr.FromContextOrDiscard(ctx).V(1).Info("The list fails because of one object", "object", keyOf(&page.Items[i]), "message", cause.Error())
		}
	}
	return page, err
}

// listAtOtherVersions lists at the first of the other served versions at which the list succeeds,
// or returns nil.
func (e *Engine) listAtOtherVersions(ctx context.Context, namespace string, options metav1.ListOptions) (*metav1.PartialObjectMetadataList, error) {
	for _, version := range e.OldVersions {
		page, err := e.list(ctx, ListScope{Version: version, Namespace: namespace}, options)
		if err == nil || expired(err) || ctx.Err() != nil || statusOf(err) == nil && !errors.As(err, new(abortedError)) {
			return page, err
		}
	}
	return nil, nil
}

// listAtAnyVersion lists at the storage version, or at another one if an object fails the list
// there, or has failed it before.
func (e *Engine) listAtAnyVersion(ctx context.Context, namespace string, options metav1.ListOptions) (*metav1.PartialObjectMetadataList, error) {
	if e.unconvertible.Load() {
		if list, err := e.listAtOtherVersions(ctx, namespace, options); list != nil || err != nil {
			return list, err
		}
	}
	list, err := e.list(ctx, ListScope{Namespace: namespace}, options)
	if !unreadable(err) {
		return list, err
	}
	otherList, otherErr := e.listAtOtherVersions(ctx, namespace, options)
	if otherList != nil || otherErr != nil {
		return otherList, otherErr
	}
	return nil, err
}
