//go:build integration

// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"context"
	"encoding/json"
	"fmt"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/conversion-operator/conversion-operator/internal/test/expect"
)

// jsonPatch is the operations of one write.
type jsonPatch []map[string]any

func (p jsonPatch) write(c client.Client, crd string, status bool) func(context.Context) error {
	return func(ctx context.Context) error {
		text, err := json.Marshal(p)
		if err != nil {
			return err
		}
		object, patch := &apiextensionsv1.CustomResourceDefinition{}, client.RawPatch(types.JSONPatchType, text)
		object.Name = crd
		if status {
			return c.Status().Patch(ctx, object, patch, client.DryRunAll)
		}
		return c.Patch(ctx, object, patch, client.DryRunAll)
	}
}

func change(op, path string, value any) jsonPatch {
	return jsonPatch{{"op": op, "path": path, "value": value}}
}

// ofTheManager are the changes of a CustomResourceDefinition that the manager makes.
var ofTheManager = map[string]jsonPatch{
	"conversion removed": change("replace", "/spec/conversion", map[string]any{"strategy": "None"}),
	"another converter":  change("replace", "/spec/conversion/webhook/clientConfig/service/path", "/other"),
	"not served":         change("replace", "/spec/versions/0/served", false),
	"deprecated":         append(change("add", "/spec/versions/0/deprecated", true), change("add", "/spec/versions/0/deprecationWarning", "use v1")...),
	"storage version":    append(change("replace", "/spec/versions/1/storage", false), change("replace", "/spec/versions/0/storage", true)...),
	"version removed":    change("remove", "/spec/versions/0", nil),
}

// notOfTheManager are other changes.
var notOfTheManager = map[string]jsonPatch{
	"a field":            change("add", "/spec/versions/0/schema/openAPIV3Schema/properties/secret", map[string]any{"type": "string"}),
	"a type":             change("replace", "/spec/versions/0/schema/openAPIV3Schema/properties/replicas/type", "string"),
	"a default":          change("add", "/spec/versions/0/schema/openAPIV3Schema/properties/replicas/default", 5),
	"validation":         change("add", "/spec/versions/0/schema/openAPIV3Schema/properties/replicas/x-kubernetes-validations", []any{map[string]any{"rule": "self < 5"}}),
	"unknown fields":     change("add", "/spec/versions/0/schema/openAPIV3Schema/x-kubernetes-preserve-unknown-fields", true),
	"a subresource":      change("add", "/spec/versions/0/subresources", map[string]any{"status": map[string]any{}}),
	"a column":           change("add", "/spec/versions/0/additionalPrinterColumns", []any{map[string]any{"name": "Replicas", "type": "integer", "jsonPath": ".replicas"}}),
	"a selectable field": change("add", "/spec/versions/1/selectableFields", []any{map[string]any{"jsonPath": ".host"}}),
	"a new version": change("add", "/spec/versions/-", map[string]any{"name": "v2", "served": true, "storage": false,
		"schema": map[string]any{"openAPIV3Schema": map[string]any{"type": "object"}}}),
	"a renamed version": change("replace", "/spec/versions/0/name", "v1alpha1"),
	"a short name":      change("add", "/spec/names/shortNames", []any{"secrets"}),
	"a category":        change("add", "/spec/names/categories", []any{"all"}),
	"an annotation":     change("add", "/metadata/annotations", map[string]any{"api-approved.kubernetes.io": "unapproved"}),
	"a label":           change("add", "/metadata/labels", map[string]any{"app.kubernetes.io/managed-by": "Helm"}),
	"a finalizer":       change("add", "/metadata/finalizers", []any{"example.com/held"}),
	"an owner": change("add", "/metadata/ownerReferences", []any{map[string]any{
		"apiVersion": "v1", "kind": "Namespace", "name": "gone", "uid": "84fc43f2-5ee2-4ffc-9e1d-6e5fdb4da2f1"}}),
}

