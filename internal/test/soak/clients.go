// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"fmt"
	"reflect"

	"golang.org/x/sync/errgroup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	"github.com/conversion-operator/conversion-operator/internal/test/scenarios"
)

// objects returns a client for the objects of a subject at a version.
func (p *player) objects(subject, version string) dynamic.ResourceInterface {
	resource := schema.GroupVersionResource{Group: groupOf(subject), Version: version, Resource: "crontabs"}
	return p.dynamic.Resource(resource).Namespace(scenarios.Namespace)
}

// write performs the writes of a step: clients in parallel, each with its writes in order. Like
// controllers, clients retry until they succeed.
func (p *player) write(ctx context.Context, writes []write) error {
	byClient := map[int][]write{}
	for _, w := range writes {
		byClient[w.Client] = append(byClient[w.Client], w)
	}
	clients, ctx := errgroup.WithContext(ctx)
	for client, itsWrites := range byClient {
		clients.Go(func() error {
			for _, w := range itsWrites {
				what := fmt.Sprintf("client %d %ss %s/%s at %s", client, w.Do, w.Subject, w.Name, w.Version)
				if err := p.eventually(ctx, what, func(ctx context.Context) error { return p.writeOnce(ctx, w) }); err != nil {
					return err
				}
			}
			return nil
		})
	}
	return clients.Wait()
}

func (p *player) writeOnce(ctx context.Context, w write) error {
	switch w.Do {
	case labelObject:
		return p.labelOnce(ctx, w)
	case deleteObject:
		return p.deleteOnce(ctx, w)
	}
	return p.putOnce(ctx, w)
}

// putOnce reads an object, replaces its spec, and writes it. If the response of a write was lost,
// the retry finds that write.
func (p *player) putOnce(ctx context.Context, w write) error {
	before, _ := p.ledger.get(w.Subject, w.Name)
	want := before.Record.overwritten(w.Version, w.Record)
	objects, spec := p.objects(w.Subject, w.Version), want.spec(w.Version)
	object, err := objects.Get(ctx, w.Name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		object = &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": groupOf(w.Subject) + "/" + w.Version, "kind": "CronTab",
			"metadata": map[string]any{"name": w.Name, "namespace": scenarios.Namespace}, "spec": spec,
		}}
		_, err = objects.Create(ctx, object, metav1.CreateOptions{})
	case err == nil && !reflect.DeepEqual(object.Object["spec"], any(spec)):
		object.Object["spec"] = spec
		_, err = objects.Update(ctx, object, metav1.UpdateOptions{})
	}
	if err != nil {
		return err
	}
	p.ledger.put(w.Subject, w.Name, w.Version, want)
	return nil
}

// labelOnce patches an object, which may not exist.
func (p *player) labelOnce(ctx context.Context, w write) error {
	value := fmt.Sprint("in-", w.Version)
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"labels": map[string]any{w.Label: value}}})
	if err != nil {
		return err
	}
	_, err = p.objects(w.Subject, w.Version).Patch(ctx, w.Name, types.MergePatchType, patch, metav1.PatchOptions{})
	if p.isGone(ctx, w, err) {
		return nil
	}
	if err != nil {
		return err
	}
	p.ledger.label(w.Subject, w.Name, w.Label, value)
	return nil
}

func (p *player) deleteOnce(ctx context.Context, w write) error {
	err := p.objects(w.Subject, w.Version).Delete(ctx, w.Name, metav1.DeleteOptions{})
	if err != nil && !p.isGone(ctx, w, err) {
		return err
	}
	p.ledger.remove(w.Subject, w.Name)
	return nil
}

// isGone reports whether err means that the object does not exist. The API server returns the same
// error for a version that it does not serve yet.
func (p *player) isGone(ctx context.Context, w write, err error) bool {
	if !apierrors.IsNotFound(err) {
		return false
	}
	_, err = p.objects(w.Subject, w.Version).List(ctx, metav1.ListOptions{Limit: 1})
	return err == nil
}
