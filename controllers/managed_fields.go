// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
	"github.com/conversion-operator/conversion-operator/internal/crds"
	"github.com/conversion-operator/conversion-operator/internal/plan/names"
	"github.com/conversion-operator/conversion-operator/internal/plan/observed"
	"github.com/conversion-operator/conversion-operator/internal/plan/step"
)

const (
	// cleanPage is the number of objects whose metadata are in memory at once.
	cleanPage = 500
	// patchesAtOnce bounds the patches under way.
	patchesAtOnce = 4
	// cleanPasses bounds how often all objects are gone through: each time there are
	// only those left that were written in between.
	cleanPasses = 5
	// keepTries and keepPause bound the waiting for a converter that is away.
	keepTries = 15
	keepPause = 2 * time.Second
	// rightsTimeout bounds the waiting for the right to do this.
	rightsTimeout = 30 * time.Second
)

// managedFieldsCleaner removes a version's name from managedFields.
type managedFieldsCleaner struct {
	objects metadata.ResourceInterface
	at      func(namespace string) metadata.ResourceInterface
	// storage is the group and version that objects are stored at, and others are
	// those of the definition beside the one that goes.
	storage string
	others  []string
	// version goes, and discard are the fields of it that annotations are to hold
	// nothing of any more.
	version string
	discard []string
	// count is what objects hold, in this pass.
	count *headCount

	mu sync.Mutex
	// discarded are the objects from which something was removed, in all passes.
	discarded int64
	// written are the objects that were changed in this pass, and failed those that
	// could not be, of which the first is told.
	written, failed int
	first           error
}

// cleanManagedFields goes through all objects until no object names the version. It
// acts as a user that may do this and nothing else.
func (r *reader) cleanManagedFields(ctx context.Context, s step.ClearManagedFields) observed.BackgroundCheck {
	if !r.cleanings.enter(ctx) {
		return observed.BackgroundCheck{Reason: v1alpha1.ReasonCleaningFailed, Message: "the manager is shutting down"}
	}
	defer r.cleanings.leave()
	config := rest.CopyConfig(r.config)
	config.Impersonate = rest.ImpersonationConfig{UserName: s.User}
	config.QPS = -1
	client, err := metadata.NewForConfig(config)
	if err != nil {
		return observed.BackgroundCheck{Reason: v1alpha1.ReasonCleaningFailed, Message: err.Error()}
	}
	storage := crds.StorageVersion(s.CRD)
	all := client.Resource(crds.Resource(s.CRD, storage))
	c := &managedFieldsCleaner{
		objects: all, storage: s.CRD.Spec.Group + "/" + storage, others: without(s),
		version: s.Version, discard: s.Discard, count: newHeadCount(s.CRD, s.Rules),
		at: func(namespace string) metadata.ResourceInterface {
			if namespace == "" {
				return all
			}
			return all.Namespace(namespace)
		},
	}
	if err := c.run(ctx); err != nil {
		return observed.BackgroundCheck{Reason: v1alpha1.ReasonCleaningFailed, Message: err.Error()}
	}
	return observed.BackgroundCheck{Held: c.count.counted(), Discarded: c.discarded}
}

// without are the group and versions of a definition but the one that goes.
func without(s step.ClearManagedFields) []string {
	var others []string
	for _, version := range s.CRD.Spec.Versions {
		if version.Name != s.Version {
			others = append(others, s.CRD.Spec.Group+"/"+version.Name)
		}
	}
	return others
}

// run ends when a pass through all objects finds nothing to do: what was written
// in between is seen by the next.
func (c *managedFieldsCleaner) run(ctx context.Context) error {
	if err := c.allowed(ctx); err != nil {
		return err
	}
	for range cleanPasses {
		c.written, c.failed, c.first = 0, 0, nil
		if err := c.pass(ctx); err != nil {
			return err
		}
		if c.failed > 0 {
			return fmt.Errorf("%d objects could not be changed, for example %w", c.failed, c.first)
		}
		if c.written == 0 {
			return nil
		}
	}
	return errors.New("another writer keeps re-adding the version to objects, or values of it")
}

// allowed waits for the right to come, which may be taken away again to stop this.
func (c *managedFieldsCleaner) allowed(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, rightsTimeout)
	defer cancel()
	return onceAllowed(ctx, func() error {
		_, err := c.objects.List(ctx, metav1.ListOptions{Limit: 1})
		return err
	})
}

