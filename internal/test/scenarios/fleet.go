// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package scenarios

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
)

// Namespace has the objects of the story.
const Namespace = "default"

// Fleet creates and reads many objects of one resource.
type Fleet struct {
	client dynamic.Interface
}

// NewFleet connects to the API server.
func NewFleet(config *rest.Config) (*Fleet, error) {
	config = rest.CopyConfig(config)
	config.QPS = -1
	client, err := dynamic.NewForConfig(config)
	return &Fleet{client: client}, err
}

// Create creates objects 0 to count-1, eight at a time.
func (f *Fleet) Create(ctx context.Context, resource schema.GroupVersionResource, count int, object func(int) *unstructured.Unstructured) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(8)
	for i := range count {
		group.Go(func() error {
			_, err := f.client.Resource(resource).Namespace(Namespace).Create(ctx, object(i), metav1.CreateOptions{})
			return err
		})
	}
	return group.Wait()
}

// Get reads one object.
func (f *Fleet) Get(ctx context.Context, resource schema.GroupVersionResource, name string) (*unstructured.Unstructured, error) {
	return f.client.Resource(resource).Namespace(Namespace).Get(ctx, name, metav1.GetOptions{})
}

// List reads all objects.
func (f *Fleet) List(ctx context.Context, resource schema.GroupVersionResource) ([]unstructured.Unstructured, error) {
	return f.list(ctx, resource, metav1.ListOptions{})
}

// ListCached returns the objects that the API server has in memory.
func (f *Fleet) ListCached(ctx context.Context, resource schema.GroupVersionResource) ([]unstructured.Unstructured, error) {
	return f.list(ctx, resource, metav1.ListOptions{ResourceVersion: "0"})
}

func (f *Fleet) list(ctx context.Context, resource schema.GroupVersionResource, options metav1.ListOptions) ([]unstructured.Unstructured, error) {
	list, err := f.client.Resource(resource).Namespace(Namespace).List(ctx, options)
	if err != nil {
		return nil, err
	}
	return list.Items, nil
}

// Reader is a client that reads one object repeatedly, and checks each result.
type Reader struct {
	reads  atomic.Int64
	stop   context.CancelFunc
	ended  chan struct{}
	failed error
}

// Read starts a Reader.
func (f *Fleet) Read(
	ctx context.Context, resource schema.GroupVersionResource, name string, check func(*unstructured.Unstructured) error,
) *Reader {
	ctx, stop := context.WithCancel(ctx)
	reader := &Reader{stop: stop, ended: make(chan struct{})}
	go func() {
		defer close(reader.ended)
		reader.run(ctx, func() error {
			object, err := f.Get(ctx, resource, name)
			if err != nil {
				return err
			}
			return check(object)
		})
	}()
	return reader
}

// readPause makes a Reader an ordinary client instead of a load test.
const readPause = 20 * time.Millisecond

func (r *Reader) run(ctx context.Context, read func() error) {
	ticker := time.NewTicker(readPause)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		err := read()
		if ctx.Err() != nil {
			return
		}
		if err != nil {
			r.failed = fmt.Errorf("read %d at %s: %w", r.reads.Load()+1, time.Now().Format(time.RFC3339Nano), err)
			return
		}
		r.reads.Add(1)
	}
}

// Stop ends the Reader, and returns the number of reads and the first failure.
func (r *Reader) Stop() (int64, error) {
	r.stop()
	<-r.ended
	return r.reads.Load(), r.failed
}
