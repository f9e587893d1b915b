// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"context"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// definition reads a CustomResourceDefinition that is not older than what this manager has seen of it, in
// a watch or in a previous read. An API server answers that from its watch cache. For the latest, it
// would read and decode the stored one, which takes most of the time of the request.
func (r *ConversionPolicyReconciler) definition(ctx context.Context, name string) (*apiextensionsv1.CustomResourceDefinition, error) {
	crd, key := &apiextensionsv1.CustomResourceDefinition{}, client.ObjectKey{Name: name}
	watched := definitionMetadata()
	if err := r.Client.Get(ctx, key, watched); client.IgnoreNotFound(err) != nil {
		return nil, err
	}
	latest, _ := r.definitions.get(name)
	if least := newest(watched.ResourceVersion, latest); least != "" {
		err := r.readNotOlder(ctx, key, crd, least)
		if err == nil || apierrors.IsNotFound(err) || ctx.Err() != nil {
			return crd, err
		}
		crd = &apiextensionsv1.CustomResourceDefinition{}
	}
	return crd, r.Live.Get(ctx, key, crd)
}

// watchCacheWait bounds the wait for a watch cache that is late: client-go would repeat the request.
const watchCacheWait = 5 * time.Second

func (r *ConversionPolicyReconciler) readNotOlder(ctx context.Context, key client.ObjectKey, crd *apiextensionsv1.CustomResourceDefinition, version string) error {
	ctx, cancel := context.WithTimeout(ctx, watchCacheWait)
	defer cancel()
	return r.Live.Get(ctx, key, crd, &client.GetOptions{Raw: &metav1.GetOptions{ResourceVersion: version}})
}

// newest returns the newer of two resourceVersions, either of which may be empty. It returns an empty one
// if an API server has others than those of Kubernetes.
func newest(a, b string) string {
	if a == "" || b == "" {
		return a + b
	}
	order, err := resourceversion.CompareResourceVersion(a, b)
	switch {
	case err != nil:
		return ""
	case order < 0:
		return b
	}
	return a
}
