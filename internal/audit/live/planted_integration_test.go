//go:build integration

// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package live

import (
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	storagemigrationv1 "k8s.io/api/storagemigration/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
	"github.com/conversion-operator/conversion-operator/internal/crds"
	"github.com/conversion-operator/conversion-operator/internal/test/expect"
)

// TestAudit audits a real API server.
func TestAudit(t *testing.T) {
	c := start(t)
	t.Run("public projects", func(t *testing.T) { testPublished(t, c) })
	for name, plant := range plants {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			crd := definition(strings.ReplaceAll(name, " ", "-"))
			options := func(options *Options) { options.Names = []string{crd.Name} }
			if change := plant.defect(t, c, crd); change != nil {
				named := options
				options = func(options *Options) { named(options); change(options) }
			}
			report := c.audit(t, c.config, options)
			if diff := cmp.Diff(plant.want, lines(report.Findings), cmp.Transformer("sorted", func(l []string) []string { return slices.Sorted(slices.Values(l)) })); diff != "" {
				t.Errorf("findings (-want +got):\n%s\n%+v", diff, report.Findings)
			}
			for _, finding := range report.Findings {
				if finding.Evidence == "" || finding.Cure == "" || finding.CRD != crd.Name {
					t.Errorf("finding %+v", finding)
				}
			}
			if len(report.NotChecked) > 0 {
				t.Errorf("not checked: %v", report.NotChecked)
			}
		})
	}
}

