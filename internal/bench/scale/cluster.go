// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package scale

import (
	"context"
	"errors"
	"os"
	"path/filepath"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
	watchtools "k8s.io/client-go/tools/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/conversion-operator/conversion-operator/internal/crds"
	"github.com/conversion-operator/conversion-operator/internal/test/testenv"
)

// system is the operator's namespace.
const system = "conversion-system"

// writesAtOnce is a bound for an API server on few processors.
const writesAtOnce = 8

// cluster is a kube-apiserver with etcd, without controllers.
type cluster struct {
	server     *testenv.Server
	client     client.WithWatch
	kubeconfig string
}

// start starts a cluster with the binaries in KUBEBUILDER_ASSETS.
func start(ctx context.Context, dir string) (*cluster, error) {
	server, err := testenv.Start(testenv.Options{
		CRDs: []string{testenv.OperatorCRDs, "config/crd/conversionprobes.yaml"}, Arguments: testenv.ServiceCalls(),
	})
	if err != nil {
		return nil, err
	}
	c := &cluster{server: server, client: server.Client, kubeconfig: filepath.Join(dir, "kubeconfig")}
	err = os.WriteFile(c.kubeconfig, server.KubeConfig, 0o600)
	if err == nil {
		err = c.client.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: system}})
	}
	if err != nil {
		return nil, errors.Join(err, server.Stop())
	}
	return c, nil
}

// define creates CRDs, and waits until all of them are served. A list of all with their schemas would take an
// API server on a busy machine longer than it may take for a request.
func (c *cluster) define(ctx context.Context, definitions []*apiextensionsv1.CustomResourceDefinition) error {
	watching, err := c.follow(ctx, &apiextensionsv1.CustomResourceDefinitionList{})
	if err != nil {
		return err
	}
	defer watching.Stop()
	missing := map[string]bool{}
	for _, crd := range definitions {
		missing[crd.Name] = true
	}
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error {
		return each(ctx, definitions, func(ctx context.Context, crd *apiextensionsv1.CustomResourceDefinition) error {
			return c.client.Create(ctx, crd.DeepCopy())
		})
	})
	group.Go(func() error {
		return until(ctx, watching, func(crd *apiextensionsv1.CustomResourceDefinition) bool {
			if crds.Condition(crd, apiextensionsv1.Established) {
				delete(missing, crd.Name)
			}
			return len(missing) == 0
		})
	})
	return group.Wait()
}

// follow watches the objects that change from now on. If the API server ends the watch, as it does if its
// client is late on a busy machine, it is continued.
func (c *cluster) follow(ctx context.Context, objects client.ObjectList) (watch.Interface, error) {
	if err := c.client.List(ctx, objects, client.Limit(1)); err != nil {
		return nil, err
	}
	return watchtools.NewRetryWatcherWithContext(ctx, objects.GetResourceVersion(), &cache.ListWatch{
		WatchFuncWithContext: func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
			return c.client.Watch(ctx, objects, &client.ListOptions{Raw: &options})
		},
	})
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

var errWatchEnded = errors.New("the API server has ended a watch")

// until reads the objects of a watch until one satisfies done.
func until[T client.Object](ctx context.Context, watching watch.Interface, done func(T) bool) error {
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case event, open := <-watching.ResultChan():
			if !open {
				return errWatchEnded
			}
			if object, is := event.Object.(T); is && done(object) {
				return nil
			}
		}
	}
}
