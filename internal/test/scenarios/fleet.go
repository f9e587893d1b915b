// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package scenarios

import (
	"context"
	"errors"
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

// Read starts a client that reads one object repeatedly, and checks each result.
func (f *Fleet) Read(ctx context.Context, resource schema.GroupVersionResource, name string, check func(*unstructured.Unstructured) error) *Client {
	return Repeat(ctx, func(ctx context.Context) error {
		object, err := f.Get(ctx, resource, name)
		if err != nil {
			return err
		}
		return check(object)
	})
}

// Client repeats requests until it is stopped, or until one fails.
type Client struct {
	requests atomic.Int64
	stop     context.CancelFunc
	ended    chan struct{}
	failed   error
}

// pause between two requests makes a Client an ordinary client instead of a load test.
const pause = 20 * time.Millisecond

// Repeat starts a Client.
func Repeat(ctx context.Context, request func(context.Context) error) *Client {
	ctx, stop := context.WithCancel(ctx)
	client := &Client{stop: stop, ended: make(chan struct{})}
	go func() {
		defer close(client.ended)
		client.run(ctx, request)
	}()
	return client
}

func (c *Client) run(ctx context.Context, request func(context.Context) error) {
	ticker := time.NewTicker(pause)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		err := request(ctx)
		if ctx.Err() != nil {
			return
		}
		if err != nil {
			c.failed = fmt.Errorf("request %d, which ended at %s: %w", c.requests.Load()+1, time.Now().Format(time.RFC3339Nano), err)
			return
		}
		c.requests.Add(1)
	}
}

// Stop ends the Client, and returns the number of requests that succeeded, and the first failure.
func (c *Client) Stop() (int64, error) {
	c.stop()
	<-c.ended
	return c.requests.Load(), c.failed
}

// Check ends the Client, and returns an error if a request failed, or if there was none.
func (c *Client) Check() error {
	requests, err := c.Stop()
	if err == nil && requests == 0 {
		err = errors.New("no request was made")
	}
	return err
}
