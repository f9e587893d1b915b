// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package migrations

import (
	"context"
	"fmt"
	"time"

	"golang.org/x/sync/errgroup"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/config"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
	"github.com/conversion-operator/conversion-operator/internal/crds"
	"github.com/conversion-operator/conversion-operator/internal/scheme"
	"github.com/conversion-operator/conversion-operator/internal/test/scenarios"
)

const (
	// namespace has all objects.
	namespace    = "default"
	pollPeriod   = 200 * time.Millisecond
	writesAtOnce = 16
	// patience bounds waits that usually take seconds.
	patience = 2 * time.Minute
	// idleTime is the time for writes at the previous version to drain, and for the cluster to become
	// idle.
	idleTime = 5 * time.Second
)

// cluster is the cluster of the current kubeconfig.
type cluster struct {
	client   client.Client
	objects  dynamic.Interface
	metadata metadata.Interface
}

func connect() (*cluster, error) {
	settings, err := config.GetConfig()
	if err != nil {
		return nil, err
	}
	settings.QPS = -1
	settings.WarningHandlerWithContext = rest.NoWarnings{}
	c := &cluster{}
	if c.client, err = client.New(settings, client.Options{Scheme: scheme.New()}); err != nil {
		return nil, err
	}
	if c.objects, err = dynamic.NewForConfig(settings); err != nil {
		return nil, err
	}
	c.metadata, err = metadata.NewForConfig(settings)
	return c, err
}

func (s setup) at(version string) schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: s.group, Version: version, Resource: plural}
}

// prepare creates a CRD and its policy, waits until it converts, and creates the objects.
func (c *cluster) prepare(ctx context.Context, s setup, count int) error {
	if err := c.client.Create(ctx, s.definition()); err != nil {
		return err
	}
	if err := c.client.Create(ctx, s.policy()); err != nil {
		return err
	}
	err := c.await(ctx, s, func(crd *apiextensionsv1.CustomResourceDefinition, policy *v1alpha1.ConversionPolicy) bool {
		return crds.Condition(crd, apiextensionsv1.Established) &&
			apimeta.IsStatusConditionTrue(policy.Status.Conditions, v1alpha1.ConversionConfiguredCondition)
	})
	if err != nil {
		return err
	}
	if err := pause(ctx, idleTime); err != nil {
		return err
	}
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(writesAtOnce)
	for i := range count {
		group.Go(func() error {
			_, err := c.objects.Resource(s.at(oldVersion)).Namespace(namespace).Create(ctx, s.object(i), metav1.CreateOptions{})
			return err
		})
	}
	return group.Wait()
}

// await polls until wanted accepts the CRD and its policy.
func (c *cluster) await(
	ctx context.Context, s setup, wanted func(*apiextensionsv1.CustomResourceDefinition, *v1alpha1.ConversionPolicy) bool,
) error {
	crd, policy := &apiextensionsv1.CustomResourceDefinition{}, &v1alpha1.ConversionPolicy{}
	err := wait.PollUntilContextTimeout(ctx, pollPeriod, patience, true, func(ctx context.Context) (bool, error) {
		key := client.ObjectKey{Name: s.definitionName()}
		if err := c.client.Get(ctx, key, crd); err != nil {
			return false, err
		}
		if err := c.client.Get(ctx, key, policy); err != nil {
			return false, err
		}
		return wanted(crd, policy), nil
	})
	if err != nil {
		return fmt.Errorf("%s: %w; its policy says %v", s.definitionName(), err, policy.Status.Conditions)
	}
	return nil
}

// toMigrate stores all objects at the old version, and then makes the new one the storage version.
// Every subject migrates in this direction, as users do. The other direction would cost less:
// managedFields name the old version, to which the API server converts an object when it is written
// at the new one.
func (c *cluster) toMigrate(ctx context.Context, s setup, count int) error {
	back, err := c.store(ctx, s, oldVersion)
	if err != nil {
		return err
	}
	if back {
		if err := c.patch(ctx, s, oldVersion, writesAtOnce); err != nil {
			return err
		}
	}
	if err := c.storedAt(ctx, s, oldVersion, count); err != nil {
		return err
	}
	_, err = c.store(ctx, s, newVersion)
	return err
}

// store makes a version the storage version and, if it was another one, waits until writes at that
// have drained.
func (c *cluster) store(ctx context.Context, s setup, version string) (changed bool, err error) {
	crd := &apiextensionsv1.CustomResourceDefinition{}
	if err := c.client.Get(ctx, client.ObjectKey{Name: s.definitionName()}, crd); err != nil {
		return false, err
	}
	if crds.StorageVersion(crd) == version {
		return false, nil
	}
	before := crd.DeepCopy()
	for i := range crd.Spec.Versions {
		crd.Spec.Versions[i].Storage = crd.Spec.Versions[i].Name == version
	}
	if err := c.client.Patch(ctx, crd, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})); err != nil {
		return false, err
	}
	return true, pause(ctx, idleTime)
}

func pause(ctx context.Context, span time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(span):
		return nil
	}
}

// storedAt checks the stored versions in etcd.
func (c *cluster) storedAt(ctx context.Context, s setup, version string, count int) error {
	stored, err := scenarios.ReadStored(ctx, s.group, plural)
	if err != nil {
		return err
	}
	if stored == nil {
		return fmt.Errorf("etcd cannot be reached: %s is not set", scenarios.EndpointVariable)
	}
	if found := stored.Versions[s.group+"/"+version]; found != count || len(stored.Versions) != 1 {
		return fmt.Errorf("not all of %d objects are stored at %s: %s", count, version, stored)
	}
	return nil
}

func (c *cluster) pages(ctx context.Context, s setup, version string, do func([]metav1.PartialObjectMetadata) error) error {
	options := metav1.ListOptions{Limit: 500}
	for {
		page, err := c.metadata.Resource(s.at(version)).Namespace(namespace).List(ctx, options)
		if err != nil {
			return err
		}
		if err := do(page.Items); err != nil {
			return err
		}
		if options.Continue = page.Continue; options.Continue == "" {
			return nil
		}
	}
}
