// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build integration

package migration

import (
	"encoding/pem"
	"net/http/httptest"
	"path"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/conversion-operator/conversion-operator/internal/test/reviews"
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

// convertThrough points the definition at a converter that converts an object to a version.
func (r *resource) convertThrough(t *testing.T, convert func(object []byte, version string) ([]byte, error)) {
	t.Helper()
	server := httptest.NewTLSServer(reviews.Answer(func(version string, response *apiextensionsv1.ConversionResponse) metav1.Status {
		for i, object := range response.ConvertedObjects {
			converted, err := convert(object.Raw, path.Base(version))
			if err != nil {
				response.ConvertedObjects = nil
				return metav1.Status{Status: metav1.StatusFailure, Message: err.Error()}
			}
			response.ConvertedObjects[i].Raw = converted
		}
		return reviews.Success
	}))
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

// mark adds a mark to converted objects, which shows in etcd.
func mark(object *unstructured.Unstructured) error {
	object.Object["spec"] = map[string]any{"host": "converted"}
	return nil
}
