//go:build integration

// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package live

import (
	"context"
	"strings"
	"testing"
	"time"

	storagemigrationv1 "k8s.io/api/storagemigration/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/conversion-operator/conversion-operator/internal/test/expect"
	"github.com/conversion-operator/conversion-operator/internal/test/testenv"
)

const year = 365 * 24 * time.Hour

// definition returns a definition with its own group, and without versions.
func definition(group string) *apiextensionsv1.CustomResourceDefinition {
	group = strings.ReplaceAll(strings.ToLower(group), ",", "") + ".example.com"
	crd := &apiextensionsv1.CustomResourceDefinition{}
	crd.Name = "widgets." + group
	crd.Spec.Group, crd.Spec.Scope = group, apiextensionsv1.ClusterScoped
	crd.Spec.Names = apiextensionsv1.CustomResourceDefinitionNames{Plural: "widgets", Kind: "Widget"}
	return crd
}

// at returns a version with fields of strings. The flags are the words served and storage.
func at(name, flags string, fields ...string) apiextensionsv1.CustomResourceDefinitionVersion {
	root := &apiextensionsv1.JSONSchemaProps{Type: "object", Properties: map[string]apiextensionsv1.JSONSchemaProps{}}
	for _, field := range fields {
		root.Properties[field] = apiextensionsv1.JSONSchemaProps{Type: "string"}
	}
	return apiextensionsv1.CustomResourceDefinitionVersion{
		Name: name, Served: strings.Contains(flags, "served"), Storage: strings.Contains(flags, "storage"),
		Schema: &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: root},
	}
}

// promote changes the storage version from v1beta1 to v1.
func (c *cluster) promote(t *testing.T, crd *apiextensionsv1.CustomResourceDefinition) {
	t.Helper()
	testenv.ChangeCRD(t, c.Client, crd.Name, func(crd *apiextensionsv1.CustomResourceDefinition) {
		crd.Spec.Versions = []apiextensionsv1.CustomResourceDefinitionVersion{at("v1", "served storage", "a"), at("v1beta1", "served", "a")}
	})
}

// promotedWithObject also creates an object before the change. It waits for a second in
// between, because times in managedFields are in seconds.
func (c *cluster) promotedWithObject(t *testing.T, crd *apiextensionsv1.CustomResourceDefinition) {
	t.Helper()
	c.plant(t, crd, at("v1", "served", "a"), at("v1beta1", "served storage", "a"))
	c.object(t, crd, "v1beta1")
	written := time.Now()
	expect.Eventually(t, "the next second", func() (bool, string) { return time.Now().Unix() > written.Unix(), "" })
	c.promote(t, crd)
}

func (c *cluster) prune(t *testing.T, crd *apiextensionsv1.CustomResourceDefinition) {
	t.Helper()
	expect.Success(t, "storedVersions are pruned", func(ctx context.Context) error {
		if err := c.Client.Get(ctx, client.ObjectKeyFromObject(crd), crd); err != nil {
			return err
		}
		crd.Status.StoredVersions = []string{"v1"}
		return c.Client.Status().Update(ctx, crd)
	})
}

// converted creates a definition with two versions and a conversion webhook.
func converted(by func(*testing.T) *apiextensionsv1.WebhookClientConfig, withObject bool) func(*testing.T, *cluster, *apiextensionsv1.CustomResourceDefinition) func(*Options) {
	return func(t *testing.T, c *cluster, crd *apiextensionsv1.CustomResourceDefinition) func(*Options) {
		t.Helper()
		crd.Spec.Conversion = &apiextensionsv1.CustomResourceConversion{
			Strategy: apiextensionsv1.WebhookConverter,
			Webhook:  &apiextensionsv1.WebhookConversion{ClientConfig: by(t), ConversionReviewVersions: []string{"v1"}},
		}
		c.plant(t, crd, at("v1", "served storage", "a"), at("v1beta1", "served", "a", "b"))
		if withObject {
			c.object(t, crd, "v1")
		}
		return nil
	}
}

func newRenaming(t *testing.T) *apiextensionsv1.WebhookClientConfig {
	return newConverter(t, year, rename)
}

// newForeign has a caBundle that does not verify its certificate.
func newForeign(t *testing.T) *apiextensionsv1.WebhookClientConfig {
	config := newRenaming(t)
	config.CABundle = newRenaming(t).CABundle
	return config
}

func toService(name string, port int32) func(*testing.T) *apiextensionsv1.WebhookClientConfig {
	return func(t *testing.T) *apiextensionsv1.WebhookClientConfig {
		return &apiextensionsv1.WebhookClientConfig{
			Service: &apiextensionsv1.ServiceReference{Namespace: "default", Name: name, Port: &port}, CABundle: newRenaming(t).CABundle,
		}
	}
}

// failedMigration creates a migration that has failed; no controller runs here.
func (c *cluster) failedMigration(t *testing.T, crd *apiextensionsv1.CustomResourceDefinition) {
	t.Helper()
	api, err := discovery.NewDiscoveryClientForConfig(c.Kubeconfig)
	expect.NoError(t, err)
	migrated := schema.GroupVersionResource{Group: crd.Spec.Group, Version: crd.Spec.Versions[0].Name, Resource: "widgets"}
	made := testenv.StorageVersionMigration(testenv.ServedMigrations(t, api), "first."+crd.Name, migrated)
	expect.NoError(t, c.Client.Create(t.Context(), made))
	made.Object["status"] = testenv.MigrationStatus(string(storagemigrationv1.MigrationFailed))
	expect.NoError(t, c.Client.Status().Update(t.Context(), made))
}
