//go:build integration

// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package answers

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/conversion-operator/conversion-operator/internal/pki"
	"github.com/conversion-operator/conversion-operator/internal/test/expect"
	"github.com/conversion-operator/conversion-operator/internal/test/reviews"
)

// converters are the ways in which the call of a converter fails. The answer of a converter that
// refuses an object is the only one that concerns the object.
var converters = map[string]func(*testing.T, *recorder, string){
	"converter-refuses": converter(reviews.Refuse),
	"converter-refuses-without-reason": converter(reviews.Answer(func(string, *apiextensionsv1.ConversionResponse) metav1.Status {
		return metav1.Status{Status: metav1.StatusFailure}
	})),
	"converter-returns-no-object": converter(reviews.Answer(func(_ string, response *apiextensionsv1.ConversionResponse) metav1.Status {
		response.ConvertedObjects = nil
		return reviews.Success
	})),
	"converter-returns-another-version": converter(reviews.Answer(func(string, *apiextensionsv1.ConversionResponse) metav1.Status { return reviews.Success })),
	"converter-renames":                 converter(edit(func(object *unstructured.Unstructured) { object.SetName("another") })),
	"converter-sets-a-bad-label": converter(edit(func(object *unstructured.Unstructured) {
		object.SetLabels(map[string]string{"team": "no label at all"})
	})),
	"converter-answers-another-request": converter(reviews.Answer(func(_ string, response *apiextensionsv1.ConversionResponse) metav1.Status {
		response.UID = "another"
		return reviews.Success
	})),
	"converter-answers-without-response": converter(text(http.StatusOK, `{"apiVersion": "apiextensions.k8s.io/v1", "kind": "ConversionReview"}`)),
	"converter-answers-another-kind":     converter(text(http.StatusOK, `{"apiVersion": "v1", "kind": "Status", "status": "Success"}`)),
	"converter-answers-html":             converter(text(http.StatusOK, "<html>Sign in</html>")),
	"converter-answers-400":              converter(text(http.StatusBadRequest, "no")),
	"converter-answers-401":              converter(text(http.StatusUnauthorized, "no")),
	"converter-answers-403":              converter(text(http.StatusForbidden, "no")),
	"converter-answers-404":              converter(text(http.StatusNotFound, "404 page not found")),
	"converter-answers-405":              converter(text(http.StatusMethodNotAllowed, "no")),
	"converter-answers-413":              converter(text(http.StatusRequestEntityTooLarge, "too large")),
	"converter-answers-429":              converter(text(http.StatusTooManyRequests, "too many")),
	"converter-answers-500":              converter(text(http.StatusInternalServerError, "a panic")),
	"converter-answers-502":              converter(text(http.StatusBadGateway, "no")),
	"converter-answers-503":              converter(text(http.StatusServiceUnavailable, "no")),
	"converter-answers-504":              converter(text(http.StatusGatewayTimeout, "no")),
	"converter-redirects":                converter(http.RedirectHandler("/convert", http.StatusFound).ServeHTTP),
	"converter-closes":                   converter(func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }),
	"converter-hangs":                    converter(reviews.Hang),

	"converter-is-down":                  broken(func(server *httptest.Server) { server.StartTLS(); server.Close() }),
	"converter-without-tls":              broken(func(server *httptest.Server) { server.Start() }),
	"converter-of-another-authority":     untrusted,
	"converter-with-another-name":        certified("converter.example.com", 0),
	"converter-with-expired-certificate": certified(localhost, -2*time.Hour),

	"converter-service-not-found":    service(nil, nil),
	"converter-service-without-port": service(&corev1.ServiceSpec{Ports: []corev1.ServicePort{{Name: "other", Port: 8443}}}, nil),
	"converter-service-without-pods": service(&corev1.ServiceSpec{Ports: []corev1.ServicePort{{Name: "https", Port: 443}}}, nil),
	"converter-service-without-ready-pods": service(&corev1.ServiceSpec{Ports: []corev1.ServicePort{{Name: "https", Port: 443}}}, &corev1.EndpointSubset{ //nolint:staticcheck // Kubernetes 1.32 reads it
		NotReadyAddresses: []corev1.EndpointAddress{{IP: "10.1.2.3"}}, Ports: []corev1.EndpointPort{{Name: "https", Port: 443}}}),
	"converter-service-headless": service(&corev1.ServiceSpec{ClusterIP: corev1.ClusterIPNone, Ports: []corev1.ServicePort{{Name: "https", Port: 443}}}, nil),
}

