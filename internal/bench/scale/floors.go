// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package scale

import (
	"context"
	"errors"
	"fmt"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Floors are what API servers need by themselves, so that no operator can be faster.

// nowhere is a conversion webhook at a port where nothing listens. A CRD that names it shows by
// failing requests that the API server uses it.
var nowhere = &apiextensionsv1.CustomResourceConversion{
	Strategy: apiextensionsv1.WebhookConverter,
	Webhook: &apiextensionsv1.WebhookConversion{
		ClientConfig:             &apiextensionsv1.WebhookClientConfig{URL: new("https://127.0.0.1:1/convert")},
		ConversionReviewVersions: []string{"v1"},
	},
}

// pointAt writes spec.conversion of a CRD alone.
func (c *cluster) pointAt(ctx context.Context, crd *apiextensionsv1.CustomResourceDefinition, conversion *apiextensionsv1.CustomResourceConversion) error {
	changed := crd.DeepCopy()
	changed.Spec.Conversion = conversion
	return c.client.Patch(ctx, changed, client.MergeFrom(crd))
}

// barePatches writes spec.conversion of CRDs, some in parallel, and returns the time until all are
// written. Their objects cannot be converted any more.
func (c *cluster) barePatches(ctx context.Context, definitions []*apiextensionsv1.CustomResourceDefinition) (time.Duration, error) {
	current := make([]*apiextensionsv1.CustomResourceDefinition, len(definitions))
	for i, crd := range definitions {
		current[i] = &apiextensionsv1.CustomResourceDefinition{}
		if err := c.client.Get(ctx, client.ObjectKeyFromObject(crd), current[i]); err != nil {
			return 0, err
		}
	}
	began := time.Now()
	err := each(ctx, current, func(ctx context.Context, crd *apiextensionsv1.CustomResourceDefinition) error {
		return c.pointAt(ctx, crd, nowhere)
	})
	return time.Since(began), err
}

// propagation is how long the writes of spec.conversion of one CRD take, and how long after the start of
// a write the API server uses it.
type propagation struct{ written, used []time.Duration }

// propagate measures with a CRD of its own, with one object.
func (c *cluster) propagate(ctx context.Context, times int) (found propagation, err error) {
	crd := probed()
	if err := c.define(ctx, []*apiextensionsv1.CustomResourceDefinition{crd}); err != nil {
		return found, err
	}
	defer func() { err = errors.Join(err, c.client.Delete(ctx, crd)) }()
	object := at(crd, newVersion)
	if err := c.client.Create(ctx, object); err != nil {
		return found, err
	}
	for range times {
		current := &apiextensionsv1.CustomResourceDefinition{}
		if err := c.client.Get(ctx, client.ObjectKeyFromObject(crd), current); err != nil {
			return found, err
		}
		began := time.Now()
		if err := c.pointAt(ctx, current, nowhere); err != nil {
			return found, err
		}
		found.written = append(found.written, time.Since(began))
		if err := c.read(ctx, at(crd, oldVersion), false); err != nil {
			return found, err
		}
		found.used = append(found.used, time.Since(began))
		current.Spec.Conversion = nowhere
		if err := c.pointAt(ctx, current, &apiextensionsv1.CustomResourceConversion{Strategy: apiextensionsv1.NoneConverter}); err != nil {
			return found, err
		}
		if err := c.read(ctx, at(crd, oldVersion), true); err != nil {
			return found, err
		}
	}
	return found, nil
}

// read reads an object until that succeeds, or until it does not.
func (c *cluster) read(ctx context.Context, object *unstructured.Unstructured, succeeds bool) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for {
		err := c.client.Get(ctx, client.ObjectKeyFromObject(object), object)
		if ctx.Err() != nil {
			return fmt.Errorf("the API server does not use the changed spec.conversion: %w", err)
		}
		if (err == nil) == succeeds {
			return nil
		}
	}
}

// probed is a CRD with two versions and any fields.
func probed() *apiextensionsv1.CustomResourceDefinition {
	crd := &apiextensionsv1.CustomResourceDefinition{ObjectMeta: metav1.ObjectMeta{Name: "floors.scale.example.com"}}
	crd.Spec.Group, crd.Spec.Scope = "scale.example.com", apiextensionsv1.ClusterScoped
	crd.Spec.Names = apiextensionsv1.CustomResourceDefinitionNames{Plural: "floors", Singular: "floor", Kind: "Floor", ListKind: "FloorList"}
	schema := &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{Type: "object", XPreserveUnknownFields: new(true)}}
	crd.Spec.Versions = []apiextensionsv1.CustomResourceDefinitionVersion{
		{Name: newVersion, Served: true, Storage: true, Schema: schema}, {Name: oldVersion, Served: true, Schema: schema}}
	return crd
}

func at(crd *apiextensionsv1.CustomResourceDefinition, version string) *unstructured.Unstructured {
	object := &unstructured.Unstructured{}
	object.SetAPIVersion(crd.Spec.Group + "/" + version)
	object.SetKind(crd.Spec.Names.Kind)
	object.SetName("one")
	return object
}
