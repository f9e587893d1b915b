// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"slices"
	"strconv"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/conversion-operator/conversion-operator/internal/crds"
)

// pruning is what somebody else took out of status.storedVersions: the versions,
// and the revision of etcd since which they are not listed.
type pruning struct {
	Revision int64
	Versions []string
}

// left reports whether bytes were there when their version was pruned.
func (p pruning) left(version string, written int64) bool {
	return slices.Contains(p.Versions, version) && written < p.Revision
}

// pruneStoredVersions takes every version but the storage version out of
// status.storedVersions, as people do who have read that they are to, and rewrites
// nothing.
func (p *player) pruneStoredVersions(ctx context.Context, s step) error {
	done := pruning{}
	err := p.eventually(ctx, "status.storedVersions is pruned", func(ctx context.Context) error {
		crd := &apiextensionsv1.CustomResourceDefinition{}
		if err := p.cluster.Get(ctx, client.ObjectKey{Name: crdOf(s.Subject)}, crd); err != nil {
			return err
		}
		storage, before := crds.StorageVersion(crd), crd.DeepCopy()
		if gone := without(crd.Status.StoredVersions, storage); len(gone) > 0 {
			done.Versions, crd.Status.StoredVersions = gone, []string{storage}
			patch := client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})
			if err := p.cluster.Status().Patch(ctx, crd, patch, client.FieldOwner("somebody")); err != nil {
				if apierrors.IsConflict(err) {
					done.Versions = nil // it was not this try, whoever it was
				}
				return err
			}
		}
		var err error
		done.Revision, err = strconv.ParseInt(crd.ResourceVersion, 10, 64)
		return err
	})
	if len(done.Versions) > 0 {
		fmt.Fprintf(p.out, "     %v are listed no more\n", done.Versions)
		done.Versions = append(done.Versions, p.pruned[s.Subject].Versions...)
		p.pruned[s.Subject] = done
	}
	return err
}

// forgetPruned: once objects are listed again, nothing is left that somebody else
// has done.
func (p *player) forgetPruned(all map[string]seen) {
	for name, now := range all {
		if len(now.unlisted()) == 0 {
			delete(p.pruned, name)
		}
	}
}
