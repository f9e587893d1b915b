//go:build integration

// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package live

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	storagemigrationv1 "k8s.io/api/storagemigration/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
	"github.com/conversion-operator/conversion-operator/internal/crds"
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

// plants are clean definitions and ones with a defect, and what is to be found.
var plants = map[string]struct {
	// defect creates the definition; what it returns changes what is asked.
	defect func(*testing.T, *cluster, *apiextensionsv1.CustomResourceDefinition) func(*Options)
	want   []string
}{
	"clean one version":    {planted(at("v1", "served storage", "a")), []string{}},
	"clean equal versions": {planted(at("v1", "served storage", "a"), at("v1beta1", "served", "a")), []string{}},
	"clean with objects": {func(t *testing.T, c *cluster, crd *apiextensionsv1.CustomResourceDefinition) func(*Options) {
		planted(at("v1", "served storage", "a"), at("v1beta1", "served", "a"))(t, c, crd)
		c.object(t, crd, "v1beta1")
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
	}, []string{"Error Certain UpgradeDropsStoredVersion v1beta1", "Warning Certain StoredVersionOld v1beta1"}},
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
		return newConverter(t, 24*time.Hour, renames).config()
	}, false), []string{"Note Certain ConversionUnproven", "Warning Certain CertificateExpiring"}},
	"webhook with an unreadable caBundle": {func(t *testing.T, c *cluster, crd *apiextensionsv1.CustomResourceDefinition) func(*Options) {
		crd.Spec.Versions = []apiextensionsv1.CustomResourceDefinitionVersion{at("v1", "served storage")}
		convertBy(crd, &apiextensionsv1.WebhookClientConfig{
			Service: &apiextensionsv1.ServiceReference{Namespace: "default", Name: "kubernetes"}, CABundle: []byte("no bundle"),
		})
		_, err := c.crds.Create(t.Context(), crd, metav1.CreateOptions{})
		must(t, err)
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
		return newConverter(t, year, refuses).config()
	}, true),
		[]string{"Error Certain ConversionFails v1beta1"}},
	"webhook that is something else": {converted(func(t *testing.T) *apiextensionsv1.WebhookClientConfig {
		return newConverter(t, year, http.NotFound).config()
	}, true), []string{"Error Certain ConversionFails v1beta1"}},
	"webhook that is down": {converted(func(t *testing.T) *apiextensionsv1.WebhookClientConfig {
		config := newConverter(t, year, renames).config()
		nobody := "https://" + loopback + ":1"
		config.URL = &nobody
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
	}, []string{"Note Possible StoredVersionsDoubtful"}},
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
		must(t, err)
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
		c.object(t, crd, "v1", "example.com/nobody")
		must(t, c.crds.Delete(t.Context(), crd.Name, metav1.DeleteOptions{}))
		return func(options *Options) { options.Now = options.Now.Add(time.Hour) }
	}, []string{"Error Certain TerminatingStuck"}},

	"policy that is not ready": {func(t *testing.T, c *cluster, crd *apiextensionsv1.CustomResourceDefinition) func(*Options) {
		planted(at("v1", "served storage"))(t, c, crd)
		policy := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"converter": map[string]any{"none": map[string]any{}}}}}
		policy.SetAPIVersion(v1alpha1.GroupVersion.String())
		policy.SetKind("ConversionPolicy")
		policy.SetName(crd.Name)
		_, err := c.objects.Resource(v1alpha1.GroupVersion.WithResource("conversionpolicies")).Create(t.Context(), policy, metav1.CreateOptions{})
		must(t, err)
		return nil
	}, []string{"Warning Certain PolicyNotReady"}},
}

const year = 365 * 24 * time.Hour

// definition has a group of its own, and no versions yet.
func definition(group string) *apiextensionsv1.CustomResourceDefinition {
	group = strings.Trim(strings.NewReplacer(",", "", "caBundle", "cabundle").Replace(strings.ToLower(group)), "-") + ".example.com"
	crd := &apiextensionsv1.CustomResourceDefinition{}
	crd.Name = "widgets." + group
	crd.Spec.Group, crd.Spec.Scope = group, apiextensionsv1.ClusterScoped
	crd.Spec.Names = apiextensionsv1.CustomResourceDefinitionNames{Plural: "widgets", Kind: "Widget"}
	return crd
}

// at is a version, with fields as name or name:type.
func at(name, is string, fields ...string) apiextensionsv1.CustomResourceDefinitionVersion {
	schema := &apiextensionsv1.JSONSchemaProps{Type: "object", Properties: map[string]apiextensionsv1.JSONSchemaProps{}}
	for _, field := range fields {
		field, kind, typed := strings.Cut(field, ":")
		if !typed {
			kind = "string"
		}
		schema.Properties[field] = apiextensionsv1.JSONSchemaProps{Type: kind}
	}
	return apiextensionsv1.CustomResourceDefinitionVersion{
		Name: name, Served: strings.Contains(is, "served"), Storage: strings.Contains(is, "storage"), Deprecated: strings.Contains(is, "deprecated"),
		Schema: &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: schema},
	}
}

func planted(versions ...apiextensionsv1.CustomResourceDefinitionVersion) func(*testing.T, *cluster, *apiextensionsv1.CustomResourceDefinition) func(*Options) {
	return func(t *testing.T, c *cluster, crd *apiextensionsv1.CustomResourceDefinition) func(*Options) {
		t.Helper()
		crd.Spec.Versions = versions
		c.create(t, crd)
		return nil
	}
}

