// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package reviews answers ConversionReviews in tests, as good and as bad converters do.
package reviews

import (
	"crypto/tls"
	"encoding/json"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/conversion-operator/conversion-operator/internal/operator/pki"
	"github.com/conversion-operator/conversion-operator/internal/test/expect"
)

// Success is the result of a conversion.
var Success = metav1.Status{Status: metav1.StatusSuccess}

// Refuse answers that the object of the request is wrong.
var Refuse = Answer(func(_ string, response *apiextensionsv1.ConversionResponse) metav1.Status {
	response.ConvertedObjects = nil
	return metav1.Status{Status: metav1.StatusFailure, Message: "hostPort of local has no port"}
})

// Answer answers with the objects of the request after a change, which gets the wanted version, and with
// its result.
func Answer(change func(version string, response *apiextensionsv1.ConversionResponse) metav1.Status) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		review := &apiextensionsv1.ConversionReview{}
		if err := json.NewDecoder(r.Body).Decode(review); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		review.Response = &apiextensionsv1.ConversionResponse{UID: review.Request.UID, ConvertedObjects: review.Request.Objects}
		review.Response.Result = change(review.Request.DesiredAPIVersion, review.Response)
		review.Request = nil
		_ = json.NewEncoder(w).Encode(review) // the caller may be gone
	}
}

// Each answers with the objects of the request, each after a change that gets the wanted version.
func Each(change func(object *unstructured.Unstructured, version string)) http.HandlerFunc {
	return Answer(func(version string, response *apiextensionsv1.ConversionResponse) metav1.Status {
		for i, raw := range response.ConvertedObjects {
			object := &unstructured.Unstructured{}
			if err := object.UnmarshalJSON(raw.Raw); err != nil {
				return metav1.Status{Status: metav1.StatusFailure, Message: err.Error()}
			}
			change(object, version)
			response.ConvertedObjects[i] = runtime.RawExtension{Object: object}
		}
		return Success
	})
}

// Hang never answers. It must read the request to notice that the caller gave up.
func Hang(_ http.ResponseWriter, r *http.Request) {
	_, _ = io.Copy(io.Discard, r.Body)
	<-r.Context().Done()
}

// Begin starts a server with a certificate for a name, which is valid for an hour after it was issued. It
// returns the authority of the certificate. Start is a method of the server, or more.
func Begin(tb testing.TB, answer http.HandlerFunc, name string, issued time.Time, start func(*httptest.Server)) (server *httptest.Server, bundle []byte) {
	tb.Helper()
	authority, err := pki.NewAuthority("converters of tests", issued, 3*time.Hour)
	expect.NoError(tb, err)
	leaf, err := pki.IssueLeaf(authority, name, issued, time.Hour)
	expect.NoError(tb, err)
	pair, err := tls.X509KeyPair(leaf.Certificate, leaf.Key)
	expect.NoError(tb, err)
	server = httptest.NewUnstartedServer(answer)
	server.Config.ErrorLog = log.New(io.Discard, "", 0) // handshakes fail on purpose
	server.TLS = &tls.Config{Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS12}
	start(server)
	tb.Cleanup(func() {
		server.CloseClientConnections()
		server.Close()
	})
	return server, authority.Certificate
}
