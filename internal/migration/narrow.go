// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package migration

import (
	"context"
	"errors"
	"net/http"

	"github.com/go-logr/logr"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// unreadableTries is how often a list is tried that fails because of an object:
// its converter may have been restarted just then. It is certain once the search
// for the object has begun.
func (e *Engine) unreadableTries() int {
	if e.pageSize < e.PageSize {
		return 1
	}
	return 3
}

// pageTries is how often a page is tried before the record says that the run
// waits: it shows after some seconds.
const pageTries = 5

// unreadable reports a list that fails because one of its objects cannot be
// converted: the API server then returns none of them.
func unreadable(err error) bool {
	status := statusOf(err)
	return status != nil && status.Code == http.StatusInternalServerError && !infrastructure(err)
}

// readPage lists the page that the token names. If one object fails the whole
// list, it reads smaller pages until that object is alone, and then reads it at
// the other versions: the one that it is stored at needs no conversion. What the
// API server says about the object is left to its patch. While converters are
// away, it waits for them.
func (e *Engine) readPage(ctx context.Context, j *journal, token string) (*metav1.PartialObjectMetadataList, error) {
	for {
		page, err := e.listPage(ctx, e.pageOptions(token))
		if statusOf(err) != nil && infrastructure(err) {
			if err := e.waitToList(ctx, j, err); err != nil {
				return nil, err
			}
			continue
		}
		if waitErr := j.wait(ctx, ""); waitErr != nil {
			return nil, waitErr
		}
		switch {
		case err == nil:
			e.pageSize = min(2*e.pageSize, e.PageSize)
			if n := len(page.Items); n > 0 {
				e.lastRead = keyOf(&page.Items[n-1])
			}
			e.readAhead(ctx, page.Continue)
			return page, nil
		case !unreadable(err):
			return nil, err
		case e.pageSize == 1:
			return e.readElsewhere(ctx, token, err)
		}
		e.pageSize /= 2
	}
}

func (e *Engine) pageOptions(token string) metav1.ListOptions {
	return metav1.ListOptions{Limit: e.pageSize, Continue: token}
}

func (e *Engine) listPage(ctx context.Context, options metav1.ListOptions) (*metav1.PartialObjectMetadataList, error) {
	if page := e.takeAhead(options); page != nil {
		return page, nil
	}
	return e.listWithin(ctx, pageTries, Place{}, options)
}

// waitToList shows why no page can be read, and returns when it is worth another
// look.
func (e *Engine) waitToList(ctx context.Context, j *journal, cause error) error {
	if j.record.Waiting == "" {
		logr.FromContextOrDiscard(ctx).Info("Waiting: objects cannot be listed for a reason that is no object's", "cause", cause.Error())
	}
	if err := j.wait(ctx, "objects cannot be listed: "+shorten(cause.Error(), maxMessage)); err != nil {
		return err
	}
	if err := e.Clock.Sleep(ctx, maxDelay); err != nil {
		return err
	}
	return e.checkPin(ctx)
}

// readElsewhere reads the one object that the token names at the other served
// versions. Tokens hold for all versions of a resource: they are stored together.
func (e *Engine) readElsewhere(ctx context.Context, token string, cause error) (*metav1.PartialObjectMetadataList, error) {
	page, err := e.listElsewhere(ctx, "", metav1.ListOptions{Limit: 1, Continue: token})
	if err != nil || page != nil {
		for i := range itemsOf(page) {
			logr.FromContextOrDiscard(ctx).V(1).Info("The list fails because of one object", "object", keyOf(&page.Items[i]), "message", cause.Error())
		}
		return page, err
	}
	return nil, abortf("cannot list %s: the object after %q cannot be read at any served version: "+
		"serve the version that it is stored at, or repair its conversion: %v", e.GroupResource(), e.lastRead, cause)
}

// listElsewhere lists at the first of the other served versions that can, or
// returns nil.
func (e *Engine) listElsewhere(ctx context.Context, namespace string, options metav1.ListOptions) (*metav1.PartialObjectMetadataList, error) {
	for _, version := range e.OldVersions {
		page, err := e.list(ctx, Place{Version: version, Namespace: namespace}, options)
		if err == nil || expired(err) || ctx.Err() != nil || statusOf(err) == nil && !errors.As(err, new(abortedError)) {
			return page, err
		}
	}
	return nil, nil
}

// listAnywhere lists at the storage version, or at another one if an object
// fails the list there, or is known to.
func (e *Engine) listAnywhere(ctx context.Context, namespace string, options metav1.ListOptions) (*metav1.PartialObjectMetadataList, error) {
	if e.unconvertible.Load() {
		if list, err := e.listElsewhere(ctx, namespace, options); list != nil || err != nil {
			return list, err
		}
	}
	list, err := e.list(ctx, Place{Namespace: namespace}, options)
	if !unreadable(err) {
		return list, err
	}
	elsewhere, otherErr := e.listElsewhere(ctx, namespace, options)
	if elsewhere != nil || otherErr != nil {
		return elsewhere, otherErr
	}
	return nil, err
}

func itemsOf(page *metav1.PartialObjectMetadataList) []metav1.PartialObjectMetadata {
	if page == nil {
		return nil
	}
	return page.Items
}
