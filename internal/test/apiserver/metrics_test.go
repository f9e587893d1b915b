//go:build integration

// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"

	"github.com/conversion-operator/conversion-operator/internal/test/expect"
	"github.com/conversion-operator/conversion-operator/internal/test/metricstable"
)

// ownMetrics are those of an API server that alerts and dashboards are made of.
// Most are alpha: another version of Kubernetes may have other names for them.
var ownMetrics = []string{
	"apiserver_conversion_webhook_duration_seconds",
	"apiserver_conversion_webhook_request_total",
	"apiserver_crd_conversion_webhook_duration_seconds",
	"apiserver_flowcontrol_request_wait_duration_seconds",
	"apiserver_request_total",
	"apiserver_requested_deprecated_apis",
}

// testOwnMetrics converts, and asks for a deprecated version. Then the API server
// has all that the documentation says it has.
func testOwnMetrics(t *testing.T, s *apiServer) {
	k := s.installGadgets(t, "counted")
	k.change(t, func(crd *apiextensionsv1.CustomResourceDefinition) {
		for i := range crd.Spec.Versions {
			crd.Spec.Versions[i].Deprecated = crd.Spec.Versions[i].Name == "v1beta1"
		}
	})
	k.create(t, "v1", "one", spec("v1", "a"))
	k.get(t, "v1beta1", "one")

	config := rest.CopyConfig(s.config)
	config.NegotiatedSerializer = scheme.Codecs.WithoutConversion()
	client, err := rest.UnversionedRESTClientFor(config)
	expect.NoError(t, err)
	scraped, err := client.Get().AbsPath("/metrics").DoRaw(t.Context())
	expect.NoError(t, err)
	metricstable.Table{Page: "../../../api/docs/metrics.md", Name: "API SERVER METRICS", Names: ownMetrics}.Check(t, string(scraped))
}
