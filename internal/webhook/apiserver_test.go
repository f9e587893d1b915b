// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"crypto/tls"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/conversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/conversion-operator/conversion-operator/internal/test/expect"
	"github.com/conversion-operator/conversion-operator/internal/webhook/internal/testca"
)

const serviceName = "crontabs.conversion-system.svc"

// endpoint resolves every Service to one address.
type endpoint string

func (e endpoint) ResolveEndpoint(string, string, int32) (*url.URL, error) {
	return &url.URL{Scheme: "https", Host: string(e)}, nil
}

// apiServer returns the converter of a real API server for a CustomResourceDefinition of
// example.com, with handler as its webhook.
func apiServer(t *testing.T, handler http.Handler) runtime.ObjectConvertor {
	t.Helper()
	authority := testca.New(t)
	server := httptest.NewUnstartedServer(handler)
	server.TLS = &tls.Config{Certificates: []tls.Certificate{authority.Issue(t, serviceName, time.Now().Add(time.Hour)).TLS(t)}}
	server.StartTLS()
	t.Cleanup(server.Close)

	factory, err := conversion.NewCRConverterFactory(endpoint(server.Listener.Addr().String()), nil)
	expect.NoError(t, err)
	// The factory caches clients by configuration, and metrics by the name of the definition.
	converter, _, err := factory.NewConverter(definition(strings.ToLower(strings.ReplaceAll(t.Name(), "/", "-")), authority.Bundle))
	expect.NoError(t, err)
	return converter
}

func definition(name string, bundle []byte) *apiextensionsv1.CustomResourceDefinition {
	service := &apiextensionsv1.ServiceReference{Namespace: "conversion-system", Name: "crontabs", Path: new(testPath), Port: new(int32(443))}
	crd := &apiextensionsv1.CustomResourceDefinition{ObjectMeta: metav1.ObjectMeta{Name: name}}
	crd.Spec.Group, crd.Spec.Scope = "example.com", apiextensionsv1.NamespaceScoped
	crd.Spec.Versions = []apiextensionsv1.CustomResourceDefinitionVersion{{Name: "v1beta1"}, {Name: "v1"}, {Name: "v2"}, {Name: "v3"}}
	crd.Spec.Conversion = &apiextensionsv1.CustomResourceConversion{Strategy: apiextensionsv1.WebhookConverter, Webhook: &apiextensionsv1.WebhookConversion{
		ConversionReviewVersions: []string{"v1"}, ClientConfig: &apiextensionsv1.WebhookClientConfig{CABundle: bundle, Service: service},
	}}
	return crd
}

func cronTab(version, name string) unstructured.Unstructured {
	return unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "example.com/" + version,
		"kind":       "CronTab",
		"metadata":   map[string]any{"name": name, "namespace": "default", "uid": name + "-uid", "labels": map[string]any{"a": "b"}},
		"spec":       map[string]any{"replicas": int64(9007199254740993)},
	}}
}

// TestAPIServerConverts runs the converter out of the API server's own library against the handler.
func TestAPIServerConverts(t *testing.T) {
	cases := map[string]struct {
		in, want runtime.Object
	}{
		"one object": {new(cronTab("v1beta1", "one")), new(cronTab("v1", "one"))},
		"an object with empty metadata": {
			&unstructured.Unstructured{Object: map[string]any{"apiVersion": "example.com/v1beta1", "kind": "CronTab", "metadata": map[string]any{}, "spec": map[string]any{}}},
			&unstructured.Unstructured{Object: map[string]any{"apiVersion": "example.com/v1", "kind": "CronTab", "metadata": map[string]any{}, "spec": map[string]any{}}},
		},
		"a list at mixed versions": {
			list("v1beta1", cronTab("v1beta1", "one"), cronTab("v1", "two"), cronTab("v2", "three")),
			list("v1", cronTab("v1", "one"), cronTab("v1", "two"), cronTab("v1", "three")),
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got, err := apiServer(t, newTestHandler()).ConvertToVersion(tc.in, schema.GroupVersion{Group: "example.com", Version: "v1"})
			expect.NoError(t, err)
			expect.Equal(t, "object", tc.want, got)
		})
	}
}

// TestAPIServerShowsFailures checks the messages that users of kubectl see, of a failure in a review and of a refusal.
func TestAPIServerShowsFailures(t *testing.T) {
	const head = "conversion webhook for example.com/v1beta1, Kind=CronTab failed: "
	for name, test := range map[string]struct {
		object  string
		options HandlerOptions
		want    string
	}{
		"failure":      {object: "bad", want: head + "default/bad cannot be converted from v1beta1 to v1: .spec.hostPort: it is bad"},
		"large object": {object: "one", options: HandlerOptions{MaxBodyBytes: 10}, want: head + "the review is larger than the 10 bytes that the converter accepts"},
		"preserved data without room": {object: "overflow", want: head + "default/overflow cannot be converted from v1beta1 to v1: the fields that only version v1beta1 has take 300000 bytes, and all annotations together may take 262144: " +
			"truncate the object's annotations, of which the others take 100, or those fields, or set overflow to Drop in the ConversionPolicy"},
	} {
		t.Run(name, func(t *testing.T) {
			test.options.Log = logr.Discard()
			handler := NewHandler(only(convertFunc(rename)), test.options)
			_, err := apiServer(t, handler).ConvertToVersion(new(cronTab("v1beta1", test.object)), schema.GroupVersion{Group: "example.com", Version: "v1"})
			expect.Equal(t, "error", test.want, text(err))
		})
	}
}

// TestAPIServerRetries checks that an API server follows Retry-After, so that no client notices a pod that is busy,
// or has outdated rules.
func TestAPIServerRetries(t *testing.T) {
	busy := NewHandler(only(convertFunc(rename)), HandlerOptions{Log: logr.Discard()})
	makeBusy(t, busy)
	for name, test := range map[string]struct {
		first   *Handler
		status  int
		message string
	}{
		"busy":           {busy, http.StatusTooManyRequests, "the converter is busy"},
		"outdated rules": {NewHandler([]Ruleset{labelled("def")}, HandlerOptions{Log: logr.Discard()}), http.StatusServiceUnavailable, `does not have the rules \"abc\": `},
	} {
		t.Run(name, func(t *testing.T) {
			var statuses []int
			pods := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				handler := newTestHandler()
				if len(statuses) == 0 {
					handler = test.first
				}
				recorder := httptest.NewRecorder()
				handler.ServeHTTP(recorder, r)
				if text := recorder.Body.String(); len(statuses) == 0 && !strings.Contains(text, test.message) {
					t.Errorf("the first pod answered %s", text)
				}
				statuses = append(statuses, recorder.Code)
				maps.Copy(w.Header(), recorder.Header())
				w.WriteHeader(recorder.Code)
				_, _ = w.Write(recorder.Body.Bytes())
			})
			got, err := apiServer(t, pods).ConvertToVersion(new(cronTab("v1beta1", "one")), schema.GroupVersion{Group: "example.com", Version: "v1"})
			expect.NoError(t, err)
			expect.Equal[runtime.Object](t, "object", new(cronTab("v1", "one")), got)
			expect.Equal(t, "statuses", []int{test.status, http.StatusOK}, statuses)
		})
	}
}

func list(version string, items ...unstructured.Unstructured) *unstructured.UnstructuredList {
	return &unstructured.UnstructuredList{
		Object: map[string]any{"apiVersion": "example.com/" + version, "kind": "CronTabList"},
		Items:  items,
	}
}