// TestConfinementOfDefinitions: with the manager's token, only the conversion and the life cycle of
// versions of a CustomResourceDefinition can change, and only if it has a policy.
func TestConfinementOfDefinitions(t *testing.T) {
	manager := asManager(t)
	active := activate(t, "definitions.confined.example.com", unchanged)
	without := create(t, manifest("without.confined.example.com", "v1beta1", "v1"), &apiextensionsv1.CustomResourceDefinition{})
	expect.NoError(t, cluster.Patch(t.Context(), without, client.RawPatch(mergePatch, fmt.Appendf(nil, `{"spec":{"conversion":%s}}`, asJSON(t, active.Spec.Conversion)))))
	theirs := change("add", "/spec/conversion/webhook/clientConfig/service/namespace", "theirs")
	expect.NoError(t, cluster.Patch(t.Context(), without, client.RawPatch(types.JSONPatchType, []byte(asJSON(t, theirs)))))
	for name, patch := range ofTheManager {
		t.Run("accepted: "+name, func(t *testing.T) { expect.NoError(t, patch.write(manager, active.Name, false)(t.Context())) })
		t.Run("refused without a policy: "+name, func(t *testing.T) {
			expect.NoError(t, patch.write(cluster, without.Name, false)(t.Context()))
			refuse(t, "there is none with the name "+without.Name, patch.write(manager, without.Name, false))
		})
	}
	for name, patch := range notOfTheManager {
		t.Run("refused: "+name, func(t *testing.T) {
			expect.NoError(t, patch.write(cluster, active.Name, false)(t.Context()))
			refuse(t, "the operator may", patch.write(manager, active.Name, false))
		})
	}
	for name, object := range map[string]*apiextensionsv1.CustomResourceDefinition{"create": without.DeepCopy(), "delete": without} {
		t.Run("refused: "+name, func(t *testing.T) {
			refuse(t, "may not create or delete", func(ctx context.Context) error {
				if name == "delete" {
					return manager.Delete(ctx, object, client.DryRunAll)
				}
				object.Name, object.Spec.Names.Plural, object.ResourceVersion = "others."+object.Spec.Group, "others", ""
				return manager.Create(ctx, object, client.DryRunAll)
			})
		})
	}
	if marked := getCRD(t, active.Name).Annotations; len(marked) != 0 {
		t.Errorf("the manager left annotations: %v", marked)
	}
}

// TestConfinementOfStoredVersions: with the manager's token, versions can be removed from
// status.storedVersions of a CustomResourceDefinition with a policy, and nothing else of the status
// can change.
func TestConfinementOfStoredVersions(t *testing.T) {
	manager := asManager(t)
	active := activate(t, "stored.confined.example.com", unchanged)
	without := create(t, manifest("unstored.confined.example.com", "v1beta1", "v1"), &apiextensionsv1.CustomResourceDefinition{})
	for _, crd := range []string{active.Name, without.Name} {
		expect.Success(t, "both versions are stored", func(ctx context.Context) error {
			object := getCRD(t, crd)
			object.Status.StoredVersions = []string{"v1beta1", "v1"}
			return cluster.Status().Update(ctx, object)
		})
	}
	pruned := change("replace", "/status/storedVersions", []string{"v1"})
	expect.NoError(t, pruned.write(manager, active.Name, true)(t.Context()))
	refuse(t, "there is none with the name "+without.Name, pruned.write(manager, without.Name, true))
	for name, patch := range map[string]jsonPatch{
		"a condition":    change("replace", "/status/conditions/0/status", "Unknown"),
		"accepted names": change("replace", "/status/acceptedNames/kind", "Secret"),
		"an annotation":  change("add", "/metadata/annotations", map[string]any{"api-approved.kubernetes.io": "unapproved"}),
	} {
		t.Run("refused: "+name, func(t *testing.T) { refuse(t, "the operator may", patch.write(manager, active.Name, true)) })
	}
	unstored := change("replace", "/status/storedVersions", []string{"v1beta1", "v1"})
	expect.NoError(t, unstored.write(manager, active.Name, true)(t.Context()))
}

// TestConfinementOfOrphans: of a CustomResourceDefinition that converts through the operator's
// namespace without a policy, the manager can renew the authority, and change nothing else.
func TestConfinementOfOrphans(t *testing.T) {
	manager := asManager(t)
	active := activate(t, "orphans.confined.example.com", unchanged)
	force(t, active.Name)
	renewed := change("replace", "/spec/conversion/webhook/clientConfig/caBundle", []byte(testAuthority(t)))
	for name, patch := range ofTheManager {
		t.Run("refused: "+name, func(t *testing.T) {
			refuse(t, "there is none with the name "+active.Name, patch.write(manager, active.Name, false))
			if name != "conversion removed" {
				refuse(t, "there is none with the name "+active.Name, append(patch, renewed...).write(manager, active.Name, false))
			}
		})
	}
	expect.NoError(t, renewed.write(manager, active.Name, false)(t.Context()))
	expect.NoError(t, cluster.Delete(t.Context(), active))
	waitUntilNothingIsLeft(t, active.Name)
}

func asJSON(t *testing.T, value any) string {
	t.Helper()
	text, err := json.Marshal(value)
	expect.NoError(t, err)
	return string(text)
}
