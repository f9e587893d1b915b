// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package scale

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
	"github.com/conversion-operator/conversion-operator/internal/plan/names"
)

// Floors are what API servers need by themselves, so that no operator can be faster.

// nowhere is a conversion webhook at a port where nothing listens. A CRD that names it shows by
// failing requests that the API server uses it.
func nowhere(path string) *apiextensionsv1.CustomResourceConversion {
	return &apiextensionsv1.CustomResourceConversion{
		Strategy: apiextensionsv1.WebhookConverter,
		Webhook: &apiextensionsv1.WebhookConversion{
			ClientConfig:             &apiextensionsv1.WebhookClientConfig{URL: new("https://127.0.0.1:1/" + path)},
			ConversionReviewVersions: []string{"v1"},
		},
	}
}

// pointAt writes spec.conversion of a CRD alone.
func (c *cluster) pointAt(ctx context.Context, crd *apiextensionsv1.CustomResourceDefinition, conversion *apiextensionsv1.CustomResourceConversion) error {
	changed := crd.DeepCopy()
	changed.Spec.Conversion = conversion
	return c.client.Patch(ctx, changed, client.MergeFrom(crd))
}

// barePatches writes spec.conversion of CRDs, some in parallel. Their objects cannot be converted any
// more.
func (c *cluster) barePatches(ctx context.Context, definitions []*apiextensionsv1.CustomResourceDefinition) error {
	patch, err := json.Marshal([]map[string]any{{"op": "replace", "path": "/spec/conversion", "value": nowhere("patched")}})
	if err != nil {
		return err
	}
	return each(ctx, definitions, func(ctx context.Context, crd *apiextensionsv1.CustomResourceDefinition) error {
		return c.client.Patch(ctx, definitionNamed(crd.Name), client.RawPatch(types.JSONPatchType, patch))
	})
}

// smallest does what the smallest possible operator would do to activate policies with the proofs that
// this one wants: it stores all rulesets at once, reads each CRD once, has each pod convert a canary
// object in each direction, lists objects once, writes the CRD once, and writes each status once. It
// includes the creation of the policies.
func (s *suite) smallest(ctx context.Context, definitions []*apiextensionsv1.CustomResourceDefinition) error {
	if err := s.copyRulesets(ctx); err != nil {
		return err
	}
	reader, err := s.cluster.paths()
	if err != nil {
		return err
	}
	return each(ctx, definitions, func(ctx context.Context, crd *apiextensionsv1.CustomResourceDefinition) error {
		active := &v1alpha1.ConversionPolicy{}
		if err := s.cluster.client.Get(ctx, client.ObjectKeyFromObject(crd), active); err != nil {
			return err
		}
		policy := s.policy(crd)
		policy.Name = "floor-" + crd.Name // the manager does not run, and has a finalizer on the other one
		if err := s.cluster.client.Create(ctx, policy); err != nil {
			return err
		}
		current := definitionNamed(crd.Name)
		if err := s.cluster.client.Get(ctx, client.ObjectKeyFromObject(crd), current); err != nil {
			return err
		}
		if err := s.convertBy(ctx, crd, current); err != nil {
			return err
		}
		if err := reader.Get().AbsPath("apis", crd.Spec.Group, newVersion, crd.Spec.Names.Plural).Do(ctx).Error(); err != nil {
			return err
		}
		if err := s.cluster.pointAt(ctx, current, nowhere("smallest")); err != nil {
			return err
		}
		base := policy.DeepCopy()
		policy.Status = active.Status
		return s.cluster.client.Status().Patch(ctx, policy, client.MergeFrom(base))
	})
}

// copyRulesets writes all rulesets that are stored, in as many ConfigMaps.
func (s *suite) copyRulesets(ctx context.Context) error {
	stored := &corev1.ConfigMapList{}
	if err := s.cluster.client.List(ctx, stored, client.InNamespace(system), client.MatchingLabels{names.ManagedByLabel: names.ManagedBy}); err != nil {
		return err
	}
	for i := range stored.Items {
		written := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: system, Name: "floor-" + stored.Items[i].Name}, BinaryData: stored.Items[i].BinaryData}
		if err := s.cluster.client.Create(ctx, written); err != nil {
			return err
		}
	}
	return nil
}

func definitionNamed(name string) *apiextensionsv1.CustomResourceDefinition {
	return &apiextensionsv1.CustomResourceDefinition{ObjectMeta: metav1.ObjectMeta{Name: name}}
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
	if err := c.create(ctx, at(crd, newVersion)); err != nil {
		return found, err
	}
	for range times {
		current := &apiextensionsv1.CustomResourceDefinition{}
		if err := c.client.Get(ctx, client.ObjectKeyFromObject(crd), current); err != nil {
			return found, err
		}
		began := time.Now()
		if err := c.pointAt(ctx, current, nowhere("convert")); err != nil {
			return found, err
		}
		found.written = append(found.written, time.Since(began))
		if err := c.read(ctx, at(crd, oldVersion), false); err != nil {
			return found, err
		}
		found.used = append(found.used, time.Since(began))
		current.Spec.Conversion = nowhere("convert")
		if err := c.pointAt(ctx, current, &apiextensionsv1.CustomResourceConversion{Strategy: apiextensionsv1.NoneConverter}); err != nil {
			return found, err
		}
		if err := c.read(ctx, at(crd, oldVersion), true); err != nil {
			return found, err
		}
	}
	return found, nil
}

// create creates an object as soon as discovery, which follows the CRD, names its kind.
func (c *cluster) create(ctx context.Context, object *unstructured.Unstructured) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for {
		err := c.client.Create(ctx, object)
		if !apimeta.IsNoMatchError(err) || ctx.Err() != nil {
			return err
		}
	}
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
	anything := &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{Type: "object", XPreserveUnknownFields: new(true)}}
	crd.Spec.Versions = []apiextensionsv1.CustomResourceDefinitionVersion{
		{Name: newVersion, Served: true, Storage: true, Schema: anything}, {Name: oldVersion, Served: true, Schema: anything}}
	return crd
}

func at(crd *apiextensionsv1.CustomResourceDefinition, version string) *unstructured.Unstructured {
	object := &unstructured.Unstructured{}
	object.SetAPIVersion(crd.Spec.Group + "/" + version)
	object.SetKind(crd.Spec.Names.Kind)
	object.SetName("one")
	return object
}
