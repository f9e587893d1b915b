// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
)

const (
	// storageRevisionInterval is the time between two reads of the revision of etcd.
	storageRevisionInterval = 5 * time.Second
	// storageRevisionTimeout bounds one read.
	storageRevisionTimeout = 10 * time.Second
)

// storageRevision is the latest revision of etcd that the manager has seen. A list without a
// resourceVersion is consistent and has the revision of its moment, so it is never older than
// a list that ended before: https://kubernetes.io/docs/reference/using-api/api-concepts. If it is,
// etcd was restored from a snapshot, and the caches of the manager have objects that etcd does not
// have, and may lack others for ever: once etcd reaches the revision of a watch, the watch continues
// there.
type storageRevision struct {
	live client.Reader

	mu     sync.Mutex
	latest string
}

// storageRestoredError says that etcd was restored.
type storageRestoredError struct{ before, now string }

func (e storageRestoredError) Error() string {
	return fmt.Sprintf("etcd went back from revision %s to %s, as if it was restored from a snapshot: "+
		"the caches of this manager are newer, so it exits, and reads everything when it starts again", e.before, e.now)
}

// NeedLeaderElection is false: every manager has caches.
func (*storageRevision) NeedLeaderElection() bool { return false }

// Start checks the revision again and again, until the context ends. After an error the manager exits.
func (s *storageRevision) Start(ctx context.Context) error {
	var restored error
	_ = wait.PollUntilContextCancel(ctx, storageRevisionInterval, true, func(ctx context.Context) (bool, error) {
		if err := s.check(ctx); errors.As(err, new(storageRestoredError)) {
			restored = err
		}
		return restored != nil, nil // with any other error, the API server is not available
	}) // otherwise only the end of the context ends it
	return restored
}

// check reads the revision, and returns a storageRestoredError if it went back. A nil storageRevision
// is that of a reconciler without a manager, which has no caches.
func (s *storageRevision) check(ctx context.Context) error {
	if s == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, storageRevisionTimeout)
	defer cancel()
	before := s.seen("")
	policies := &metav1.PartialObjectMetadataList{}
	policies.SetGroupVersionKind(v1alpha1.GroupVersion.WithKind("ConversionPolicyList"))
	if err := s.live.List(ctx, policies, client.Limit(1)); err != nil {
		return fmt.Errorf("read the revision of etcd: %w", err)
	}
	if older(policies.ResourceVersion, before) {
		return storageRestoredError{before, policies.ResourceVersion}
	}
	s.seen(policies.ResourceVersion)
	return nil
}

// seen returns the latest of the revisions that it was called with.
func (s *storageRevision) seen(revision string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.latest == "" || older(s.latest, revision) {
		s.latest = revision
	}
	return s.latest
}

// older reports that a revision is less than another one. It is false if either is unknown.
func older(revision, than string) bool {
	order, err := resourceversion.CompareResourceVersion(revision, than)
	return err == nil && order < 0
}
