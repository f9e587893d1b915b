// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cmd

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync/atomic"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
	toolswatch "k8s.io/client-go/tools/watch"
	"k8s.io/klog/v2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
)

// findPolicies reads the policies with these names, or all of them, sorted by name.
// A missing policy is an error.
func findPolicies(ctx context.Context, api client.Client, names []string) ([]*v1alpha1.ConversionPolicy, error) {
	list := &v1alpha1.ConversionPolicyList{}
	if err := api.List(ctx, list, selectNames(names)...); err != nil {
		return nil, policyReadError(err)
	}
	var found []*v1alpha1.ConversionPolicy
	for i := range list.Items {
		if len(names) == 0 || slices.Contains(names, list.Items[i].Name) {
			found = append(found, &list.Items[i])
		}
	}
	slices.SortFunc(found, byName)
	for _, name := range names {
		if !slices.ContainsFunc(found, func(policy *v1alpha1.ConversionPolicy) bool { return policy.Name == name }) {
			return nil, noPolicy(name)
		}
	}
	return found, nil
}

func byName(a, b *v1alpha1.ConversionPolicy) int { return cmp.Compare(a.Name, b.Name) }

// selectNames reads a single policy by name: the user may have no right to list others.
func selectNames(names []string) []client.ListOption {
	if len(names) != 1 {
		return nil
	}
	return []client.ListOption{client.MatchingFields{"metadata.name": names[0]}}
}

// getPolicy reads a policy.
func getPolicy(ctx context.Context, api client.Client, name string) (*v1alpha1.ConversionPolicy, error) {
	policy := &v1alpha1.ConversionPolicy{}
	err := api.Get(ctx, client.ObjectKey{Name: name}, policy)
	if apierrors.IsNotFound(err) {
		return nil, noPolicy(name)
	}
	return policy, policyReadError(err)
}

func noPolicy(name string) error { return fmt.Errorf("the cluster has no ConversionPolicy %s", name) }

// policyReadError adds what to do to an error about policies.
func policyReadError(err error) error {
	switch {
	case err == nil:
		return nil
	case meta.IsNoMatchError(err):
		return errors.New("the cluster does not know ConversionPolicies: install the operator, or choose another cluster with --context")
	}
	return fmt.Errorf("read ConversionPolicies: %w", err)
}

// policyWatch follows policies. It restarts its watch when that breaks.
type policyWatch struct {
	api   client.WithWatch
	names []string
	known map[string]*v1alpha1.ConversionPolicy
	// forbidden gets the error if the first watch is refused. Later, it may only be an API server that starts.
	forbidden chan error
	watched   atomic.Bool
	// unanswered is why the API server does not answer, nil while it does; noted gets each change of it.
	unanswered atomic.Pointer[string]
	noted      chan struct{}
}

// newPolicyWatch follows the policies with these names, or all of them, from their
// current state.
func newPolicyWatch(api client.WithWatch, names []string, policies []*v1alpha1.ConversionPolicy) *policyWatch {
	w := &policyWatch{api: api, names: names, known: map[string]*v1alpha1.ConversionPolicy{}, forbidden: make(chan error, 1), noted: make(chan struct{}, 1)}
	for _, policy := range policies {
		w.known[policy.Name] = policy
	}
	return w
}

// run calls show with the policies immediately, with each tick, and after each change
// of one of them, until show returns true. It returns the error of show or of the
// context, or an error if a named policy was deleted, or the user may not watch policies.
func (w *policyWatch) run(ctx context.Context, show func([]*v1alpha1.ConversionPolicy) (done bool, err error), ticks <-chan time.Time) error {
	if done, err := show(w.policies()); done || err != nil {
		return err
	}
	_, _, changes, done := toolswatch.NewIndexerInformerWatcherWithLogger(klog.FromContext(ctx), w.source(), &v1alpha1.ConversionPolicy{})
	defer func() {
		changes.Stop()
		<-done
	}()
	for {
		changed, err := w.next(ctx, changes.ResultChan(), ticks)
		if err != nil {
			return err
		}
		if !changed {
			continue
		}
		if done, err := show(w.policies()); done || err != nil {
			return err
		}
	}
}

// next waits for an event or a tick, and reports whether the policies changed.
func (w *policyWatch) next(ctx context.Context, changes <-chan watch.Event, ticks <-chan time.Time) (changed bool, err error) {
	select {
	case <-ctx.Done():
		return false, ctx.Err()
	case event, open := <-changes:
		if !open {
			return false, errors.New("the watch of policies ended")
		}
		return w.store(event)
	case err := <-w.forbidden:
		return false, err
	case <-w.noted:
		return true, nil
	case <-ticks:
		return true, nil
	}
}

// trouble is why the policies may have changed without being seen, empty if they are followed.
func (w *policyWatch) trouble() string {
	if why := w.unanswered.Load(); why != nil {
		return *why
	}
	return ""
}

func (w *policyWatch) policies() []*v1alpha1.ConversionPolicy {
	return slices.SortedFunc(maps.Values(w.known), byName)
}

// note stores an event, and reports whether the policy changed.
func (w *policyWatch) store(event watch.Event) (changed bool, err error) {
	policy, ok := event.Object.(*v1alpha1.ConversionPolicy)
	if !ok || len(w.names) > 0 && !slices.Contains(w.names, policy.Name) {
		return false, nil
	}
	before := w.known[policy.Name]
	if event.Type == watch.Deleted {
		delete(w.known, policy.Name)
		if len(w.names) > 0 {
			return false, &exitError{exitFound, fmt.Errorf("ConversionPolicy %s was deleted", policy.Name)}
		}
		return true, nil
	}
	w.known[policy.Name] = policy
	return before == nil || before.ResourceVersion != policy.ResourceVersion, nil
}

// source uses the context of the watcher: it ends together with the watch.
func (w *policyWatch) source() cache.ListerWatcher {
	return &cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
			list := &v1alpha1.ConversionPolicyList{}
			err := w.api.List(ctx, list, append(selectNames(w.names), &client.ListOptions{Raw: &options})...)
			if err != nil {
				w.noteAnswer(err) // an answer is no watch yet
			}
			return list, err
		},
		WatchFuncWithContext: func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
			watcher, err := w.api.Watch(ctx, &v1alpha1.ConversionPolicyList{}, append(selectNames(w.names), &client.ListOptions{Raw: &options})...)
			if err == nil {
				w.watched.Store(true)
			}
			w.noteForbidden(err)
			w.noteAnswer(err)
			return watcher, err
		},
	}
}

// noteAnswer notes whether the API server answers. The informer tries again, and says nothing about it.
func (w *policyWatch) noteAnswer(err error) {
	var why *string
	if errors.Is(err, context.Canceled) || apierrors.IsResourceExpired(err) || apierrors.IsGone(err) {
		return
	}
	if err != nil {
		why = new(err.Error())
	}
	if before := w.unanswered.Swap(why); (before == nil) != (why == nil) {
		select {
		case w.noted <- struct{}{}:
		default: // one is enough
		}
	}
}

// noteForbidden ends the watch if it was refused from the beginning: the informer would try again for ever, and say nothing.
func (w *policyWatch) noteForbidden(err error) {
	if !apierrors.IsForbidden(err) || w.watched.Load() {
		return
	}
	select {
	case w.forbidden <- fmt.Errorf("watch ConversionPolicies: %w", err):
	default: // one is enough
	}
}
