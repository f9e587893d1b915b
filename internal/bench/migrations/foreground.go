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

// pace is the time between two requests of the other client.
const pace = 20 * time.Millisecond

// foreground reads and writes an object in turn until stop, which returns the sorted durations of
// the requests.
func (c *cluster) foreground(ctx context.Context, s setup) (stop func() ([]time.Duration, error)) {
	ctx, cancel := context.WithCancel(ctx)
	var times []time.Duration
	var failed error
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for i := 0; ; i++ {
			began := time.Now()
			err := c.request(ctx, s, i)
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
		return times, failed
	}
}

// request reads, or writes, an object that migrations rewrite too.
func (c *cluster) request(ctx context.Context, s setup, i int) error {
	objects, name := c.objects.Resource(s.at(newVersion)).Namespace(namespace), s.object(0).GetName()
	if i%2 == 0 {
		_, err := objects.Get(ctx, name, metav1.GetOptions{})
		return err
	}
	body := fmt.Appendf(nil, `{"metadata":{"labels":{"turn":"%d"}}}`, i)
	_, err := objects.Patch(ctx, name, types.MergePatchType, body, metav1.PatchOptions{})
	return err
}

// byPolicy migrates like users, by a trigger, and returns the time until status.storedVersions was
// pruned.
func (c *cluster) byPolicy(ctx context.Context, s setup, pace v1alpha1.MigrationPace) (time.Duration, error) {
	policy := &v1alpha1.ConversionPolicy{}
	if err := c.client.Get(ctx, client.ObjectKey{Name: s.definitionName()}, policy); err != nil {
		return 0, err
	}
	began := time.Now()
	before := policy.DeepCopy()
	policy.Spec.Migration.Mode = v1alpha1.MigrationOnTrigger
	policy.Spec.Migration.Pace = pace
	policy.Spec.Migration.Trigger = began.Format(time.RFC3339)
	if err := c.client.Patch(ctx, policy, client.MergeFrom(before)); err != nil {
		return 0, err
	}
	for {
		err := c.await(ctx, s, func(_ *apiextensionsv1.CustomResourceDefinition, now *v1alpha1.ConversionPolicy) bool {
			last := now.Status.Migration
			return last != nil && last.Trigger == policy.Spec.Migration.Trigger && last.State != v1alpha1.MigrationRunning && now.Status.MigrationEvidence != nil
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

// rewriter rewrites objects while another client sends requests.
type rewriter struct {
	name string
	run  func(ctx context.Context, s setup) error
}

func (r *suite) rewriters() []rewriter {
	var all []rewriter
	for _, pace := range []v1alpha1.MigrationPace{v1alpha1.MigrationGentle, v1alpha1.MigrationFast} {
		name := "conversion-operator, " + string(pace)
		all = append(all, rewriter{name, func(ctx context.Context, s setup) error {
			took, err := r.byPolicy(ctx, s, pace)
			r.add(s, name, took.Seconds(), "s from trigger to pruned")
			return err
		}})
	}
	return append(all,
		rewriter{"Kubernetes' StorageVersionMigration", func(ctx context.Context, s setup) error {
			_, err := r.inTree(ctx, s)
			return err
		}},
		rewriter{"patches alone, one by one", func(ctx context.Context, s setup) error {
			return r.patch(ctx, s, newVersion, 1)
		}})
}

// beside measures the requests of another client alone, and then while objects are rewritten.
func (r *suite) beside(ctx context.Context, s setup) error {
	r.tell("%s: another client alone, for %s", s.name, r.Alone)
	stop := r.foreground(ctx, s)
	ended := pause(ctx, r.Alone)
	alone, err := stop()
	if err := errors.Join(ended, err); err != nil {
		return err
	}
	r.latencies(s, "nobody", alone, alone)
	for _, with := range r.rewriters() {
		if err := r.toMigrate(ctx, s, r.Objects); err != nil {
			return err
		}
		stop := r.foreground(ctx, s)
		err = with.run(ctx, s)
		times, failed := stop()
		if err := errors.Join(err, failed); err != nil {
			return fmt.Errorf("beside %s: %w", with.name, err)
		}
		if err := r.storedAt(ctx, s, newVersion, r.Objects); err != nil {
			return err
		}
		r.latencies(s, with.name, times, alone)
	}
	return nil
}

func (r *suite) latencies(s setup, beside string, times, alone []time.Duration) {
	subject := "another client beside " + beside
	p99 := measure.Quantile(times, 0.99)
	r.add(s, subject, measure.In(time.Millisecond, measure.Quantile(times, 0.5)), "ms p50")
	r.add(s, subject, measure.In(time.Millisecond, p99), "ms p99")
	ratio := measure.In(measure.Quantile(alone, 0.99), p99)
	r.add(s, subject, ratio, "times p99 alone")
	r.tell("%s: %s: %.2f times p99 alone", s.name, subject, ratio)
}
