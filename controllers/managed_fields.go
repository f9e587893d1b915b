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
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/metadata"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
	"github.com/conversion-operator/conversion-operator/internal/operator/crds"
	"github.com/conversion-operator/conversion-operator/internal/operator/pages"
	"github.com/conversion-operator/conversion-operator/internal/operator/plan/names"
	"github.com/conversion-operator/conversion-operator/internal/operator/plan/observed"
	"github.com/conversion-operator/conversion-operator/internal/operator/plan/step"
)

const (
	// cleanPage is the most objects in one page.
	cleanPage = 500
	// patchesAtOnce bounds concurrent patches.
	patchesAtOnce = 4
	// cleanPasses bounds the passes over all objects. Each pass handles the objects that were
	// written during the previous one.
	cleanPasses = 5
	// replaceTries and replacePause bound the wait for a converter that is unavailable.
	replaceTries = 15
	replacePause = 2 * time.Second
	// rightsTimeout bounds the wait for the right to clean.
	rightsTimeout = 30 * time.Second
)

// managedFieldsCleaner removes a version's name from managedFields.
type managedFieldsCleaner struct {
	objects   metadata.ResourceInterface
	objectsIn func(namespace string) metadata.ResourceInterface
	// definition reads the CustomResourceDefinition, and crd is what the cleaner knows of it.
	definition interface {
		Get(ctx context.Context, name string, options metav1.GetOptions, subresources ...string) (*metav1.PartialObjectMetadata, error)
	}
	crd metav1.ObjectMeta
	// storage is the apiVersion that objects are stored at. others are the apiVersions of the
	// definition without the removed version.
	storage string
	others  []string
	// version is the version to remove. discard are its fields whose preserved values are
	// discarded.
	version string
	discard []string
	// count counts preserved data in this pass.
	count *headCount

	mu sync.Mutex
	// discarded counts the objects from which preserved data was removed, in all passes.
	discarded int64
	// written counts the objects that were changed in this pass. failed counts those that could
	// not be changed, and firstErr is the first reason.
	written, failed int
	firstErr        error
}

// cleanManagedFields repeats passes over all objects until none names the version. It impersonates
// a user that may do nothing else.
func (r *reader) cleanManagedFields(ctx context.Context, s step.ClearManagedFields) observed.BackgroundCheck {
	config := r.as(s.User)
	config.QPS = -1
	pages.Bound(config)
	client, err := metadata.NewForConfig(config)
	if err != nil {
		return observed.BackgroundCheck{Reason: v1alpha1.ReasonCheckFailed, Message: err.Error()}
	}
	manager, err := metadata.NewForConfig(r.config)
	if err != nil {
		return observed.BackgroundCheck{Reason: v1alpha1.ReasonCheckFailed, Message: err.Error()}
	}
	storage := crds.StorageVersion(s.CRD)
	all := client.Resource(crds.Resource(s.CRD, storage))
	c := &managedFieldsCleaner{
		definition: manager.Resource(apiextensionsv1.SchemeGroupVersion.WithResource("customresourcedefinitions")), crd: s.CRD.ObjectMeta,
		objects: all, storage: s.CRD.Spec.Group + "/" + storage, others: otherVersions(s),
		version: s.Version, discard: s.Discard, count: newHeadCount(s.CRD, s.Rules),
		objectsIn: func(namespace string) metadata.ResourceInterface {
			if namespace == "" {
				return all
			}
			return all.Namespace(namespace)
		},
	}
	if err := c.run(ctx); err != nil {
		return observed.BackgroundCheck{Reason: v1alpha1.ReasonCheckFailed, Message: err.Error()}
	}
	return observed.BackgroundCheck{Held: c.count.counted(), Discarded: c.discarded}
}

// otherVersions returns the apiVersions of the definition without the removed version.
func otherVersions(s step.ClearManagedFields) []string {
	var others []string
	for _, version := range s.CRD.Spec.Versions {
		if version.Name != s.Version {
			others = append(others, s.CRD.Spec.Group+"/"+version.Name)
		}
	}
	return others
}

// run ends when a pass over all objects changes nothing. Each pass handles the writes that
// happened during the previous one.
func (c *managedFieldsCleaner) run(ctx context.Context) error {
	if err := c.waitForAccess(ctx); err != nil {
		return err
	}
	var expired error
	for range cleanPasses {
		c.written, c.failed, c.firstErr = 0, 0, nil
		switch err := c.pass(ctx); {
		case apierrors.IsResourceExpired(err):
			expired = err // start again: cleaned objects are skipped
			continue
		case err != nil:
			return err
		}
		if c.failed > 0 {
			return fmt.Errorf("%d objects could not be changed, for example %w", c.failed, c.firstErr)
		}
		if c.written == 0 {
			return nil
		}
	}
	if expired != nil {
		return expired
	}
	return errors.New("another writer keeps re-adding the version to objects, or values of it")
}

// waitForAccess waits until the user may list objects.
func (c *managedFieldsCleaner) waitForAccess(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, rightsTimeout)
	defer cancel()
	return retryForbidden(ctx, func() error {
		_, err := c.objects.List(ctx, metav1.ListOptions{Limit: 1})
		return err
	})
}

