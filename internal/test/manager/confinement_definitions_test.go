//go:build integration

// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"testing"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/conversion-operator/conversion-operator/controllers"
	"github.com/conversion-operator/conversion-operator/internal/test/expect"
	"github.com/conversion-operator/conversion-operator/internal/webhook"
	"github.com/conversion-operator/conversion-operator/internal/webhook/probe"
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
	"not served":         change("replace", "/spec/versions/1/served", false),
	"deprecated":         append(change("add", "/spec/versions/1/deprecated", true), change("add", "/spec/versions/1/deprecationWarning", "use v1")...),
	"storage version":    append(change("replace", "/spec/versions/0/storage", false), change("replace", "/spec/versions/1/storage", true)...),
	"version removed":    change("remove", "/spec/versions/1", nil),
}

// notOfTheManager are other changes.
var notOfTheManager = map[string]jsonPatch{
	"a field":            change("add", "/spec/versions/1/schema/openAPIV3Schema/properties/secret", map[string]any{"type": "string"}),
	"a type":             change("replace", "/spec/versions/1/schema/openAPIV3Schema/properties/replicas/type", "string"),
	"a default":          change("add", "/spec/versions/1/schema/openAPIV3Schema/properties/replicas/default", 5),
	"validation":         change("add", "/spec/versions/1/schema/openAPIV3Schema/properties/replicas/x-kubernetes-validations", []any{map[string]any{"rule": "self < 5"}}),
	"unknown fields":     change("add", "/spec/versions/1/schema/openAPIV3Schema/x-kubernetes-preserve-unknown-fields", true),
	"a subresource":      change("add", "/spec/versions/1/subresources", map[string]any{"status": map[string]any{}}),
	"a column":           change("add", "/spec/versions/1/additionalPrinterColumns", []any{map[string]any{"name": "Replicas", "type": "integer", "jsonPath": ".replicas"}}),
	"a selectable field": change("add", "/spec/versions/0/selectableFields", []any{map[string]any{"jsonPath": ".host"}}),
	"a new version": change("add", "/spec/versions/-", map[string]any{"name": "v2", "served": true, "storage": false,
		"schema": map[string]any{"openAPIV3Schema": map[string]any{"type": "object"}}}),
	"a renamed version": change("replace", "/spec/versions/1/name", "v1alpha1"),
	"a short name":      change("add", "/spec/names/shortNames", []any{"secrets"}),
	"a category":        change("add", "/spec/names/categories", []any{"all"}),
	"an annotation":     change("add", "/metadata/annotations", map[string]any{"api-approved.kubernetes.io": "unapproved"}),
	"a label":           change("add", "/metadata/labels", map[string]any{"app.kubernetes.io/managed-by": "Helm"}),
	"a finalizer":       change("add", "/metadata/finalizers", []any{"example.com/held"}),
	"an owner": change("add", "/metadata/ownerReferences", []any{map[string]any{
		"apiVersion": "v1", "kind": "Namespace", "name": "gone", "uid": "84fc43f2-5ee2-4ffc-9e1d-6e5fdb4da2f1"}}),
}

// TestConfinementOfDefinitions: with the manager's token, only the conversion and the life cycle of
// versions of a CustomResourceDefinition can change.
func TestConfinementOfDefinitions(t *testing.T) {
	t.Parallel()
	manager := asManager(t)
	active := activate(t, "definitions.confined.example.com", shared)
	for name, patch := range ofTheManager {
		t.Run("accepted: "+name, func(t *testing.T) { expect.NoError(t, patch.write(manager, active.Name, false)(t.Context())) })
	}
	for name, patch := range notOfTheManager {
		t.Run("refused: "+name, func(t *testing.T) {
			expect.NoError(t, patch.write(cluster, active.Name, false)(t.Context()))
			refuse(t, "the operator may", patch.write(manager, active.Name, false))
		})
	}
	t.Run("refused: create", func(t *testing.T) {
		other := active.DeepCopy()
		other.Name, other.Spec.Names.Plural, other.ResourceVersion = "others."+other.Spec.Group, "others", ""
		refuse(t, "may not create or delete", func(ctx context.Context) error { return manager.Create(ctx, other.DeepCopy(), client.DryRunAll) })
	})
	t.Run("refused: delete", func(t *testing.T) {
		refuse(t, "may not create or delete", func(ctx context.Context) error { return manager.Delete(ctx, active.DeepCopy(), client.DryRunAll) })
	})
}

