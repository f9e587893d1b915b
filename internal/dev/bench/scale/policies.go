// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package scale

import (
	"context"
	"fmt"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
	watchtools "k8s.io/client-go/tools/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
)

// patience bounds each wait; patienceEach is added for each policy, as an API server with many
// CustomResourceDefinitions takes a second for each change.
const patience, patienceEach = 10 * time.Minute, 2 * time.Second

// stages are the conditions that are timed.
var stages = []string{v1alpha1.RulesValidCondition, v1alpha1.WebhookAvailableCondition, v1alpha1.ConversionVerifiedCondition,
	v1alpha1.ConversionConfiguredCondition, v1alpha1.ReadyCondition}

// follow does something, and reads the objects that change from before it until one satisfies done. If the API
// server ends the watch, as it does if its client is late on a busy machine, it is continued.
func follow[T client.Object](ctx context.Context, r *run, objects client.ObjectList, do func(context.Context) error, done func(T) bool) error {
	if err := r.client.List(ctx, objects, client.Limit(1)); err != nil {
		return err
	}
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return do(ctx) })
	group.Go(func() error {
		watcher := &cache.ListWatch{WatchFuncWithContext: func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
			return r.client.Watch(ctx, objects, &client.ListOptions{Raw: &options})
		}}
		_, err := watchtools.Until(ctx, objects.GetResourceVersion(), watcher, func(event watch.Event) (bool, error) {
			object, is := event.Object.(T)
			return is && done(object), nil
		})
		return err
	})
	return group.Wait()
}

// writesAtOnce is a bound for an API server on few processors.
const writesAtOnce = 8

// each calls do for all elements, some in parallel.
func each[T any](ctx context.Context, all []T, do func(context.Context, T) error) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(writesAtOnce)
	for _, one := range all {
		group.Go(func() error { return do(ctx, one) })
	}
	return group.Wait()
}

// policy is that of a definition with two versions.
func policy(crd *apiextensionsv1.CustomResourceDefinition) *v1alpha1.ConversionPolicy {
	return &v1alpha1.ConversionPolicy{
		ObjectMeta: metav1.ObjectMeta{Name: crd.Name},
		Spec:       v1alpha1.ConversionPolicySpec{Converter: v1alpha1.Converter{Type: v1alpha1.ConverterDeclarative, Declarative: rules(crd)}},
	}
}

// activate creates a policy for each CRD at once, and returns the times until each condition is True
// for each of them.
func (r *run) activate(ctx context.Context, converting []*apiextensionsv1.CustomResourceDefinition) (map[string][]time.Duration, error) {
	ctx, cancel := context.WithTimeout(ctx, patience+time.Duration(len(converting))*patienceEach)
	defer cancel()
	seen, last := map[[2]string]bool{}, ""
	began, took := time.Now(), map[string][]time.Duration{}
	err := follow(ctx, r, &v1alpha1.ConversionPolicyList{}, func(ctx context.Context) error {
		return each(ctx, converting, func(ctx context.Context, crd *apiextensionsv1.CustomResourceDefinition) error {
			return r.client.Create(ctx, policy(crd))
		})
	}, func(policy *v1alpha1.ConversionPolicy) bool {
		if !slices.ContainsFunc(converting, func(crd *apiextensionsv1.CustomResourceDefinition) bool { return crd.Name == policy.Name }) {
			return false // an earlier one, whose status the manager writes again
		}
		for _, stage := range stages {
			key := [2]string{stage, policy.Name}
			if !seen[key] && apimeta.IsStatusConditionTrue(policy.Status.Conditions, stage) {
				seen[key] = true
				took[stage] = append(took[stage], time.Since(began))
			}
		}
		if ready := apimeta.FindStatusCondition(policy.Status.Conditions, v1alpha1.ReadyCondition); ready != nil && ready.Status != metav1.ConditionTrue {
			last = policy.Name + ": " + ready.Reason + ": " + ready.Message
		}
		return len(seen) == len(stages)*len(converting)
	})
	if err != nil {
		err = fmt.Errorf("%d conditions of %d policies are True: %w; the last one says %s", len(seen), len(converting), err, last)
	}
	return took, err
}