// pass cleans all objects, page by page. The list of a large kind takes longer than etcd keeps its
// state, which is some minutes. Then it continues in a newer state, which misses only objects that were
// created during the pass: those are missing in the older state, too.
func (c *managedFieldsCleaner) pass(ctx context.Context) error {
	var options metav1.ListOptions
	var size pages.Size
	_, storage, _ := strings.Cut(c.storage, "/")
	c.count.begin(storage)
	for {
		var page *metav1.PartialObjectMetadataList
		err := size.List(ctx, cleanPage, &options, func(ctx context.Context, options metav1.ListOptions) (err error) {
			page, err = c.objects.List(ctx, options)
			return err
		})
		if err != nil {
			return err
		}
		if err := c.checkDefinition(ctx); err != nil {
			return err
		}
		workers, cleaning := errgroup.WithContext(ctx)
		workers.SetLimit(patchesAtOnce)
		for i := range page.Items {
			c.count.addObject(&page.Items[i])
			if c.count.isTruncated(&page.Items[i], storage) {
				if err := c.countOutcome(ctx, &page.Items[i], errTruncated); err != nil {
					return err
				}
				continue
			}
			switch changes, err := c.annotationChanges(&page.Items[i]); {
			case err != nil:
				return err
			case len(changes) > 0:
				workers.Go(func() error { return c.discardPreserved(cleaning, &page.Items[i], changes) })
			case c.hasOldEntry(&page.Items[i]):
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

// checkDefinition fails if the CustomResourceDefinition has changed: it may have a new version, whose
// entries would look as old as those of the removed one. After it, no object that was read before has such
// an entry. The writes are only for these objects as they were read.
func (c *managedFieldsCleaner) checkDefinition(ctx context.Context) error {
	current, err := c.definition.Get(ctx, c.crd.Name, metav1.GetOptions{})
	switch {
	case err != nil:
		return fmt.Errorf("reading the CustomResourceDefinition %s: %w", c.crd.Name, err)
	case current.UID != c.crd.UID || current.Generation != c.crd.Generation:
		return fmt.Errorf("the CustomResourceDefinition %s changed meanwhile: the operator starts again", c.crd.Name)
	}
	return nil
}

func (c *managedFieldsCleaner) hasOldEntry(object *metav1.PartialObjectMetadata) bool {
	return slices.ContainsFunc(object.ManagedFields, c.isOld)
}

// isOld reports whether an entry names the removed version, or one that was removed earlier. While
// an object has such an entry, API servers keep all of its entries unchanged.
func (c *managedFieldsCleaner) isOld(entry metav1.ManagedFieldsEntry) bool {
	return !slices.Contains(c.others, entry.APIVersion)
}

// clean writes one object, unless it changed since it was read. The next pass handles a conflict.
func (c *managedFieldsCleaner) clean(ctx context.Context, object *metav1.PartialObjectMetadata) error {
	return c.countOutcome(ctx, object, c.replaceEntries(ctx, object, c.remainingEntries(object.ManagedFields)))
}

// countOutcome counts the result of an object. It returns an error only if ctx ended.
func (c *managedFieldsCleaner) countOutcome(ctx context.Context, object *metav1.PartialObjectMetadata, err error) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case err == nil || apierrors.IsConflict(err) || apierrors.IsNotFound(err):
		c.written++
	case ctx.Err() != nil:
		return err
	default:
		if c.failed++; c.firstErr == nil {
			c.firstErr = fmt.Errorf("%s/%s: %w", object.Namespace, object.Name, err)
		}
	}
	return nil
}

// errTruncated means that the object was read in a truncated form, which must not be written.
var errTruncated = errors.New("it was read in a truncated form, as its annotations have no room for what they are to preserve: see status.oversizedObjects of the policy")

// errUnchanged means that the API server accepts a patch and changes nothing.
var errUnchanged = errors.New("the API server keeps metadata.managedFields unchanged, as long as no converter converts the object to each version that they name")

// replaceEntries patches an object's entries until the API server stores them. While no converter
// answers for the version of an entry, an API server keeps the previous entries; before Kubernetes
// 1.37 it drops all of them. The last try writes only the operator's own entry, which needs no
// conversion.
func (c *managedFieldsCleaner) replaceEntries(ctx context.Context, object *metav1.PartialObjectMetadata, entries []metav1.ManagedFieldsEntry) error {
	version, tries, dropped := object.ResourceVersion, 0, false
	return wait.PollUntilContextCancel(ctx, replacePause, true, func(ctx context.Context) (bool, error) {
		if tries++; dropped && tries == replaceTries {
			entries = c.remainingEntries(nil)
		}
		patch, err := json.Marshal(pinnedPatch(object.UID, version,
			map[string]any{"op": "add", "path": "/metadata/managedFields", "value": entries}))
		if err != nil {
			return true, err
		}
		answer, err := c.objectsIn(object.Namespace).Patch(ctx, object.Name, types.JSONPatchType, patch, metav1.PatchOptions{FieldManager: names.ManagedBy})
		if err != nil {
			return true, err
		}
		version, dropped = answer.ResourceVersion, len(answer.ManagedFields) == 0
		switch unchanged := c.hasOldEntry(answer); {
		case unchanged && tries == replaceTries:
			return true, errUnchanged
		case unchanged || dropped:
			return tries == replaceTries, nil
		}
		return true, nil
	})
}

// remainingEntries returns the entries of other versions. If there are none, it returns one entry
// of the operator that owns nothing. Without any entry, the next server-side apply would assign
// all fields to a manager that does not exist, and no client could remove a field any more.
func (c *managedFieldsCleaner) remainingEntries(entries []metav1.ManagedFieldsEntry) []metav1.ManagedFieldsEntry {
	remaining := slices.DeleteFunc(slices.Clone(entries), c.isOld)
	if len(remaining) > 0 {
		return remaining
	}
	return []metav1.ManagedFieldsEntry{{
		Manager: names.ManagedBy, Operation: metav1.ManagedFieldsOperationUpdate, APIVersion: c.storage, FieldsType: "FieldsV1",
		FieldsV1: metav1.NewFieldsV1(`{"f:metadata":{}}`),
	}}
}
