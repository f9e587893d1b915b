// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package migration

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// ahead is the page after the one that was read last. It is read while the objects
// of that one are patched, which else would wait for it. What goes wrong with it
// does not matter: then it is read again when its turn comes.
type ahead struct {
	options metav1.ListOptions
	page    chan *metav1.PartialObjectMetadataList
	end     context.CancelFunc
}

// readAhead begins to read the page that the token names, unless one request at a
// time is all that the API server answers as it should: a list takes as much of it as
// a hundred patches.
func (e *Engine) readAhead(ctx context.Context, token string) {
	if token == "" || !e.gate.several() {
		return
	}
	ctx, end := context.WithCancel(ctx)
	next := &ahead{options: e.pageOptions(token), page: make(chan *metav1.PartialObjectMetadataList, 1), end: end}
	e.ahead = next
	go func() {
		page, err := e.Lister.List(ctx, Place{}, next.options)
		if err != nil {
			page = nil
		}
		next.page <- page
	}()
}

// takeAhead returns the page if that is the one that was read ahead, or else nil.
// Nothing is read ahead any more when it returns.
func (e *Engine) takeAhead(options metav1.ListOptions) *metav1.PartialObjectMetadataList {
	next := e.ahead
	if next == nil {
		return nil
	}
	e.ahead = nil
	wanted := next.options.Continue == options.Continue && next.options.Limit == options.Limit
	if !wanted {
		next.end()
	}
	page := <-next.page
	next.end()
	if !wanted {
		return nil
	}
	return page
}

// dropAhead ends what is read ahead, since nobody is going to take it.
func (e *Engine) dropAhead() { e.takeAhead(metav1.ListOptions{}) }
