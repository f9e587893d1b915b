// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package scale

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
	"github.com/conversion-operator/conversion-operator/internal/crds"
	"github.com/conversion-operator/conversion-operator/internal/scheme"
)

// system is the operator's namespace.
const system = "conversion-system"

// Bounds for an API server on few processors.
const (
	startTimeout = 2 * time.Minute
	writesAtOnce = 8
	pollPeriod   = 200 * time.Millisecond
)

// cluster is a kube-apiserver with etcd, without controllers.
type cluster struct {
	environment *envtest.Environment
	client      client.WithWatch
	kubeconfig  string
}

// start starts a cluster with the binaries in KUBEBUILDER_ASSETS.
func start(ctx context.Context, dir string) (*cluster, error) {
	if os.Getenv("KUBEBUILDER_ASSETS") == "" {
		return nil, errors.New("KUBEBUILDER_ASSETS is not set: run make bench-scale")
	}
	c := &cluster{
		environment: &envtest.Environment{
			CRDDirectoryPaths: []string{"config/crd/bases"}, ErrorIfCRDPathMissing: true, ControlPlaneStartTimeout: startTimeout,
		},
		kubeconfig: filepath.Join(dir, "kubeconfig"),
	}
	config, err := c.environment.Start()
	if err != nil {
		return nil, err
	}
	if err := c.fill(ctx, config); err != nil {
		return nil, errors.Join(err, c.environment.Stop())
	}
	return c, nil
}

func (c *cluster) fill(ctx context.Context, config *rest.Config) error {
	config.QPS = -1
	var err error
	if c.client, err = client.NewWithWatch(config, client.Options{Scheme: scheme.New()}); err != nil {
		return err
	}
	if err := os.WriteFile(c.kubeconfig, c.environment.KubeConfig, 0o600); err != nil {
		return err
	}
	return c.client.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: system}})
}

// define creates CRDs, and waits until all of them are served.
func (c *cluster) define(ctx context.Context, definitions []*apiextensionsv1.CustomResourceDefinition) error {
	if err := each(ctx, definitions, func(ctx context.Context, crd *apiextensionsv1.CustomResourceDefinition) error {
		return c.client.Create(ctx, crd.DeepCopy())
	}); err != nil {
		return err
	}
	return wait.PollUntilContextCancel(ctx, pollPeriod, true, func(ctx context.Context) (bool, error) {
		list := &apiextensionsv1.CustomResourceDefinitionList{}
		if err := c.client.List(ctx, list); err != nil {
			return false, err
		}
		for i := range list.Items {
			if !crds.Condition(&list.Items[i], apiextensionsv1.Established) {
				return false, nil
			}
		}
		return true, nil
	})
}

// activate creates a policy for each CRD, and waits until all are active.
func (c *cluster) activate(ctx context.Context, definitions []*apiextensionsv1.CustomResourceDefinition) error {
	err := each(ctx, definitions, func(ctx context.Context, crd *apiextensionsv1.CustomResourceDefinition) error {
		return c.client.Create(ctx, policy(crd.Name))
	})
	if err != nil {
		return err
	}
	var last string
	err = wait.PollUntilContextCancel(ctx, pollPeriod, true, func(ctx context.Context) (bool, error) {
		list := &v1alpha1.ConversionPolicyList{}
		if err := c.client.List(ctx, list); err != nil {
			return false, err
		}
		for i := range list.Items {
			if !apimeta.IsStatusConditionTrue(list.Items[i].Status.Conditions, v1alpha1.ConversionConfiguredCondition) {
				last = readyMessage(&list.Items[i])
				return false, nil
			}
		}
		return true, nil
	})
	if err != nil {
		return fmt.Errorf("not all policies are active: %w; %s", err, last)
	}
	return nil
}

func readyMessage(policy *v1alpha1.ConversionPolicy) string {
	ready := apimeta.FindStatusCondition(policy.Status.Conditions, v1alpha1.ReadyCondition)
	if ready == nil {
		return policy.Name + " has no status"
	}
	return policy.Name + ": " + ready.Reason + ": " + ready.Message
}

// policy has no rules, because both versions are the same: the benchmark measures compiling schemas
// and running converters, not rules.
func policy(name string) *v1alpha1.ConversionPolicy {
	return &v1alpha1.ConversionPolicy{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: v1alpha1.ConversionPolicySpec{
			Converter: v1alpha1.Converter{Declarative: &v1alpha1.DeclarativeConverter{
				Hub: newVersion, Spokes: []v1alpha1.Spoke{{Version: oldVersion}},
			}},
			// The API server of a control plane alone cannot reach Services.
			Verification: v1alpha1.Verification{APIServerProbe: new(bool)},
			Migration:    v1alpha1.Migration{Mode: v1alpha1.MigrationNever},
		},
	}
}

// versions returns the resourceVersion of each CRD by name, to detect writes.
func (c *cluster) versions(ctx context.Context) (map[string]string, error) {
	list := &metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(apiextensionsv1.SchemeGroupVersion.WithKind("CustomResourceDefinitionList"))
	if err := c.client.List(ctx, list); err != nil {
		return nil, err
	}
	found := map[string]string{}
	for i := range list.Items {
		found[list.Items[i].Name] = list.Items[i].ResourceVersion
	}
	return found, nil
}

// each calls do for all elements, some in parallel.
func each[T any](ctx context.Context, all []T, do func(context.Context, T) error) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(writesAtOnce)
	for _, one := range all {
		group.Go(func() error { return do(ctx, one) })
	}
	return group.Wait()
}
