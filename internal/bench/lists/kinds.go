// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package lists

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/conversion-operator/conversion-operator/internal/bench/converters"
	"github.com/conversion-operator/conversion-operator/internal/test/scenarios"
)

// The versions of the kind: objects are stored at one, and listed at the other.
const storedVersion, otherVersion = "v1", "v2"

// kind is a subject: a kind with its conversion.
type kind struct {
	subject, group string
	// start starts its webhook in a directory; nil for strategy None.
	start func(ctx context.Context, dir string) (*converters.Served, error)
	crd   *apiextensionsv1.CustomResourceDefinition
}

// Subjects that ratios refer to.
const none, typed = "strategy None", "controller-runtime, Go types"

func (o Options) kinds() []*kind {
	return []*kind{
		{subject: none, group: "none.example.com"},
		{subject: "conversion-operator", group: "ours.example.com", start: func(ctx context.Context, dir string) (*converters.Served, error) {
			return converters.StartOurs(ctx, o.Binary, dir, "ours.example.com")
		}},
		{subject: typed, group: "typed.example.com", start: func(ctx context.Context, dir string) (*converters.Served, error) {
			return converters.StartTyped(ctx, o.Bench, dir, "typed.example.com")
		}},
	}
}

// define creates the CRD, after its webhook is ready. Without a webhook, both versions have the same
// schema: objects are pruned by none.
func (k *kind) define(ctx context.Context, writer client.Client, dir string) (stop func(), err error) {
	if k.crd, err = converters.Definition(k.group); err != nil {
		return nil, err
	}
	stop = func() {}
	if k.start == nil {
		k.crd.Spec.Versions[1].Schema = k.crd.Spec.Versions[0].Schema
		return stop, writer.Create(ctx, k.crd)
	}
	dir = filepath.Join(dir, k.group)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	served, err := k.start(ctx, dir)
	if err != nil {
		return nil, err
	}
	k.crd.Spec.Conversion = &apiextensionsv1.CustomResourceConversion{
		Strategy: apiextensionsv1.WebhookConverter,
		Webhook: &apiextensionsv1.WebhookConversion{
			ClientConfig:             &apiextensionsv1.WebhookClientConfig{URL: &served.URLs[0], CABundle: served.CABundle},
			ConversionReviewVersions: []string{"v1"},
		},
	}
	return served.Stop, writer.Create(ctx, k.crd)
}

func (k *kind) resource(version string) schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: k.group, Version: version, Resource: k.crd.Spec.Names.Plural}
}

// fill creates objects of some size in bytes.
func (k *kind) fill(ctx context.Context, objects *scenarios.Fleet, count, size int) error {
	made := make([]*unstructured.Unstructured, count)
	for i := range made {
		var err error
		if made[i], err = converters.Object(k.group, i, size); err != nil {
			return err
		}
	}
	if err := objects.Create(ctx, k.resource(storedVersion), count, func(i int) *unstructured.Unstructured { return made[i] }); err != nil {
		return fmt.Errorf("create the objects of %s: %w", k.subject, err)
	}
	return nil
}
