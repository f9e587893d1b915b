// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"slices"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
	"github.com/conversion-operator/conversion-operator/internal/pki"
)

// Actions of authors and installers of CustomResourceDefinitions.

//go:embed manifests/crd.yaml
var definitionManifest []byte

// author is the field manager of CRD authors.
const author = client.FieldOwner("author")

// nothing lets a step have only the writes of clients.
func (p *player) nothing(context.Context, step) error { return nil }

// begin creates a policy, and then the CRD with one version.
func (p *player) begin(ctx context.Context, s step) error {
	if err := p.applyPolicy(ctx, s); err != nil {
		return err
	}
	return p.editDefinition(ctx, s)
}

// editDefinition applies the CRD that the model expects, without spec.conversion. By now, the
// author's manifest contains the policy's changes to spec.versions.
func (p *player) editDefinition(ctx context.Context, s step) error {
	return p.eventually(ctx, "the definition is applied", func(ctx context.Context) error {
		crd := &apiextensionsv1.CustomResourceDefinition{}
		if _, err := p.find(ctx, client.ObjectKey{Name: crdOf(s.Subject)}, crd); err != nil {
			return err
		}
		definition, err := definitionOf(s.subject(), warnings(crd))
		if err != nil {
			return err
		}
		return p.cluster.Apply(ctx, client.ApplyConfigurationFromUnstructured(definition), author, client.ForceOwnership)
	})
}

// warnings returns the deprecation warnings of a CRD by version.
func warnings(crd *apiextensionsv1.CustomResourceDefinition) map[string]string {
	all := map[string]string{}
	for _, version := range crd.Spec.Versions {
		if version.DeprecationWarning != nil {
			all[version.Name] = *version.DeprecationWarning
		}
	}
	return all
}

// definitionOf returns the manifest of a subject's CRD.
func definitionOf(s subject, warnings map[string]string) (*unstructured.Unstructured, error) {
	definition := &unstructured.Unstructured{}
	if err := yaml.Unmarshal(definitionManifest, &definition.Object); err != nil {
		return nil, err
	}
	definition.SetName(crdOf(s.Name))
	all, _, err := unstructured.NestedSlice(definition.Object, "spec", "versions")
	if err != nil {
		return nil, err
	}
	var has []any
	for _, each := range all {
		version, ok := each.(map[string]any)
		name, isText := version["name"].(string)
		if !ok || !isText || !slices.Contains(s.Versions, name) {
			continue
		}
		version["served"], version["storage"] = slices.Contains(s.Served, name), name == s.Storage
		if slices.Contains(s.Deprecated, name) {
			version["deprecated"] = true
			put(version, "deprecationWarning", warnings[name])
		}
		has = append(has, version)
	}
	return definition, errors.Join(
		unstructured.SetNestedField(definition.Object, s.group(), "spec", "group"),
		unstructured.SetNestedSlice(definition.Object, has, "spec", "versions"))
}

// end deletes a CRD with all its objects, and then the policy.
func (p *player) end(ctx context.Context, s step) error {
	p.ledger.forget(s.Subject)
	for _, object := range []client.Object{
		&apiextensionsv1.CustomResourceDefinition{ObjectMeta: metav1.ObjectMeta{Name: crdOf(s.Subject)}},
		&v1alpha1.ConversionPolicy{ObjectMeta: metav1.ObjectMeta{Name: crdOf(s.Subject)}},
	} {
		if err := p.deleteWhole(ctx, object); err != nil {
			return err
		}
	}
	return nil
}

// deleteWhole deletes an object, and waits until it is gone.
func (p *player) deleteWhole(ctx context.Context, object client.Object) error {
	return p.eventually(ctx, fmt.Sprintf("%T %s is deleted", object, object.GetName()), func(ctx context.Context) error {
		if err := client.IgnoreNotFound(p.cluster.Delete(ctx, object)); err != nil {
			return err
		}
		found, err := p.find(ctx, client.ObjectKeyFromObject(object), object)
		if found {
			return fmt.Errorf("it is still there, with the finalizers %v", object.GetFinalizers())
		}
		return err
	})
}

// overwriteConversion replaces spec.conversion like an installer that does not know the operator,
// and waits until the operator has reverted that and API servers convert again.
func (p *player) overwriteConversion(ctx context.Context, s step) error {
	foreign, err := pki.NewAuthority("somebody else", time.Now(), 24*time.Hour)
	if err != nil {
		return err
	}
	patches := map[string]any{
		strategyNone:     map[string]any{"strategy": "None", "webhook": nil},
		foreignAuthority: inWebhook(map[string]any{"caBundle": foreign.Certificate}),
		foreignService:   inWebhook(map[string]any{"service": map[string]any{"name": "nobody"}}),
	}
	patch, err := mergePatch(map[string]any{"conversion": patches[s.Detail]})
	if err != nil {
		return err
	}
	crd := &apiextensionsv1.CustomResourceDefinition{}
	crd.Name = crdOf(s.Subject)
	err = p.eventually(ctx, "spec.conversion is overwritten", func(ctx context.Context) error {
		return p.cluster.Patch(ctx, crd, client.RawPatch(types.MergePatchType, patch), client.FieldOwner("installer"))
	})
	if err != nil {
		return err
	}
	overwritten := crd.Generation
	err = p.eventually(ctx, "the foreign spec.conversion is undone", func(ctx context.Context) error {
		if found, err := p.find(ctx, client.ObjectKey{Name: crd.Name}, crd); !found {
			return errors.Join(errors.New("there is no definition"), err)
		}
		if crd.Generation == overwritten || !converts(crd) || string(webhookOf(crd).CABundle) == string(foreign.Certificate) {
			return fmt.Errorf("generation %d has %v", crd.Generation, crd.Spec.Conversion)
		}
		return nil
	})
	if err != nil {
		return err
	}
	return p.eventually(ctx, "objects are converted again", p.convertsAgain)
}

// convertsAgain returns an error as long as an API server still uses the overwritten CRD.
func (p *player) convertsAgain(ctx context.Context) error {
	now, err := p.observe(ctx)
	if err != nil {
		return err
	}
	for _, name := range sortedKeys(now) {
		for _, wrong := range append(unreadable(now[name], observation{}), readsDiffer(now[name], observation{})...) {
			return errors.New(wrong)
		}
	}
	return nil
}

func inWebhook(clientConfig map[string]any) map[string]any {
	return map[string]any{"webhook": map[string]any{"clientConfig": clientConfig}}
}
