// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/conversion-operator/conversion-operator/internal/test/expect"
)

// revisionFunc answers lists with a revision; "" is an API server that is not available.
type revisionFunc func() string

func (revisionFunc) Get(context.Context, client.ObjectKey, client.Object, ...client.GetOption) error {
	return errors.New("not a list")
}

func (f revisionFunc) List(_ context.Context, list client.ObjectList, _ ...client.ListOption) error {
	revision := f()
	if revision == "" {
		return errors.New("connection refused")
	}
	list.SetResourceVersion(revision)
	return nil
}

func TestStorageRevision(t *testing.T) {
	for name, test := range map[string]struct {
		revisions []string
		restored  bool
	}{
		"rises":                         {revisions: []string{"99", "100", "100", "", "1000"}},
		"goes back":                     {revisions: []string{"99", "1000", "998"}, restored: true},
		"goes back during an outage":    {revisions: []string{"1000", "", "", "999"}, restored: true},
		"is not a number":               {revisions: []string{"b", "a", "1"}},
		"goes back, after not a number": {revisions: []string{"5", "b", "4"}, restored: true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, stop := context.WithTimeout(t.Context(), time.Minute)
				defer stop()
				left := test.revisions
				live := revisionFunc(func() string {
					next := left[0]
					left = left[min(1, len(left)-1):]
					return next
				})
				err := (&storageRevision{live: live}).Start(ctx)
				if restored := errors.As(err, new(storageRestoredError)); restored != test.restored || !restored && err != nil {
					t.Errorf("the error is %v", err)
				}
			})
		})
	}
}

// TestStorageRevisionOfEarlierRead: a read may end after a later one, with the lower revision.
func TestStorageRevisionOfEarlierRead(t *testing.T) {
	revision := &storageRevision{}
	revision.live = revisionFunc(func() string {
		revision.seen("200")
		return "100"
	})
	expect.NoError(t, revision.check(t.Context()))
	expect.Equal(t, "it finds that storage was restored", true, errors.As(revision.check(t.Context()), new(storageRestoredError)))
}
