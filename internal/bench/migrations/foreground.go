// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package migrations

import (
	"context"
	"errors"
	"fmt"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
	"github.com/conversion-operator/conversion-operator/internal/bench/measure"
)

// pace is how often the other client asks.
const pace = 20 * time.Millisecond

// foreground reads and writes an object of the kind by turns until it is stopped,
// and returns how long each request took.
func (c *cluster) foreground(ctx context.Context, s setup) (stop func() ([]time.Duration, error)) {
	ctx, cancel := context.WithCancel(ctx)
	var times []time.Duration
	var failed error
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for i := 0; ; i++ {
			began := time.Now()
			err := c.ask(ctx, s, i)
			took := time.Since(began)
			if ctx.Err() != nil {
				return
			}
			times, failed = append(times, took), errors.Join(failed, err)
			if pause(ctx, max(0, pace-took)) != nil {
				return
			}
		}
	}()
	return func() ([]time.Duration, error) {
		cancel()
		<-ended
		return sorted(times), failed
	}
}

// ask reads, or writes. Its object is one that migrations have to do with, too.
func (c *cluster) ask(ctx context.Context, s setup, i int) error {
	objects, name := c.objects.Resource(s.at(newVersion)).Namespace(namespace), s.object(0).GetName()
	if i%2 == 0 {
		_, err := objects.Get(ctx, name, metav1.GetOptions{})
		return err
	}
	body := fmt.Appendf(nil, `{"metadata":{"labels":{"turn":"%d"}}}`, i)
	_, err := objects.Patch(ctx, name, types.MergePatchType, body, metav1.PatchOptions{})
	return err
}

// byPolicy migrates as users do, by a trigger, and returns how long that took
// from the trigger until status.storedVersions was pruned.
func (c *cluster) byPolicy(ctx context.Context, s setup) (time.Duration, error) {
	policy := &v1alpha1.ConversionPolicy{}
	if err := c.client.Get(ctx, client.ObjectKey{Name: s.definitionName()}, policy); err != nil {
		return 0, err
	}
	began := time.Now()
	before := policy.DeepCopy()
	policy.Spec.Migration.Mode = v1alpha1.MigrationOnTrigger
	policy.Spec.Migration.Trigger = began.Format(time.RFC3339)
	if err := c.client.Patch(ctx, policy, client.MergeFrom(before)); err != nil {
		return 0, err
	}
	for {
		err := c.await(ctx, s, func(_ *apiextensionsv1.CustomResourceDefinition, now *v1alpha1.ConversionPolicy) bool {
			last := now.Status.Migration
			return last != nil && last.Trigger == policy.Spec.Migration.Trigger && last.State != v1alpha1.MigrationRunning && now.Status.Evidence != nil
		})
		switch {
		case errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil && time.Since(began) < 10*patience:
		case err != nil:
			return 0, err
		default:
			return time.Since(began), nil
		}
	}
}

// latencies measures another client alone, and then while a migration goes on.
func (r *suite) latencies(ctx context.Context, s setup) error {
	r.tell("%s: another client alone, for %s, then beside a migration", s.name, r.Alone)
	stop := r.foreground(ctx, s)
	ended := pause(ctx, r.Alone)
	alone, err := stop()
	if err := errors.Join(ended, err); err != nil {
		return err
	}
	version, err := r.flip(ctx, s)
	if err != nil {
		return err
	}
	stop = r.foreground(ctx, s)
	took, err := r.byPolicy(ctx, s)
	beside, failed := stop()
	if err := errors.Join(err, failed); err != nil {
		return err
	}
	if err := r.storedAt(ctx, s, version, r.Objects); err != nil {
		return err
	}
	r.add(s, "conversion-operator, trigger to pruned", took.Seconds(), "s")
	for _, percent := range []int{50, 99} {
		unit := fmt.Sprintf("ms p%d", percent)
		r.add(s, "another client alone", measure.In(time.Millisecond, percentile(alone, percent)), unit)
		r.add(s, "another client beside a migration", measure.In(time.Millisecond, percentile(beside, percent)), unit)
	}
	r.add(s, "another client beside a migration", float64(percentile(beside, 99))/float64(percentile(alone, 99)), "times p99 alone")
	return nil
}
