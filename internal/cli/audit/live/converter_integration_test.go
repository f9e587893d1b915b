//go:build integration

// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package live

import (
	"crypto/tls"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/conversion-operator/conversion-operator/internal/operator/pki"
	"github.com/conversion-operator/conversion-operator/internal/test/expect"
	"github.com/conversion-operator/conversion-operator/internal/test/reviews"
)

// rename converts by changing only apiVersion.
var rename = reviews.Each((*unstructured.Unstructured).SetAPIVersion)

// newConverter starts a converter whose certificate is valid for a time. That of its authority is valid for
// longer than those of package reviews, about whose end the audit would warn.
func newConverter(t *testing.T, valid time.Duration, answer http.HandlerFunc) *apiextensionsv1.WebhookClientConfig {
	t.Helper()
	authority, err := pki.NewAuthority("converters of tests", time.Now(), year)
	expect.NoError(t, err)
	leaf, err := pki.IssueLeaf(authority, "127.0.0.1", time.Now(), valid)
	expect.NoError(t, err)
	pair, err := tls.X509KeyPair(leaf.Certificate, leaf.Key)
	expect.NoError(t, err)
	server := httptest.NewUnstartedServer(answer)
	server.TLS = &tls.Config{Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS12}
	server.Config.ErrorLog = log.New(io.Discard, "", 0) // clients report handshake errors
	server.StartTLS()
	t.Cleanup(server.Close)
	return &apiextensionsv1.WebhookClientConfig{URL: &server.URL, CABundle: authority.Certificate}
}
