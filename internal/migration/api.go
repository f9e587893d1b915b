// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package migration

import (
	"context"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Lister lists the metadata of the migrated resource at the storage version,
// in one namespace, or everywhere when namespace is empty. Reads are
// consistent: the engine never asks for a cached resourceVersion.
type Lister interface {
	List(ctx context.Context, namespace string, options metav1.ListOptions) (*metav1.PartialObjectMetadataList, error)
}

// Patcher sends a JSON merge patch to one object at the storage version and
// returns the metadata that the API server answers with.
type Patcher interface {
	Patch(ctx context.Context, namespace, name string, patch []byte) (*metav1.PartialObjectMetadata, error)
}

// Definition reads the metadata of the CustomResourceDefinition that the run is
// pinned to, as it is now: never from a cache.
type Definition interface {
	DefinitionMetadata(ctx context.Context) (*metav1.PartialObjectMetadata, error)
}

// Discovery reports what the API server shows of the migrated resource at the
// storage version, its kind and storageVersionHash among it, or nil if it does
// not serve it.
type Discovery interface {
	ServedResource(ctx context.Context) (*metav1.APIResource, error)
}

// Checkpoints keeps the run's record. Load returns nothing when no record was
// saved yet.
type Checkpoints interface {
	Load(ctx context.Context) ([]byte, error)
	Save(ctx context.Context, record []byte) error
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