// TestConfinementOfOwnDefinitions: with the manager's token, the conversion of the probe kind can
// change, and nothing else of the operator's own kinds.
func TestConfinementOfOwnDefinitions(t *testing.T) {
	t.Parallel()
	manager := asManager(t)
	stored := &unstructured.Unstructured{Object: map[string]any{"apiVersion": webhook.ProbeGroup + "/v2", "kind": webhook.ProbeKind}}
	stored.SetName("stored")
	refuse(t, "only in dry runs", func(ctx context.Context) error { return manager.Create(ctx, stored.DeepCopy()) })
	conversion := activate(t, "probes.confined.example.com", shared).Spec.Conversion
	expect.NoError(t, change("replace", "/spec/conversion", conversion).write(manager, probe.Definition, false)(t.Context()))
	expect.NoError(t, change("replace", "/spec/conversion", map[string]any{"strategy": "None"}).write(manager, probe.Definition, false)(t.Context()))
	for name, refused := range map[string]struct {
		crd   string
		patch jsonPatch
	}{
		"a version of probes":        {probe.Definition, change("replace", "/spec/versions/1/served", false)},
		"a label of probes":          {probe.Definition, change("add", "/metadata/labels", map[string]any{"example.com/a": "b"})},
		"the conversion of policies": {"conversionpolicies.conversion-operator.io", change("replace", "/spec/conversion", conversion)},
		"the conversion of fleets":   {"converterfleets.conversion-operator.io", change("replace", "/spec/conversion", conversion)},
	} {
		t.Run("refused: "+name, func(t *testing.T) {
			expect.NoError(t, refused.patch.write(cluster, refused.crd, false)(t.Context()))
			refuse(t, "the operator may", refused.patch.write(manager, refused.crd, false))
		})
	}
}

// TestConfinementOfStoredVersions: with the manager's token, versions can be removed from
// status.storedVersions, and nothing else of the status can change.
func TestConfinementOfStoredVersions(t *testing.T) {
	t.Parallel()
	manager := asManager(t)
	stored := define(t, "stored.confined.example.com", "v1", "v1beta1")
	expect.Success(t, "both versions are stored", func(ctx context.Context) error {
		object := getCRD(t, stored.Name)
		object.Status.StoredVersions = []string{"v1beta1", "v1"}
		return cluster.Status().Update(ctx, object)
	})
	expect.NoError(t, change("replace", "/status/storedVersions", []string{"v1"}).write(manager, stored.Name, true)(t.Context()))
	for name, patch := range map[string]jsonPatch{
		"a condition":    change("replace", "/status/conditions/0/status", "Unknown"),
		"accepted names": change("replace", "/status/acceptedNames/kind", "Secret"),
	} {
		t.Run("refused: "+name, func(t *testing.T) {
			expect.NoError(t, patch.write(cluster, stored.Name, true)(t.Context()))
			refuse(t, "the operator may", patch.write(manager, stored.Name, true))
		})
	}
	patchStatus(t, stored, `{"status":{"storedVersions":["v1"]}}`)
	expect.Success(t, "the API server has seen it", func(context.Context) error {
		if got := getCRD(t, stored.Name).Status.StoredVersions; len(got) != 1 {
			return fmt.Errorf("stored versions are %v", got)
		}
		return nil
	})
	refuse(t, "the operator may remove versions", change("replace", "/status/storedVersions", []string{"v1beta1", "v1"}).write(manager, stored.Name, true))
}

// TestConfinementIsChecked: the manager detects whether it is confined, and exports it.
func TestConfinementIsChecked(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		client client.Client
		want   float64
	}{"confined": {asManager(t), 1}, "not confined": {cluster, 0}} {
		t.Run(name, func(t *testing.T) {
			check, registry := &controllers.Confinement{Client: c.client, Log: logr.Discard()}, prometheus.NewRegistry()
			expect.NoError(t, registry.Register(check))
			ctx, cancel := context.WithCancel(t.Context())
			var checking sync.WaitGroup
			checking.Go(func() { _ = check.Start(ctx) }) // it ends with ctx
			expect.Eventually(t, "the check is done", func() (bool, string) {
				families, err := registry.Gather()
				expect.NoError(t, err)
				return len(families) == 1 && families[0].GetMetric()[0].GetGauge().GetValue() == c.want, fmt.Sprint(families)
			})
			cancel()
			checking.Wait()
		})
	}
	crd := getCRD(t, "conversionpolicies.conversion-operator.io")
	_, changed := crd.Annotations["conversion-operator.io/confinement-check"]
	expect.Equal(t, "the check changed the CustomResourceDefinition", false, changed)
}
