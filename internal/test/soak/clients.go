// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package soak

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"time"

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
func (p *player) write(ctx context.Context, writes []Write) error {
	byClient := map[int][]Write{}
	for _, w := range writes {
		byClient[w.Client] = append(byClient[w.Client], w)
	}
	clients, ctx := errgroup.WithContext(ctx)
	for _, itsWrites := range byClient {
		clients.Go(func() error {
			for _, w := range itsWrites {
				if err := p.eventually(ctx, w.String(), func(ctx context.Context) error { return p.writeOnce(ctx, w) }); err != nil {
					return err
				}
			}
			return nil
		})
	}
	return clients.Wait()
}

func (p *player) writeOnce(ctx context.Context, w Write) error {
	objects := p.objects(w.Subject, w.Version)
	switch w.Do {
	case labelObject:
		patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"labels": map[string]any{w.label(): "in-" + w.Version}}})
		if err == nil {
			_, err = objects.Patch(ctx, w.Name, types.MergePatchType, patch, metav1.PatchOptions{})
		}
		return err
	case deleteObject:
		err := objects.Delete(ctx, w.Name, metav1.DeleteOptions{})
		if apierrors.IsNotFound(err) {
			// An API server that starts returns the same error for every version.
			_, err = objects.List(ctx, metav1.ListOptions{Limit: 1})
		}
		return err
	}
	return putOnce(ctx, objects, w)
}

// putOnce reads an object, replaces its spec, and writes it. If the response of a write was lost,
// the retry finds that write.
func putOnce(ctx context.Context, objects dynamic.ResourceInterface, w Write) error {
	spec := w.spec(w.Version)
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
	return err
}

// readPause makes a reader an ordinary client instead of a load test.
const readPause = 20 * time.Millisecond

// reader reads objects during a step that no client writes meanwhile. A read may fail, but must not
// return wrong data.
type reader struct {
	stop context.CancelFunc
	end  chan error
	// failed is the first failed read, and when; empty if there was none. It is complete after finish.
	failed string
}

func (p *player) startReader(ctx context.Context, s Step) *reader {
	ctx, stop := context.WithCancel(ctx)
	r := &reader{stop: stop, end: make(chan error, 1)}
	go func() { r.end <- p.readAll(ctx, readings(s), r) }()
	return r
}

// finish stops the reader, and returns the first read with wrong data.
func (r *reader) finish() error {
	r.stop()
	return <-r.end
}

// reading is an object to read at a version.
type reading struct {
	subject       Subject
	name, version string
}

// readings returns the objects that the step does not affect, at the versions that are served
// before and after it.
func readings(s Step) []reading {
	written := map[string]bool{}
	for _, w := range s.Writes {
		written[w.Subject+"/"+w.Name] = true
	}
	var all []reading
	for i, before := range s.Before {
		if kindNamed(s.Kind).noWrites && s.Subject == before.Name {
			continue
		}
		for name := range before.Objects {
			for _, version := range s.After[i].Served {
				if !written[before.Name+"/"+name] && slices.Contains(before.Served, version) {
					all = append(all, reading{before, name, version})
				}
			}
		}
	}
	return all
}

func (p *player) readAll(ctx context.Context, all []reading, r *reader) error {
	for len(all) > 0 {
		for _, each := range all {
			if wait(ctx, readPause) != nil {
				return nil //nolint:nilerr // the step is over
			}
			// A request that is cancelled is a failed conversion for the API server.
			object, err := p.objects(each.subject.Name, each.version).Get(context.WithoutCancel(ctx), each.name, metav1.GetOptions{})
			if err != nil {
				if r.failed == "" {
					r.failed = fmt.Sprintf("%s at %s: %v", each.name, time.Now().Format(time.TimeOnly), err)
				}
				continue
			}
			p.reads++
			var wrong []error
			now := Observation{Subject: each.subject, Reads: map[string]map[string]read{each.version: {each.name: asRead(object, nil)}}}
			readsDiffer(now, now, func(format string, args ...any) { wrong = append(wrong, fmt.Errorf(format, args...)) })
			if len(wrong) > 0 {
				return fmt.Errorf("a client that read %s while the step went on: %w", each.subject.Name, errors.Join(wrong...))
			}
		}
	}
	return nil
}

func asRead(object *unstructured.Unstructured, err error) read {
	if err != nil {
		return read{err: err.Error()}
	}
	spec, _, err := unstructured.NestedMap(object.Object, "spec")
	if err != nil {
		return read{err: err.Error()}
	}
	return read{spec: spec, labels: object.GetLabels()}
}