// plants are definitions without and with a defect, and the expected findings.
var plants = map[string]struct {
	// defect creates the definition. It may return a change of the options.
	defect func(*testing.T, *cluster, *apiextensionsv1.CustomResourceDefinition) func(*Options)
	want   []string
}{
	"clean one version":    {planted(at("v1", "served storage", "a")), []string{}},
	"clean equal versions": {planted(at("v1", "served storage", "a"), at("v1beta1", "served", "a")), []string{}},
	"clean with objects": {func(t *testing.T, c *cluster, crd *apiextensionsv1.CustomResourceDefinition) func(*Options) {
		planted(at("v1", "served storage", "a"), at("v1beta1", "served", "a"))(t, c, crd)
		c.object(t, crd, "v1")
		return nil
	}, []string{}},
	"clean webhook": {converted(newRenaming, true), []string{}},
	"clean removed by migration": {func(t *testing.T, c *cluster, crd *apiextensionsv1.CustomResourceDefinition) func(*Options) {
		promoted(t, c, crd, "served")
		c.migration(t, crd, storagemigrationv1.MigrationFailed)
		c.object(t, crd, "v1")
		prune(t, c, crd)
		c.migrated(t, crd, "later", storagemigrationv1.MigrationSucceeded)
		return nil
	}, []string{}},

	"stored and served": {func(t *testing.T, c *cluster, crd *apiextensionsv1.CustomResourceDefinition) func(*Options) {
		promoted(t, c, crd, "served")
		return nil
	}, []string{"Warning Certain StoredVersionOld v1beta1"}},
	"stored and not served": {func(t *testing.T, c *cluster, crd *apiextensionsv1.CustomResourceDefinition) func(*Options) {
		promoted(t, c, crd, "")
		return nil
	}, []string{"Warning Certain StoredVersionUnserved v1beta1"}},
	"stored and dropped": {func(t *testing.T, c *cluster, crd *apiextensionsv1.CustomResourceDefinition) func(*Options) {
		promoted(t, c, crd, "served")
		next := definition("x")
		next.Spec.Versions = []apiextensionsv1.CustomResourceDefinitionVersion{at("v1", "served storage")}
		return func(options *Options) {
			options.Next = map[string]*apiextensionsv1.CustomResourceDefinition{crd.Name: next}
		}
	}, []string{"Error Certain UpgradeDropsStoredVersion v1beta1", "Warning Certain StoredVersionOld v1beta1", "Warning Certain UpgradeRestrictsVersion v1"}},
	"deprecated": {planted(at("v1", "served storage", "a"), at("v1beta1", "served deprecated", "a")),
		[]string{"Note Certain DeprecatedVersionServed v1beta1"}},
	"deprecated and stored": {planted(at("v1", "served", "a"), at("v1beta1", "served storage deprecated", "a")),
		[]string{"Warning Certain DeprecatedVersionServed v1beta1"}},
	"fields lost": {planted(at("v1", "served storage", "a"), at("v1beta1", "served", "a", "b")),
		[]string{"Error Certain NoneLosesFields v1beta1"}},
	"fields hidden": {planted(at("v1", "served storage", "a", "b"), at("v1beta1", "served", "a")),
		[]string{"Warning Certain NoneHidesFields v1beta1"}},
	"types differ": {planted(at("v1", "served storage", "a:integer"), at("v1beta1", "served", "a")),
		[]string{"Error Certain NoneTypesDiffer v1beta1"}},

	"webhook without objects": {converted(newRenaming, false), []string{"Note Certain ConversionUnproven"}},
	"webhook without caBundle": {converted(func(*testing.T) *apiextensionsv1.WebhookClientConfig {
		return &apiextensionsv1.WebhookClientConfig{Service: &apiextensionsv1.ServiceReference{Namespace: "default", Name: "kubernetes"}}
	}, false), []string{"Note Certain ConversionUnproven", "Warning Certain CABundleEmpty"}},
	"webhook of a foreign authority": {converted(newForeign, true), []string{"Error Certain CABundleForeign v1beta1"}},
	"webhook of a foreign authority, unread": {func(t *testing.T, c *cluster, crd *apiextensionsv1.CustomResourceDefinition) func(*Options) {
		converted(newForeign, true)(t, c, crd)
		return func(options *Options) { options.NoReads = true }
	}, []string{"Error Certain CABundleForeign"}},
	"webhook that expires": {func(t *testing.T, c *cluster, crd *apiextensionsv1.CustomResourceDefinition) func(*Options) {
		converted(newRenaming, true)(t, c, crd)
		return func(options *Options) { options.Now = options.Now.Add(350 * 24 * time.Hour) }
	}, []string{"Warning Certain CABundleExpiring"}},
	"webhook that has expired": {func(t *testing.T, c *cluster, crd *apiextensionsv1.CustomResourceDefinition) func(*Options) {
		converted(newRenaming, true)(t, c, crd)
		return func(options *Options) { options.Now = options.Now.Add(366 * 24 * time.Hour) }
	}, []string{"Error Certain CABundleExpired"}},
	"webhook with a certificate that expires": {converted(func(t *testing.T) *apiextensionsv1.WebhookClientConfig {
		return newConverter(t, 24*time.Hour, rename).config()
	}, false), []string{"Note Certain ConversionUnproven", "Warning Certain CertificateExpiring"}},
	"webhook with an unreadable caBundle": {func(t *testing.T, c *cluster, crd *apiextensionsv1.CustomResourceDefinition) func(*Options) {
		crd.Spec.Versions = []apiextensionsv1.CustomResourceDefinitionVersion{at("v1", "served storage")}
		convertBy(crd, &apiextensionsv1.WebhookClientConfig{
			Service: &apiextensionsv1.ServiceReference{Namespace: "default", Name: "kubernetes"}, CABundle: []byte("no bundle"),
		})
		_, err := c.crds.Create(t.Context(), crd, metav1.CreateOptions{})
		expect.NoError(t, err)
		c.untilDefinition(t, crd.Name, func(crd *apiextensionsv1.CustomResourceDefinition) bool { return len(crd.Status.Conditions) > 1 })
		return nil
	}, []string{"Error Certain CABundleInvalid", "Error Certain NotEstablished"}},
	"webhook of a Service that is missing": {converted(toService("missing", 443), true),
		[]string{"Error Certain ConversionFails v1beta1", "Error Certain ServiceMissing"}},
	"webhook of a Service without pods": {func(t *testing.T, c *cluster, crd *apiextensionsv1.CustomResourceDefinition) func(*Options) {
		c.service(t, "podless")
		converted(toService("podless", 443), false)(t, c, crd)
		return nil
	}, []string{"Error Certain ServiceWithoutEndpoints", "Note Certain ConversionUnproven"}},
	"webhook at a port that is missing": {func(t *testing.T, c *cluster, crd *apiextensionsv1.CustomResourceDefinition) func(*Options) {
		c.service(t, "portless")
		converted(toService("portless", 8443), false)(t, c, crd)
		return nil
	}, []string{"Error Certain ServicePortMissing", "Note Certain ConversionUnproven"}},
	"webhook that refuses": {converted(func(t *testing.T) *apiextensionsv1.WebhookClientConfig {
		return newConverter(t, year, refuse).config()
	}, true),
		[]string{"Error Certain ConversionFails v1beta1"}},
	"webhook that is something else": {converted(func(t *testing.T) *apiextensionsv1.WebhookClientConfig {
		return newConverter(t, year, http.NotFound).config()
	}, true), []string{"Error Certain ConversionFails v1beta1"}},
	"webhook that is down": {converted(func(t *testing.T) *apiextensionsv1.WebhookClientConfig {
		config := newConverter(t, year, rename).config()
		unused := "https://" + loopback + ":1"
		config.URL = &unused
		return config
	}, true), []string{"Error Certain ConversionFails v1beta1"}},
	"webhook of old reviews": {func(t *testing.T, c *cluster, crd *apiextensionsv1.CustomResourceDefinition) func(*Options) {
		crd.Spec.Versions = []apiextensionsv1.CustomResourceDefinitionVersion{at("v1", "served storage")}
		convertBy(crd, newRenaming(t))
		crd.Spec.Conversion.Webhook.ConversionReviewVersions = []string{"v1beta1"}
		c.create(t, crd)
		return nil
	}, []string{"Warning Certain ReviewVersionOld"}},

	"pruned after a failure": {func(t *testing.T, c *cluster, crd *apiextensionsv1.CustomResourceDefinition) func(*Options) {
		promoted(t, c, crd, "served")
		c.migration(t, crd, storagemigrationv1.MigrationFailed)
		prune(t, c, crd)
		return nil
	}, []string{"Warning Likely PrunedAfterFailure"}},
	"failed and not pruned": {func(t *testing.T, c *cluster, crd *apiextensionsv1.CustomResourceDefinition) func(*Options) {
		promoted(t, c, crd, "served")
		c.migration(t, crd, storagemigrationv1.MigrationFailed)
		return nil
	}, []string{"Warning Certain MigrationFailed", "Warning Certain StoredVersionOld v1beta1"}},
	"pruned by hand": {func(t *testing.T, c *cluster, crd *apiextensionsv1.CustomResourceDefinition) func(*Options) {
		promotedWithObject(t, c, crd)
		prune(t, c, crd)
		return nil
	}, []string{"Note Certain ManagedFieldsOld v1beta1", "Note Possible StoredVersionsDoubtful"}},
	"written at an old version": {func(t *testing.T, c *cluster, crd *apiextensionsv1.CustomResourceDefinition) func(*Options) {
		planted(at("v1", "served storage", "a"), at("v1beta1", "served", "a"))(t, c, crd)
		c.object(t, crd, "v1beta1")
		return nil
	}, []string{"Note Certain ManagedFieldsOld v1beta1"}},
	"pruned and removed": {func(t *testing.T, c *cluster, crd *apiextensionsv1.CustomResourceDefinition) func(*Options) {
		promotedWithObject(t, c, crd)
		prune(t, c, crd)
		changed := c.change(t, crd.Name, func(crd *apiextensionsv1.CustomResourceDefinition) { crd.Spec.Versions = crd.Spec.Versions[:1] })
		c.untilUnreadable(t, changed)
		return nil
	}, []string{"Error Certain ReadFails v1"}},
	"stored in a version that is not there": {func(t *testing.T, c *cluster, crd *apiextensionsv1.CustomResourceDefinition) func(*Options) {
		planted(at("v1", "served storage", "a"))(t, c, crd)
		c.edit(t, crd.Name, `"storedVersions":["v1"]`, `"storedVersions":["v1alpha1","v1"]`)
		c.untilDefinition(t, crd.Name, func(crd *apiextensionsv1.CustomResourceDefinition) bool { return len(crd.Status.StoredVersions) == 2 })
		return nil
	}, []string{"Error Certain StoredVersionUnknown v1alpha1"}},

	"names that are taken": {func(t *testing.T, c *cluster, crd *apiextensionsv1.CustomResourceDefinition) func(*Options) {
		first := crd.DeepCopy()
		first.Name, first.Spec.Names.Plural = "others."+crd.Spec.Group, "others"
		planted(at("v1", "served storage"))(t, c, first)
		crd.Spec.Versions = first.Spec.Versions
		_, err := c.crds.Create(t.Context(), crd, metav1.CreateOptions{})
		expect.NoError(t, err)
		c.untilDefinition(t, crd.Name, func(crd *apiextensionsv1.CustomResourceDefinition) bool { return len(crd.Status.Conditions) > 1 })
		return nil
	}, []string{"Error Certain NamesNotAccepted"}},
	"without structure": {func(t *testing.T, c *cluster, crd *apiextensionsv1.CustomResourceDefinition) func(*Options) {
		planted(at("v1", "served storage"))(t, c, crd)
		c.edit(t, crd.Name, `"type":"object"`, `"title":"object"`)
		c.untilDefinition(t, crd.Name, func(crd *apiextensionsv1.CustomResourceDefinition) bool {
			return crds.Condition(crd, apiextensionsv1.NonStructuralSchema)
		})
		return nil
	}, []string{"Warning Certain NonStructuralSchema"}},
	"unknown fields": {func(t *testing.T, c *cluster, crd *apiextensionsv1.CustomResourceDefinition) func(*Options) {
		planted(at("v1", "served storage"))(t, c, crd)
		c.edit(t, crd.Name, `"preserveUnknownFields":false`, `"preserveUnknownFields":true`)
		c.untilDefinition(t, crd.Name, func(crd *apiextensionsv1.CustomResourceDefinition) bool { return crd.Spec.PreserveUnknownFields })
		return nil
	}, []string{"Warning Certain PreservesUnknownFields"}},
	"deletion that is stuck": {func(t *testing.T, c *cluster, crd *apiextensionsv1.CustomResourceDefinition) func(*Options) {
		planted(at("v1", "served storage", "a"))(t, c, crd)
		c.object(t, crd, "v1", "example.com/never-removed")
		expect.NoError(t, c.crds.Delete(t.Context(), crd.Name, metav1.DeleteOptions{}))
		return func(options *Options) { options.Now = options.Now.Add(time.Hour) }
	}, []string{"Error Certain TerminatingStuck"}},

	"policy that is not ready": {func(t *testing.T, c *cluster, crd *apiextensionsv1.CustomResourceDefinition) func(*Options) {
		planted(at("v1", "served storage"))(t, c, crd)
		policy := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"converter": map[string]any{"none": map[string]any{}}}}}
		policy.SetAPIVersion(v1alpha1.GroupVersion.String())
		policy.SetKind("ConversionPolicy")
		policy.SetName(crd.Name)
		_, err := c.objects.Resource(v1alpha1.GroupVersion.WithResource("conversionpolicies")).Create(t.Context(), policy, metav1.CreateOptions{})
		expect.NoError(t, err)
		return nil
	}, []string{"Warning Certain PolicyNotReady"}},
}
