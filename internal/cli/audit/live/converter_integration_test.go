//go:build integration

// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package live

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

const loopback = "127.0.0.1"

// converter is a conversion webhook on this machine.
type converter struct {
	url    string
	bundle []byte
}

// newConverter starts a converter whose certificate is valid for a time.
func newConverter(t *testing.T, valid time.Duration, answer func(*apiextensionsv1.ConversionRequest) *apiextensionsv1.ConversionResponse) converter {
	t.Helper()
	authority, err := pki.NewAuthority("converters of tests", time.Now(), 365*24*time.Hour)
	expect.NoError(t, err)
	leaf, err := pki.IssueLeaf(authority, loopback, time.Now(), valid)
	expect.NoError(t, err)
	pair, err := tls.X509KeyPair(leaf.Certificate, leaf.Key)
	expect.NoError(t, err)
	server := httptest.NewUnstartedServer(answering(answer))
	server.TLS = &tls.Config{Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS12}
	server.Config.ErrorLog = log.New(io.Discard, "", 0) // clients report handshake errors
	server.StartTLS()
	t.Cleanup(server.Close)
	return converter{server.URL, authority.Certificate}
}

// answering answers ConversionReviews.
func answering(answer func(request *apiextensionsv1.ConversionRequest) *apiextensionsv1.ConversionResponse) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		review := apiextensionsv1.ConversionReview{}
		if err := json.NewDecoder(r.Body).Decode(&review); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		review.Response = answer(review.Request)
		review.Response.UID, review.Request = review.Request.UID, nil
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(review)
	}
}

// rename converts by changing only apiVersion.
func rename(request *apiextensionsv1.ConversionRequest) *apiextensionsv1.ConversionResponse {
	response := &apiextensionsv1.ConversionResponse{Result: metav1.Status{Status: metav1.StatusSuccess}}
	for _, raw := range request.Objects {
		object := &unstructured.Unstructured{}
		_ = object.UnmarshalJSON(raw.Raw) // API servers send objects
		object.SetAPIVersion(request.DesiredAPIVersion)
		response.ConvertedObjects = append(response.ConvertedObjects, runtime.RawExtension{Object: object})
	}
	return response
}

// refuse answers that it cannot convert.
func refuse(*apiextensionsv1.ConversionRequest) *apiextensionsv1.ConversionResponse {
	return &apiextensionsv1.ConversionResponse{Result: metav1.Status{Status: metav1.StatusFailure, Message: "such an object is beyond me"}}
}
