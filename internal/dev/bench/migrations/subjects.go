// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package migrations

import (
	"context"
	"errors"
	"fmt"
	"time"

	"golang.org/x/sync/errgroup"
	storagemigrationv1 "k8s.io/api/storagemigration/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
	"github.com/conversion-operator/conversion-operator/internal/dev/bench/measure"
	"github.com/conversion-operator/conversion-operator/internal/migration/contract"
)

// subject rewrites all objects at the new version.
type subject struct {
	name string
	run  func(ctx context.Context) error
}

func (r *run) subjects() []subject {
	ours := func(pace v1alpha1.MigrationPace) subject {
		name := "conversion-operator, " + string(pace)
		return subject{name, func(ctx context.Context) error { return r.byPolicy(ctx, name, pace) }}
	}
	patches := func(atOnce int) func(context.Context) error {
		return func(ctx context.Context) error { return r.patch(ctx, newVersion, atOnce) }
	}
	return []subject{
		ours(v1alpha1.MigrationFast),
		ours(v1alpha1.MigrationGentle),
		{"Kubernetes' StorageVersionMigration", r.inTree},
		{"patches alone, 32 at once", patches(32)},
		{"patches alone, one by one", patches(1)},
		{"read and replace, one by one", r.replace},
	}
}

// byPolicy migrates like users, by a trigger, until status.storedVersions was pruned, and adds the memory
// of the migration pod.
func (r *run) byPolicy(ctx context.Context, name string, pace v1alpha1.MigrationPace) error {
	policy := &v1alpha1.ConversionPolicy{}
	if err := r.client.Get(ctx, client.ObjectKeyFromObject(r.crd), policy); err != nil {
		return err
	}
	before := policy.DeepCopy()
	policy.Spec.Migration.Mode = v1alpha1.MigrationOnTrigger
	policy.Spec.Migration.Pace = pace
	policy.Spec.Migration.Trigger = time.Now().Format(time.RFC3339)
	if err := r.client.Patch(ctx, policy, client.MergeFrom(before)); err != nil {
		return err
	}
	var used measure.Usage
	err := r.await(ctx, 20*time.Minute, func(_ *apiextensionsv1.CustomResourceDefinition, now *v1alpha1.ConversionPolicy) bool {
		if found, err := measure.UsageOf("conversion-operator " + contract.Command); err == nil && found.Peak > 0 {
			used = found
		}
		last := now.Status.Migration
		return last != nil && last.Trigger == policy.Spec.Migration.Trigger && last.State != v1alpha1.MigrationRunning && now.Status.MigrationEvidence != nil
	})
	r.add(name, used.Peak, "MiB at the peak")
	r.add(name, used.Anonymous, "MiB not from files")
	return err
}

// patch is the limit: only patches, atOnce in parallel.
func (r *run) patch(ctx context.Context, version string, atOnce int) error {
	objects := &metav1.PartialObjectMetadataList{}
	objects.SetGroupVersionKind(r.at(version))
	return r.rewrite(ctx, objects, atOnce, func(ctx context.Context, object client.Object) error {
		body := fmt.Appendf(nil, `{"metadata":{"resourceVersion":%q}}`, object.GetResourceVersion())
		return r.client.Patch(ctx, object, client.RawPatch(types.MergePatchType, body))
	})
}

// replace lists objects and updates them unchanged, as many tools do.
func (r *run) replace(ctx context.Context) error {
	objects := &unstructured.UnstructuredList{}
	objects.SetGroupVersionKind(r.at(newVersion))
	return r.rewrite(ctx, objects, 1, func(ctx context.Context, object client.Object) error { return r.client.Update(ctx, object) })
}

// rewrite writes all objects of a kind, whose list is empty, page by page, atOnce in parallel. A conflict means
// that another client has rewritten the object.
func (r *run) rewrite(ctx context.Context, empty client.ObjectList, atOnce int, write func(context.Context, client.Object) error) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(atOnce)
	next := ""
	for {
		page := empty.DeepCopyObject().(client.ObjectList)
		err := r.client.List(ctx, page, client.InNamespace(namespace), client.Limit(pageSize), client.Continue(next))
		objects, extractErr := apimeta.ExtractList(page)
		if err = errors.Join(err, extractErr); err != nil {
			return errors.Join(err, group.Wait())
		}
		for _, object := range objects {
			group.Go(func() error {
				if err := write(ctx, object.(client.Object)); !apierrors.IsConflict(err) {
					return err
				}
				return nil
			})
		}
		if next = page.GetContinue(); next == "" {
			return group.Wait()
		}
	}
}

// inTree lets kube-controller-manager migrate. It reads objects from its own cache, and so starts
// with a delay.
func (r *run) inTree(ctx context.Context) error {
	wanted := &storagemigrationv1.StorageVersionMigration{
		ObjectMeta: metav1.ObjectMeta{GenerateName: "bench-"},
		Spec: storagemigrationv1.StorageVersionMigrationSpec{
			Resource: metav1.GroupResource{Group: r.group, Resource: r.crd.Spec.Names.Plural},
		},
	}
	if err := r.client.Create(ctx, wanted); err != nil {
		return err
	}
	return wait.PollUntilContextCancel(ctx, pollPeriod, true, func(ctx context.Context) (bool, error) {
		if err := r.client.Get(ctx, client.ObjectKeyFromObject(wanted), wanted); err != nil {
			return false, err
		}
		if failed := apimeta.FindStatusCondition(wanted.Status.Conditions, string(storagemigrationv1.MigrationFailed)); failed != nil && failed.Status == metav1.ConditionTrue {
			return false, errors.New(failed.Message)
		}
		return apimeta.IsStatusConditionTrue(wanted.Status.Conditions, string(storagemigrationv1.MigrationSucceeded)), nil
	})
}

// beside does something while another client reads and writes an object in turn, and returns how long its
// requests took.
func (r *run) beside(ctx context.Context, do func(context.Context) error) (times []time.Duration, err error) {
	const pace = 20 * time.Millisecond
	requests, stop := context.WithCancel(ctx)
	var other errgroup.Group
	other.Go(func() error {
		for i := 0; ; i++ {
			began := time.Now()
			err := r.request(requests, i)
			switch took := time.Since(began); {
			case requests.Err() != nil:
				return nil //nolint:nilerr // it was asked to end
			case err != nil:
				return err
			default:
				times = append(times, took)
				_ = measure.Wait(requests, max(0, pace-took)) // the next request fails too
			}
		}
	})
	err = do(ctx)
	stop()
	return times, errors.Join(err, other.Wait())
}

// request reads, or writes, an object that migrations rewrite too.
func (r *run) request(ctx context.Context, i int) error {
	object := &unstructured.Unstructured{}
	object.SetGroupVersionKind(r.at(newVersion))
	object.SetNamespace(namespace)
	object.SetName("task-0000")
	if i%2 == 0 {
		return r.client.Get(ctx, client.ObjectKeyFromObject(object), object)
	}
	return r.client.Patch(ctx, object, client.RawPatch(types.MergePatchType, fmt.Appendf(nil, `{"metadata":{"labels":{"turn":"%d"}}}`, i)))
}
