//go:build integration

// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package live

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/conversion-operator/conversion-operator/internal/test/expect"
	"github.com/conversion-operator/conversion-operator/internal/test/reviews"
	"github.com/conversion-operator/conversion-operator/internal/test/testenv"
)

// TestAudit audits a real API server. The cases are those in which the audit depends on what an API server says or
// does; findings about a given state are in the tests of package audit.
func TestAudit(t *testing.T) {
	c := start(t)
	t.Run("public projects", func(t *testing.T) { testPublished(t, c) })
	t.Run("an autoscaler", func(t *testing.T) { testAutoscaler(t, c) })
	for name, plant := range plants {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			crd := definition(strings.ReplaceAll(name, " ", "-"))
			options := func(options *Options) { options.Names = []string{crd.Name} }
			if change := plant.defect(t, c, crd); change != nil {
				named := options
				options = func(options *Options) { named(options); change(options) }
			}
			report := c.audit(t, c.Kubeconfig, options)
			expect.Equal(t, "findings", plant.want, lines(report.Findings), cmp.Transformer("sorted", func(l []string) []string { return slices.Sorted(slices.Values(l)) }))
			for _, finding := range report.Findings {
				if finding.Evidence == "" || finding.Cure == "" || finding.CRD != crd.Name {
					t.Errorf("finding %+v", finding)
				}
			}
			expect.Equal(t, "not checked", "[]", fmt.Sprint(report.NotChecked))
		})
	}
}

// plants are definitions without and with a defect, and the expected findings.
var plants = map[string]struct {
	// defect creates the definition. It may return a change of the options.
	defect func(*testing.T, *cluster, *apiextensionsv1.CustomResourceDefinition) func(*Options)
	want   []string
}{
	"clean with objects": {func(t *testing.T, c *cluster, crd *apiextensionsv1.CustomResourceDefinition) func(*Options) {
		c.plant(t, crd, at("v1", "served storage", "a"), at("v1beta1", "served", "a"))
		c.object(t, crd, "v1")
		return nil
	}, []string{}},
	"clean webhook": {converted(newRenaming, true), []string{}},

	"stored and dropped": {func(t *testing.T, c *cluster, crd *apiextensionsv1.CustomResourceDefinition) func(*Options) {
		c.plant(t, crd, at("v1", "served", "a"), at("v1beta1", "served storage", "a"))
		c.promote(t, crd)
		next := definition("x")
		next.Spec.Versions = []apiextensionsv1.CustomResourceDefinitionVersion{at("v1", "served storage")}
		return func(options *Options) {
			options.Next = map[string]*apiextensionsv1.CustomResourceDefinition{crd.Name: next}
		}
	}, []string{"Error Certain UpgradeDropsStoredVersion v1beta1", "Note Possible OLMRefuses v1", "Warning Certain StoredVersionOld v1beta1", "Warning Certain UpgradeRestrictsVersion v1"}},

	"webhook without objects":        {converted(newRenaming, false), []string{"Note Certain ConversionUnproven"}},
	"webhook of a foreign authority": {converted(newForeign, true), []string{"Error Certain CABundleForeign v1beta1"}},
	"webhook of a foreign authority, unread": {func(t *testing.T, c *cluster, crd *apiextensionsv1.CustomResourceDefinition) func(*Options) {
		converted(newForeign, true)(t, c, crd)
		return func(options *Options) { options.NoReads = true }
	}, []string{"Error Certain CABundleForeign"}},
	"webhook with a certificate that expires": {converted(func(t *testing.T) *apiextensionsv1.WebhookClientConfig {
		return newConverter(t, 24*time.Hour, rename)
	}, false), []string{"Note Certain ConversionUnproven", "Warning Certain CertificateExpiring"}},
	"webhook of a Service that is missing": {converted(toService("missing", 443), true),
		[]string{"Error Certain ConversionFails v1beta1", "Error Certain ServiceMissing"}},
	"webhook of a Service without pods": {func(t *testing.T, c *cluster, crd *apiextensionsv1.CustomResourceDefinition) func(*Options) {
		service := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "podless"}, Spec: corev1.ServiceSpec{Ports: []corev1.ServicePort{{Port: 443}}}}
		expect.NoError(t, c.Client.Create(t.Context(), service))
		converted(toService("podless", 443), false)(t, c, crd)
		return nil
	}, []string{"Error Certain ServiceWithoutEndpoints", "Note Certain ConversionUnproven"}},
	"webhook that refuses": {converted(func(t *testing.T) *apiextensionsv1.WebhookClientConfig {
		return newConverter(t, year, reviews.Refuse)
	}, true), []string{"Error Certain ConversionFails v1beta1"}},

	"pruned after a failure": {func(t *testing.T, c *cluster, crd *apiextensionsv1.CustomResourceDefinition) func(*Options) {
		c.plant(t, crd, at("v1", "served", "a"), at("v1beta1", "served storage", "a"))
		c.promote(t, crd)
		c.failedMigration(t, crd)
		c.prune(t, crd)
		return nil
	}, []string{"Warning Likely PrunedAfterFailure"}},
	"pruned by hand": {func(t *testing.T, c *cluster, crd *apiextensionsv1.CustomResourceDefinition) func(*Options) {
		c.promotedWithObject(t, crd)
		c.prune(t, crd)
		return nil
	}, []string{"Note Certain ManagedFieldsOld v1beta1", "Note Possible StoredVersionsDoubtful"}},
	"pruned and removed": {func(t *testing.T, c *cluster, crd *apiextensionsv1.CustomResourceDefinition) func(*Options) {
		c.promotedWithObject(t, crd)
		c.prune(t, crd)
		testenv.ChangeCRD(t, c.Client, crd.Name, func(crd *apiextensionsv1.CustomResourceDefinition) { crd.Spec.Versions = crd.Spec.Versions[:1] })
		expect.Eventually(t, "the API server cannot read the object in a version that the definition lacks", func() (bool, string) {
			err := c.Client.Get(t.Context(), client.ObjectKey{Name: "first"}, widget(crd, "v1"))
			return err != nil, fmt.Sprint(err)
		})
		return nil
	}, []string{"Error Certain ReadFails v1"}},
}