// pass goes through all objects, page by page.
func (c *managedFieldsCleaner) pass(ctx context.Context) error {
	options := metav1.ListOptions{Limit: cleanPage}
	_, storage, _ := strings.Cut(c.storage, "/")
	c.count.begin(storage)
	for {
		page, err := c.objects.List(ctx, options)
		if apierrors.IsResourceExpired(err) && options.Continue != "" {
			options.Continue = "" // from the beginning: what is done is passed over
			c.count.begin(storage)
			continue
		}
		if err != nil {
			return err
		}
		workers, cleaning := errgroup.WithContext(ctx)
		workers.SetLimit(patchesAtOnce)
		for i := range page.Items {
			c.count.seen(&page.Items[i])
			if c.count.isTruncated(&page.Items[i], storage) {
				if err := c.noted(ctx, &page.Items[i], errTruncated); err != nil {
					return err
				}
				continue
			}
			switch changes, err := c.discards(&page.Items[i]); {
			case err != nil:
				return err
			case len(changes) > 0:
				workers.Go(func() error { return c.discardFrom(cleaning, &page.Items[i], changes) })
			case c.names(&page.Items[i]):
				workers.Go(func() error { return c.clean(cleaning, &page.Items[i]) })
			}
		}
		if err := workers.Wait(); err != nil {
			return err
		}
		if options.Continue = page.Continue; options.Continue == "" {
			c.count.end(true)
			return nil
		}
	}
}

func (c *managedFieldsCleaner) names(object *metav1.PartialObjectMetadata) bool {
	return slices.ContainsFunc(object.ManagedFields, c.isOld)
}

// isOld is an entry of the version that goes, or of one that went before. As long as
// an object has one of those, API servers keep all of its entries unchanged.
func (c *managedFieldsCleaner) isOld(entry metav1.ManagedFieldsEntry) bool {
	return !slices.Contains(c.others, entry.APIVersion)
}

// clean writes one object, as it was read. A write in between is seen in the
// next pass.
func (c *managedFieldsCleaner) clean(ctx context.Context, object *metav1.PartialObjectMetadata) error {
	return c.noted(ctx, object, c.keep(ctx, object, c.left(object.ManagedFields)))
}

// noted counts what became of an object.
func (c *managedFieldsCleaner) noted(ctx context.Context, object *metav1.PartialObjectMetadata, err error) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case err == nil || apierrors.IsConflict(err) || apierrors.IsNotFound(err):
		c.written++
	case ctx.Err() != nil:
		return err
	default:
		if c.failed++; c.first == nil {
			c.first = fmt.Errorf("%s/%s: %w", object.Namespace, object.Name, err)
		}
	}
	return nil
}

// errTruncated is an object of which all that is read must not be written.
var errTruncated = errors.New("it was read in a truncated form, as its annotations have no room for what they are to preserve: see status.oversizedObjects of the policy")

// errKept is an API server that answers a patch, and changes nothing.
var errKept = errors.New("the API server keeps metadata.managedFields unchanged, as long as no converter converts the object to each version that they name")

// keep writes an object's entries until it has those. While no converter answers for
// the version of one, an API server keeps what there was, and before Kubernetes 1.37
// drops all of them. In the end an object without any gets ours alone, which needs no
// conversion.
func (c *managedFieldsCleaner) keep(ctx context.Context, object *metav1.PartialObjectMetadata, entries []metav1.ManagedFieldsEntry) error {
	version, tries, dropped := object.ResourceVersion, 0, false
	return wait.PollUntilContextCancel(ctx, keepPause, true, func(ctx context.Context) (bool, error) {
		if tries++; dropped && tries == keepTries {
			entries = c.left(nil)
		}
		patch, err := json.Marshal(pinnedPatch(object.UID, version,
			map[string]any{"op": "add", "path": "/metadata/managedFields", "value": entries}))
		if err != nil {
			return true, err
		}
		answer, err := c.at(object.Namespace).Patch(ctx, object.Name, types.JSONPatchType, patch, metav1.PatchOptions{FieldManager: names.ManagedBy})
		if err != nil {
			return true, err
		}
		version, dropped = answer.ResourceVersion, len(answer.ManagedFields) == 0
		switch kept := c.names(answer); {
		case kept && tries == keepTries:
			return true, errKept
		case kept || dropped:
			return tries == keepTries, nil
		}
		return true, nil
	})
}

// left are the entries of other versions. Without any, the next server-side apply
// would give all fields to a manager that no one is, and no one could remove one
// any more: so one entry says that we own nothing.
func (c *managedFieldsCleaner) left(entries []metav1.ManagedFieldsEntry) []metav1.ManagedFieldsEntry {
	left := slices.DeleteFunc(slices.Clone(entries), c.isOld)
	if len(left) > 0 {
		return left
	}
	return []metav1.ManagedFieldsEntry{{
		Manager: names.ManagedBy, Operation: metav1.ManagedFieldsOperationUpdate, APIVersion: c.storage, FieldsType: "FieldsV1",
		FieldsV1: metav1.NewFieldsV1(`{"f:metadata":{}}`),
	}}
}
