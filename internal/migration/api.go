// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package migration

import (
	"context"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// ListScope is where objects are listed: at one version, the storage version if it
// is empty, and in one namespace, or everywhere if that is empty.
type ListScope struct {
	Version   string
	Namespace string
}

// Lister lists the metadata of the migrated resource. Reads are consistent: the
// engine never asks for a cached resourceVersion.
type Lister interface {
	List(ctx context.Context, scope ListScope, options metav1.ListOptions) (*metav1.PartialObjectMetadataList, error)
}

// Patch is a JSON merge patch of one object.
type Patch struct {
	Namespace string
	Name      string
	// Version is the served version that it is sent to; empty is the storage
	// version.
	Version string
	// Subresource is "status", or empty for the object itself.
	Subresource string
	// DryRun has the API server do everything but the write.
	DryRun bool
	Body   []byte

	// managedFields are what the object has in metadata.managedFields, if that is known: an
	// answer without any is taken for a refusal.
	managedFields []metav1.ManagedFieldsEntry
}

// Patcher sends a patch once and returns the metadata that the API server
// answers with.
type Patcher interface {
	Patch(ctx context.Context, patch Patch) (*metav1.PartialObjectMetadata, error)
}

// Definition reads the current metadata of the CustomResourceDefinition that the run
// is pinned to, never from a cache.
type Definition interface {
	DefinitionMetadata(ctx context.Context) (*metav1.PartialObjectMetadata, error)
}

// Discovery reports what the API server shows of the migrated resource at the
// storage version, its kind and storageVersionHash among it, or nil if it does
// not serve it.
type Discovery interface {
	ServedResource(ctx context.Context) (*metav1.APIResource, error)
}

// Servers knows the API servers one by one.
type Servers interface {
	// Addresses are all API servers, as host:port, and how many hold a lease:
	// more leases than addresses mean that one address stands for several.
	Addresses(ctx context.Context) (addresses []string, leases int, err error)
	// ServedResourceAt is what one API server shows, as Discovery is for the one
	// that happens to answer.
	ServedResourceAt(ctx context.Context, address string) (*metav1.APIResource, error)
}

// Rulesets reads the ConfigMap of compiled rules; nil where it is gone.
type Rulesets interface {
	Ruleset(ctx context.Context, name string) ([]byte, error)
}

// Checkpoints keeps the run's record and what belongs to it, by key. Load
// returns nothing when nothing was saved yet. Save writes the keys that it is
// given, all at once, and leaves the others unchanged.
type Checkpoints interface {
	Load(ctx context.Context) (map[string]string, error)
	Save(ctx context.Context, data map[string]string) error
}

// Clock tells the time and waits. Sleep returns the context's error when the
// context ends first.
type Clock interface {
	Now() time.Time
	Sleep(ctx context.Context, duration time.Duration) error
}

// SystemClock is the computer's clock.
type SystemClock struct{}

// Now returns the current time.
func (SystemClock) Now() time.Time { return time.Now() }

// Sleep waits for the duration or for the end of the context.
func (SystemClock) Sleep(ctx context.Context, duration time.Duration) error {
	timer := time.NewTimer(duration)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
		return nil
	}
}
