//go:build integration

// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package docs

import (
	"cmp"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/conversion-operator/conversion-operator/internal/operator/pki"
	"github.com/conversion-operator/conversion-operator/internal/test/expect"
	"github.com/conversion-operator/conversion-operator/internal/test/reviews"
)

// troubles cause the symptoms.
var troubles = map[string]func(*testing.T, *symptomCase){
	"connection-refused": connection(converterOptions{down: true}),
	"service-not-found":  serviceNotFound,
	"unknown-authority":  connection(converterOptions{bundle: anotherAuthority()}),
	"wrong-name":         connection(converterOptions{dnsName: "converter.conversion-system.svc"}),
	"expired":            connection(converterOptions{issued: time.Now().Add(-90 * time.Minute)}),
	"not-yet-valid":      connection(converterOptions{issued: time.Now().Add(time.Hour)}),
	"plain-http":         connection(converterOptions{plain: true}),
	"not-found":          converter(http.NotFound),
	"not-a-review": converter(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = w.Write([]byte("<html>Sign in</html>"))
	}),
	"refused": converter(reviews.Refuse),
	"too-few": converter(reviews.Answer(func(_ string, response *apiextensionsv1.ConversionResponse) metav1.Status {
		response.ConvertedObjects = nil
		return reviews.Success
	})),
	"wrong-version": converter(reviews.Each(func(*unstructured.Unstructured, string) {})),
	"another-name": converter(reviews.Each(func(object *unstructured.Unstructured, version string) {
		object.SetAPIVersion(version)
		object.SetName("somebody-else")
	})),
	"bad-label": converter(reviews.Each(func(object *unstructured.Unstructured, version string) {
		object.SetAPIVersion(version)
		object.SetLabels(map[string]string{"team": "no label at all"})
	})),
	"timeout": converter(reviews.Hang),
	"list":    converter(reviews.Refuse),

	"stored-version-removed": storedVersionRemoved,
	"no-storage-version":     manifest(strings.NewReplacer("storage: true", "storage: false")),
	"two-storage-versions":   manifest(strings.NewReplacer("storage: false", "storage: true")),
	"none-over-webhook":      noneOverWebhook,
	"no-strategy":            manifest(strings.NewReplacer("spec:\n  group", "spec:\n  conversion: {}\n  group")),
	"bad-bundle":             manifest(webhookManifest("Cg==", "v1")),
	"review-versions":        manifest(webhookManifest("", "v2")),
	"version-gone":           versionGone,
	"not-served":             notServed,
	"unknown-field":          unknownField,
	"definition-terminating": definitionTerminating,
	"large-manifest":         manifest(strings.NewReplacer("where the job runs", strings.Repeat("where the job runs ", 14<<10))),
	"versions-owned":         versionsOwned,
	"silent-loss":            func(*testing.T, *symptomCase) {},
}

// converter is the trouble with a converter that answers like this.
func converter(answer http.HandlerFunc) func(*testing.T, *symptomCase) {
	return func(t *testing.T, c *symptomCase) { c.serve(t, answer, converterOptions{}) }
}

// connection is the trouble with the connections of a converter.
func connection(o converterOptions) func(*testing.T, *symptomCase) {
	return func(t *testing.T, c *symptomCase) { c.serve(t, nil, o) }
}

func anotherAuthority() []byte {
	authority, err := pki.NewAuthority("somebody else", time.Now(), time.Hour)
	if err != nil {
		panic(err) // there is no reason for that
	}
	return authority.Certificate
}

func serviceNotFound(t *testing.T, c *symptomCase) {
	c.convertBy(t, `"service": {"namespace": "conversion-system", "name": "crontab-converter", "path": "/convert"}`, anotherAuthority())
}

// manifest is the trouble with a changed manifest of the CRD, crd.yaml.
func manifest(exchange *strings.Replacer) func(*testing.T, *symptomCase) {
	return func(t *testing.T, c *symptomCase) { c.file(t, "crd.yaml", exchange.Replace(c.definition(t))) }
}

// webhookManifest adds a webhook to a manifest.
func webhookManifest(bundle, reviewVersion string) *strings.Replacer {
	return strings.NewReplacer("spec:\n  group", `spec:
  conversion:
    strategy: Webhook
    webhook:
      conversionReviewVersions: [`+reviewVersion+`]
      clientConfig:
        caBundle: "`+bundle+`"
        service: {namespace: conversion-system, name: crontab-converter}
  group`)
}

// store returns the CRD with the storage version v1.
func (c *symptomCase) store(t *testing.T) string { return c.sample(t, "4-crd-storage-v1.yaml") }

