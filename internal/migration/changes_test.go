// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build integration

package migration

import (
	"encoding/json"
	"encoding/pem"
	"errors"
	"net/http"
	"net/http/httptest"
	"path"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
)

// convertBy makes the API server convert objects by a function that changes them.
func (r *resource) convertBy(t *testing.T, change func(*unstructured.Unstructured) error) {
	t.Helper()
	r.convertThrough(t, func(raw []byte, version string) ([]byte, error) {
		object := &unstructured.Unstructured{}
		if err := object.UnmarshalJSON(raw); err != nil {
			return nil, err
		}
		object.SetAPIVersion(path.Join(r.CRD.Spec.Group, version))
		if err := change(object); err != nil {
			return nil, err
		}
		return object.MarshalJSON()
	})
}

// convertThrough points the definition at a converter.
func (r *resource) convertThrough(t *testing.T, convert converter) {
	t.Helper()
	server := httptest.NewTLSServer(convert)
	t.Cleanup(server.Close)
	r.Change(t, func(crd *apiextensionsv1.CustomResourceDefinition) {
		crd.Spec.Conversion = &apiextensionsv1.CustomResourceConversion{
			Strategy: apiextensionsv1.WebhookConverter,
			Webhook: &apiextensionsv1.WebhookConversion{ConversionReviewVersions: []string{"v1"}, ClientConfig: &apiextensionsv1.WebhookClientConfig{
				URL: &server.URL, CABundle: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}),
			}},
		}
	})
}

// errConverterUnavailable makes the converter close the connection.
var errConverterUnavailable = errors.New("the converter is unavailable")

// converter converts an object to a version.
type converter func(object []byte, version string) ([]byte, error)

func (c converter) ServeHTTP(w http.ResponseWriter, request *http.Request) {
	var review apiextensionsv1.ConversionReview
	if err := json.NewDecoder(request.Body).Decode(&review); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	review.Response = &apiextensionsv1.ConversionResponse{UID: review.Request.UID, Result: metav1.Status{Status: metav1.StatusSuccess}}
	for _, object := range review.Request.Objects {
		converted, err := c(object.Raw, path.Base(review.Request.DesiredAPIVersion))
		if errors.Is(err, errConverterUnavailable) {
			panic(http.ErrAbortHandler)
		}
		if err != nil {
			review.Response.Result = metav1.Status{Status: metav1.StatusFailure, Message: err.Error()}
			review.Response.ConvertedObjects = nil
			break
		}
		review.Response.ConvertedObjects = append(review.Response.ConvertedObjects, runtime.RawExtension{Raw: converted})
	}
	review.Request = nil
	_ = json.NewEncoder(w).Encode(review)
}

// mark adds a mark to converted objects, which shows in etcd.
func mark(object *unstructured.Unstructured) error {
	object.Object["spec"] = map[string]any{"host": "converted"}
	return nil
}
