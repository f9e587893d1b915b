// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package migration

import (
	"context"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// ListScope selects the objects of a list: an empty Version is the storage version, and an empty
// Namespace is all namespaces.
type ListScope struct {
	Version   string
	Namespace string
}

// Lister lists the metadata of the migrated resource. The reads are consistent: the engine never
// requests a cached resourceVersion.
type Lister interface {
	List(ctx context.Context, scope ListScope, options metav1.ListOptions) (*metav1.PartialObjectMetadataList, error)
}

// Patch is a JSON merge patch of one object.
type Patch struct {
	Namespace string
	Name      string
	// Version is the served version that the patch is sent to; empty is the storage version.
	Version string
	// Subresource is "status", or empty for the object itself.
	Subresource string
	// DryRun has the API server do everything but the write.
	DryRun bool
	Body   []byte

	// managedFields are the entries of metadata.managedFields before the patch, if known. An answer
	// without any is treated as a failure.
	managedFields []metav1.ManagedFieldsEntry
}

// Patcher sends a patch once, and returns the metadata in the answer.
type Patcher interface {
	Patch(ctx context.Context, patch Patch) (*metav1.PartialObjectMetadata, error)
}

// Definition reads the metadata of the CustomResourceDefinition that the run is pinned to, never
// from a cache.
type Definition interface {
	DefinitionMetadata(ctx context.Context) (*metav1.PartialObjectMetadata, error)
}

// Discovery returns the migrated resource at the storage version from discovery, with its kind and
// storageVersionHash, or nil if it is not served.
type Discovery interface {
	ServedResource(ctx context.Context) (*metav1.APIResource, error)
}

// Servers gives access to single API servers.
type Servers interface {
	// Addresses returns the addresses of all API servers, as host:port, and how many API servers
	// hold a lease. More leases than addresses mean that one address stands for several API
	// servers.
	Addresses(ctx context.Context) (addresses []string, leases int, err error)
	// ServedResourceAt is Discovery for the API server at one address.
	ServedResourceAt(ctx context.Context, address string) (*metav1.APIResource, error)
}

// Rulesets reads the ruleset of a ConfigMap, or nil if the ConfigMap does not exist.
type Rulesets interface {
	Ruleset(ctx context.Context, configMap, hash string) ([]byte, error)
}

// Checkpoints stores the data of the run by key. Load returns an empty map before the first Save.
// Save writes the given keys in one request, and leaves the others unchanged.
type Checkpoints interface {
	Load(ctx context.Context) (map[string]string, error)
	Save(ctx context.Context, data map[string]string) error
}

// Clock returns the time and waits. Sleep returns the error of the context if the context ends
// first.
type Clock interface {
	Now() time.Time
	Sleep(ctx context.Context, duration time.Duration) error
}

// SystemClock is the Clock of the operating system.
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
