//go:build integration

// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package live

import (
	"context"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagemigrationv1 "k8s.io/api/storagemigration/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/conversion-operator/conversion-operator/internal/crds"
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

// plant creates a definition with versions.
func (c *cluster) plant(t *testing.T, crd *apiextensionsv1.CustomResourceDefinition, versions ...apiextensionsv1.CustomResourceDefinitionVersion) {
	t.Helper()
	crd.Spec.Versions = versions
	c.create(t, crd)
}

// promote changes the storage version from v1beta1 to v1.
func promote(t *testing.T, c *cluster, crd *apiextensionsv1.CustomResourceDefinition) {
	t.Helper()
	c.write(t, crd.Name, func(crd *apiextensionsv1.CustomResourceDefinition) {
		crd.Spec.Versions = []apiextensionsv1.CustomResourceDefinitionVersion{at("v1", "served storage", "a"), at("v1beta1", "served", "a")}
	}, c.crds.Update)
}

// promotedWithObject also creates an object before the change. It waits for a second in
// between, because times in managedFields are in seconds.
func promotedWithObject(t *testing.T, c *cluster, crd *apiextensionsv1.CustomResourceDefinition) {
	t.Helper()
	c.plant(t, crd, at("v1", "served", "a"), at("v1beta1", "served storage", "a"))
	c.object(t, crd, "v1beta1")
	written := time.Now()
	until(t, func(context.Context) (bool, error) { return time.Now().Unix() > written.Unix(), nil })
	promote(t, c, crd)
}

func prune(t *testing.T, c *cluster, crd *apiextensionsv1.CustomResourceDefinition) {
	t.Helper()
	c.write(t, crd.Name, func(crd *apiextensionsv1.CustomResourceDefinition) { crd.Status.StoredVersions = []string{"v1"} }, c.crds.UpdateStatus)
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

func (c converter) config() *apiextensionsv1.WebhookClientConfig {
	return &apiextensionsv1.WebhookClientConfig{URL: &c.url, CABundle: c.bundle}
}

func newRenaming(t *testing.T) *apiextensionsv1.WebhookClientConfig {
	return newConverter(t, year, rename).config()
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

func (c *cluster) service(t *testing.T, name string) {
	t.Helper()
	service := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: corev1.ServiceSpec{Ports: []corev1.ServicePort{{Port: 443}}}}
	_, err := c.core.CoreV1().Services("default").Create(t.Context(), service, metav1.CreateOptions{})
	expect.NoError(t, err)
}

// failedMigration creates a migration that has failed; no controller runs here.
func (c *cluster) failedMigration(t *testing.T, crd *apiextensionsv1.CustomResourceDefinition) {
	t.Helper()
	served := testenv.ServedMigrations(t, c.core.Discovery())
	migrations := c.objects.Resource(served.WithResource("storageversionmigrations"))
	migrated := schema.GroupVersionResource{Group: crd.Spec.Group, Version: crd.Spec.Versions[0].Name, Resource: "widgets"}
	made, err := migrations.Create(t.Context(), testenv.StorageVersionMigration(served, "first."+crd.Name, migrated), metav1.CreateOptions{})
	expect.NoError(t, err)
	expect.NoError(t, unstructured.SetNestedMap(made.Object, testenv.MigrationStatus(string(storagemigrationv1.MigrationFailed)), "status"))
	_, err = migrations.UpdateStatus(t.Context(), made, metav1.UpdateOptions{})
	expect.NoError(t, err)
}

// untilUnreadable waits until the API server cannot read the stored object, because the
// definition lacks its version.
func (c *cluster) untilUnreadable(t *testing.T, crd *apiextensionsv1.CustomResourceDefinition) {
	t.Helper()
	until(t, func(ctx context.Context) (bool, error) {
		_, err := c.objects.Resource(crds.Resource(crd, "v1")).Get(ctx, "first", metav1.GetOptions{})
		return err != nil, nil
	})
}