// promoted had v1beta1 as its storage version, and has v1 now.
func promoted(t *testing.T, c *cluster, crd *apiextensionsv1.CustomResourceDefinition, is string) {
	t.Helper()
	planted(at("v1", "served", "a"), at("v1beta1", "served storage", "a"))(t, c, crd)
	promote(t, c, crd, is)
}

func promote(t *testing.T, c *cluster, crd *apiextensionsv1.CustomResourceDefinition, is string) {
	t.Helper()
	c.change(t, crd.Name, func(crd *apiextensionsv1.CustomResourceDefinition) {
		crd.Spec.Versions = []apiextensionsv1.CustomResourceDefinitionVersion{at("v1", "served storage", "a"), at("v1beta1", is, "a")}
	})
}

// promotedWithObject has an object from before, by the clock of managedFields,
// which goes by seconds.
func promotedWithObject(t *testing.T, c *cluster, crd *apiextensionsv1.CustomResourceDefinition) {
	t.Helper()
	planted(at("v1", "served", "a"), at("v1beta1", "served storage", "a"))(t, c, crd)
	c.object(t, crd, "v1beta1")
	written := time.Now()
	until(t, func(context.Context) (bool, error) { return time.Now().Unix() > written.Unix(), nil })
	promote(t, c, crd, "served")
}

func prune(t *testing.T, c *cluster, crd *apiextensionsv1.CustomResourceDefinition) {
	t.Helper()
	c.changeStatus(t, crd.Name, func(crd *apiextensionsv1.CustomResourceDefinition) { crd.Status.StoredVersions = []string{"v1"} })
}

// converted has two versions, between which a webhook converts.
func converted(by func(*testing.T) *apiextensionsv1.WebhookClientConfig, withObject bool) func(*testing.T, *cluster, *apiextensionsv1.CustomResourceDefinition) func(*Options) {
	return func(t *testing.T, c *cluster, crd *apiextensionsv1.CustomResourceDefinition) func(*Options) {
		t.Helper()
		crd.Spec.Versions = []apiextensionsv1.CustomResourceDefinitionVersion{at("v1", "served storage", "a"), at("v1beta1", "served", "a", "b")}
		convertBy(crd, by(t))
		c.create(t, crd)
		if withObject {
			c.object(t, crd, "v1")
		}
		return nil
	}
}

func convertBy(crd *apiextensionsv1.CustomResourceDefinition, config *apiextensionsv1.WebhookClientConfig) {
	crd.Spec.Conversion = &apiextensionsv1.CustomResourceConversion{
		Strategy: apiextensionsv1.WebhookConverter,
		Webhook:  &apiextensionsv1.WebhookConversion{ClientConfig: config, ConversionReviewVersions: []string{"v1"}},
	}
}

func (c converter) config() *apiextensionsv1.WebhookClientConfig {
	return &apiextensionsv1.WebhookClientConfig{URL: &c.url, CABundle: c.bundle}
}

func newRenaming(t *testing.T) *apiextensionsv1.WebhookClientConfig {
	return newConverter(t, year, renames).config()
}

// newForeign is trusted by another authority than its own.
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
	must(t, err)
}

// migration is one that has ended; nobody else works on it here.
func (c *cluster) migration(t *testing.T, crd *apiextensionsv1.CustomResourceDefinition, ended storagemigrationv1.MigrationConditionType) {
	t.Helper()
	c.migrated(t, crd, "first", ended)
}

func (c *cluster) migrated(t *testing.T, crd *apiextensionsv1.CustomResourceDefinition, name string, ended storagemigrationv1.MigrationConditionType) {
	t.Helper()
	migrations := c.core.StoragemigrationV1().StorageVersionMigrations()
	made, err := migrations.Create(t.Context(), &storagemigrationv1.StorageVersionMigration{
		ObjectMeta: metav1.ObjectMeta{Name: name + "." + crd.Name},
		Spec:       storagemigrationv1.StorageVersionMigrationSpec{Resource: metav1.GroupResource{Group: crd.Spec.Group, Resource: "widgets"}},
	}, metav1.CreateOptions{})
	must(t, err)
	made.Status.Conditions = []metav1.Condition{{Type: string(ended), Status: metav1.ConditionTrue, Reason: "Ended", Message: "1 object", LastTransitionTime: metav1.Now()}}
	_, err = migrations.UpdateStatus(t.Context(), made, metav1.UpdateOptions{})
	must(t, err)
}

// edit changes the bytes of a definition in etcd, as API servers of long ago have
// left them.
func (c *cluster) edit(t *testing.T, name, from, to string) {
	t.Helper()
	key := "/registry/apiextensions.k8s.io/customresourcedefinitions/" + name
	until(t, func(ctx context.Context) (bool, error) {
		found, err := c.etcd.Get(ctx, key)
		if err != nil || len(found.Kvs) != 1 {
			return false, fmt.Errorf("reading %s from etcd: %w", key, err)
		}
		if !bytes.Contains(found.Kvs[0].Value, []byte(from)) {
			return false, fmt.Errorf("%s has no %s: %s", name, from, found.Kvs[0].Value)
		}
		_, err = c.etcd.Put(ctx, key, string(bytes.Replace(found.Kvs[0].Value, []byte(from), []byte(to), 1)))
		return err == nil, err
	})
}

// untilUnreadable waits until API servers have taken note of a definition that
// lacks the version of a stored object.
func (c *cluster) untilUnreadable(t *testing.T, crd *apiextensionsv1.CustomResourceDefinition) {
	t.Helper()
	until(t, func(ctx context.Context) (bool, error) {
		_, err := c.objects.Resource(crds.Resource(crd, "v1")).Get(ctx, "first", metav1.GetOptions{})
		return err != nil, nil
	})
}