// localhost is the address of converters, and the name in their certificates.
const localhost = "127.0.0.1"

// called matches every error of a conversion.
var called = regexp.MustCompile("conversion webhook for ")

// webhookPatch makes a resource use a converter.
func webhookPatch(t *testing.T, config apiextensionsv1.WebhookClientConfig) string {
	t.Helper()
	text, err := json.Marshal(apiextensionsv1.CustomResourceConversion{Strategy: apiextensionsv1.WebhookConverter,
		Webhook: &apiextensionsv1.WebhookConversion{ClientConfig: &config, ConversionReviewVersions: []string{"v1"}}})
	expect.NoError(t, err)
	return `[{"op": "replace", "path": "/spec/conversion", "value": ` + string(text) + `}]`
}

// call makes the resource use a converter, and records all answers.
func (r *recorder) call(t *testing.T, name string, config apiextensionsv1.WebhookClientConfig) {
	t.Helper()
	expect.NoError(t, r.change(t.Context(), name, webhookPatch(t, config)))
	r.failing(t, name, called, Create, List)
}

// begin starts a converter, and returns how to call it.
func begin(t *testing.T, answer http.HandlerFunc, name string, age time.Duration, start func(*httptest.Server)) apiextensionsv1.WebhookClientConfig {
	t.Helper()
	server, bundle := reviews.Begin(t, answer, name, time.Now().Add(age), start)
	url := strings.Replace(server.URL, "http://", "https://", 1) + "/convert"
	return apiextensionsv1.WebhookClientConfig{URL: &url, CABundle: bundle}
}

func converter(answer http.HandlerFunc) func(*testing.T, *recorder, string) {
	return func(t *testing.T, r *recorder, name string) {
		r.call(t, name, begin(t, answer, localhost, 0, (*httptest.Server).StartTLS))
	}
}

func broken(start func(*httptest.Server)) func(*testing.T, *recorder, string) {
	return func(t *testing.T, r *recorder, name string) {
		r.call(t, name, begin(t, http.NotFound, localhost, 0, start))
	}
}

// untrusted is a converter whose authority API servers do not know.
func untrusted(t *testing.T, r *recorder, name string) {
	config := begin(t, http.NotFound, localhost, 0, (*httptest.Server).StartTLS)
	config.CABundle = anotherAuthority(t)
	r.call(t, name, config)
}

func anotherAuthority(t *testing.T) []byte {
	t.Helper()
	authority, err := pki.NewAuthority("converters of tests", time.Now(), time.Hour)
	expect.NoError(t, err)
	return authority.Certificate
}

func certified(dnsName string, age time.Duration) func(*testing.T, *recorder, string) {
	return func(t *testing.T, r *recorder, name string) {
		r.call(t, name, begin(t, http.NotFound, dnsName, age, (*httptest.Server).StartTLS))
	}
}

// service is a converter behind a Service that leads nowhere.
func service(spec *corev1.ServiceSpec, pods *corev1.EndpointSubset) func(*testing.T, *recorder, string) { //nolint:staticcheck // Kubernetes 1.32 reads it
	return func(t *testing.T, r *recorder, name string) {
		meta := metav1.ObjectMeta{Namespace: metav1.NamespaceDefault, Name: name}
		if spec != nil {
			expect.NoError(t, r.Client.Create(t.Context(), &corev1.Service{ObjectMeta: meta, Spec: *spec}))
		}
		if pods != nil {
			expect.NoError(t, r.Client.Create(t.Context(), &corev1.Endpoints{ObjectMeta: meta, Subsets: []corev1.EndpointSubset{*pods}})) //nolint:staticcheck // Kubernetes 1.32 reads it
		}
		r.call(t, name, apiextensionsv1.WebhookClientConfig{Service: &apiextensionsv1.ServiceReference{Namespace: metav1.NamespaceDefault, Name: name},
			CABundle: anotherAuthority(t)})
	}
}

// edit converts objects, and edits them.
func edit(change func(*unstructured.Unstructured)) http.HandlerFunc {
	return reviews.Each(func(object *unstructured.Unstructured, version string) {
		object.SetAPIVersion(version)
		change(object)
	})
}

func text(code int, body string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(code)
		_, _ = io.WriteString(w, body)
	}
}