// without removes v1beta1 from a CRD.
func without(definition string) string {
	before, rest, _ := strings.Cut(definition, "  - name: v1beta1\n")
	_, after, _ := strings.Cut(rest, "  - name: v1\n")
	return before + "  - name: v1\n" + after
}

func storedVersionRemoved(t *testing.T, c *symptomCase) {
	c.file(t, "crd.yaml", c.store(t))
	c.run(t, "kubectl apply -f crd.yaml")
	c.file(t, "crd.yaml", without(c.store(t)))
}

func noneOverWebhook(t *testing.T, c *symptomCase) {
	c.serve(t, reviews.Refuse, converterOptions{})
	manifest(strings.NewReplacer("spec:\n  group", "spec:\n  conversion: {strategy: None}\n  group"))(t, c)
}

// prune makes v1 the storage version, and prunes v1beta1 without a migration.
func (c *symptomCase) prune(t *testing.T) {
	t.Helper()
	c.file(t, "crd.yaml", c.store(t))
	c.run(t, "kubectl apply -f crd.yaml")
	c.run(t, `kubectl patch crd crontabs.example.com --subresource=status --type=merge -p '{"status": {"storedVersions": ["v1"]}}'`)
}

func versionGone(t *testing.T, c *symptomCase) {
	c.prune(t)
	c.run(t, `kubectl patch crontabs.v1.example.com local --type=merge -p '{}'`)
	c.file(t, "crd.yaml", without(c.store(t)))
	c.run(t, "kubectl apply -f crd.yaml")
	c.file(t, "local.yaml", "---\n{apiVersion: example.com/v1, kind: CronTab, metadata: {name: local}, host: localhost}")
}

func notServed(t *testing.T, c *symptomCase) {
	c.file(t, "crd.yaml", strings.Replace(c.store(t), "served: true", "served: false", 1))
	c.run(t, "kubectl apply -f crd.yaml")
	c.file(t, "local.yaml", c.object(t))
}

func unknownField(t *testing.T, c *symptomCase) {
	c.file(t, "local.yaml", strings.Replace(c.object(t), "example.com/v1beta1", "example.com/v1", 1))
}

func definitionTerminating(t *testing.T, c *symptomCase) {
	c.serve(t, reviews.Refuse, converterOptions{})
	c.run(t, `kubectl patch crd crontabs.example.com --type=json -p '[
		{"op": "replace", "path": "/spec/versions/0/storage", "value": false}, {"op": "replace", "path": "/spec/versions/1/storage", "value": true}]'`)
	c.run(t, "kubectl delete crd crontabs.example.com --wait=false")
}

func versionsOwned(t *testing.T, c *symptomCase) {
	c.file(t, "crd.yaml", c.definition(t))
	c.run(t, "kubectl apply --server-side --force-conflicts -f crd.yaml")
	c.run(t, `kubectl patch crd crontabs.example.com --field-manager=conversion-operator --type=json -p '[
		{"op": "add", "path": "/spec/versions/0/deprecated", "value": true}]'`)
	c.file(t, "crd.yaml", strings.ReplaceAll(c.definition(t), "replicas: {type: integer", "replicas: {minimum: 0, type: integer"))
}

// converterOptions break a converter's connections.
type converterOptions struct {
	// dnsName is the name in its certificate.
	dnsName string
	// issued is the beginning of its certificate, which is valid for an hour.
	issued time.Time
	// plain makes it serve HTTP without TLS.
	plain bool
	// down stops it before the first request.
	down bool
	// bundle is the caBundle, if that is not the converter's authority.
	bundle []byte
}

// serve starts a converter behind the Service crontab-converter, and configures the CronTab to use
// it.
func (c *symptomCase) serve(t *testing.T, answer http.HandlerFunc, o converterOptions) {
	t.Helper()
	o.dnsName = cmp.Or(o.dnsName, c.converter+".conversion-system.svc")
	if o.issued.IsZero() {
		o.issued = time.Now()
	}
	server, bundle := reviews.Begin(t, answer, o.dnsName, o.issued, func(server *httptest.Server) {
		if o.plain {
			server.Start()
		} else {
			server.StartTLS()
		}
	})
	if o.bundle != nil {
		bundle = o.bundle
	}
	_, port, err := net.SplitHostPort(server.Listener.Addr().String())
	expect.NoError(t, err)
	// A Service of type ExternalName leads to the test process.
	c.file(t, "service.yaml", `---
{apiVersion: v1, kind: Service, metadata: {name: crontab-converter, namespace: conversion-system},
  spec: {type: ExternalName, externalName: localhost}}`)
	c.run(t, "kubectl apply -f service.yaml")
	c.convertBy(t, `"service": {"namespace": "conversion-system", "name": "crontab-converter", "path": "/convert", "port": `+port+`}`, bundle)
	if o.down {
		server.Close()
	}
}
