//go:build integration

// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package answers

import (
	"crypto/tls"
	"encoding/json"
	"fmt"
	"io"
	"log"
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
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/conversion-operator/conversion-operator/internal/pki"
	"github.com/conversion-operator/conversion-operator/internal/test/expect"
)

// converters are the ways in which the call of a converter fails. The answer of a converter that
// refuses an object is the only one that concerns the object.
var converters = map[string]func(*testing.T, *recorder, string){
	"converter-refuses": converter(review(func(_ string, _ *apiextensionsv1.ConversionResponse) metav1.Status {
		return metav1.Status{Status: metav1.StatusFailure, Message: "hostPort of local has no port"}
	})),
	"converter-refuses-without-reason": converter(review(func(string, *apiextensionsv1.ConversionResponse) metav1.Status {
		return metav1.Status{Status: metav1.StatusFailure}
	})),
	"converter-returns-no-object": converter(review(func(_ string, response *apiextensionsv1.ConversionResponse) metav1.Status {
		response.ConvertedObjects = nil
		return success
	})),
	"converter-returns-another-version": converter(review(func(string, *apiextensionsv1.ConversionResponse) metav1.Status { return success })),
	"converter-renames":                 converter(edit(func(object *unstructured.Unstructured) { object.SetName("another") })),
	"converter-sets-a-bad-label": converter(edit(func(object *unstructured.Unstructured) {
		object.SetLabels(map[string]string{"team": "no label at all"})
	})),
	"converter-answers-another-request": converter(review(func(_ string, response *apiextensionsv1.ConversionResponse) metav1.Status {
		response.UID = "another"
		return success
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
	"converter-hangs":                    converter(hang),

	"converter-is-down":                  broken(func(server *httptest.Server) { server.StartTLS(); server.Close() }),
	"converter-without-tls":              broken(func(server *httptest.Server) { server.Start() }),
	"converter-of-another-authority":     broken(func(server *httptest.Server) { server.TLS = served("127.0.0.1", time.Now()).TLS; server.StartTLS() }),
	"converter-with-another-name":        certified("converter.example.com", 0),
	"converter-with-expired-certificate": certified("127.0.0.1", -2*time.Hour),

	"converter-service-not-found":    service(nil, nil),
	"converter-service-without-port": service(&corev1.ServiceSpec{Ports: []corev1.ServicePort{{Name: "other", Port: 8443}}}, nil),
	"converter-service-without-pods": service(&corev1.ServiceSpec{Ports: []corev1.ServicePort{{Name: "https", Port: 443}}}, nil),
	"converter-service-without-ready-pods": service(&corev1.ServiceSpec{Ports: []corev1.ServicePort{{Name: "https", Port: 443}}}, &corev1.EndpointSubset{ //nolint:staticcheck // Kubernetes 1.32 reads it
		NotReadyAddresses: []corev1.EndpointAddress{{IP: "10.1.2.3"}}, Ports: []corev1.EndpointPort{{Name: "https", Port: 443}}}),
	"converter-service-headless": service(&corev1.ServiceSpec{ClusterIP: corev1.ClusterIPNone, Ports: []corev1.ServicePort{{Name: "https", Port: 443}}}, nil),
}

var success = metav1.Status{Status: metav1.StatusSuccess}

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

// credentials are those of a converter and the authority that API servers trust.
type credentials struct {
	TLS    *tls.Config
	bundle []byte
}

func served(name string, issued time.Time) credentials {
	authority, err := pki.NewAuthority("converters of tests", issued, 3*time.Hour)
	if err != nil {
		panic(err) // cannot happen: the input is constant
	}
	leaf, err := pki.IssueLeaf(authority, name, issued, time.Hour)
	if err != nil {
		panic(err) // cannot happen: the input is constant
	}
	pair, err := tls.X509KeyPair(leaf.Certificate, leaf.Key)
	if err != nil {
		panic(err) // cannot happen: the input is constant
	}
	return credentials{TLS: &tls.Config{Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS12}, bundle: authority.Certificate}
}

// begin starts a server, and returns how to call it.
func begin(t *testing.T, answer http.HandlerFunc, c credentials, start func(*httptest.Server)) apiextensionsv1.WebhookClientConfig {
	t.Helper()
	server := httptest.NewUnstartedServer(answer)
	server.Config.ErrorLog = log.New(io.Discard, "", 0) // handshakes fail on purpose
	server.TLS = c.TLS
	start(server)
	t.Cleanup(func() {
		server.CloseClientConnections()
		server.Close()
	})
	url := strings.Replace(server.URL, "http://", "https://", 1) + "/convert"
	return apiextensionsv1.WebhookClientConfig{URL: &url, CABundle: c.bundle}
}

func converter(answer http.HandlerFunc) func(*testing.T, *recorder, string) {
	return func(t *testing.T, r *recorder, name string) {
		r.call(t, name, begin(t, answer, served("127.0.0.1", time.Now()), (*httptest.Server).StartTLS))
	}
}

func broken(start func(*httptest.Server)) func(*testing.T, *recorder, string) {
	return func(t *testing.T, r *recorder, name string) {
		r.call(t, name, begin(t, http.NotFound, served("127.0.0.1", time.Now()), start))
	}
}

func certified(dnsName string, age time.Duration) func(*testing.T, *recorder, string) {
	return func(t *testing.T, r *recorder, name string) {
		r.call(t, name, begin(t, http.NotFound, served(dnsName, time.Now().Add(age)), (*httptest.Server).StartTLS))
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
			CABundle: served(name, time.Now()).bundle})
	}
}

func text(code int, body string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(code)
		_, _ = io.WriteString(w, body)
	}
}

// hang never answers. It must read the request to notice that the caller gave up.
func hang(_ http.ResponseWriter, r *http.Request) {
	_, _ = io.Copy(io.Discard, r.Body)
	<-r.Context().Done()
}

// review answers with the objects of the request, after a change.
func review(change func(version string, response *apiextensionsv1.ConversionResponse) metav1.Status) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		review := &apiextensionsv1.ConversionReview{}
		if err := json.NewDecoder(r.Body).Decode(review); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		review.Response = &apiextensionsv1.ConversionResponse{UID: review.Request.UID, ConvertedObjects: review.Request.Objects}
		review.Response.Result = change(review.Request.DesiredAPIVersion, review.Response)
		review.Request = nil
		if err := json.NewEncoder(w).Encode(review); err != nil {
			panic(fmt.Sprintf("an answer cannot be encoded: %v", err))
		}
	}
}

// edit converts objects, and edits them.
func edit(change func(*unstructured.Unstructured)) http.HandlerFunc {
	return review(func(version string, response *apiextensionsv1.ConversionResponse) metav1.Status {
		for i, raw := range response.ConvertedObjects {
			object := &unstructured.Unstructured{}
			if err := object.UnmarshalJSON(raw.Raw); err != nil {
				return metav1.Status{Status: metav1.StatusFailure, Message: err.Error()}
			}
			object.SetAPIVersion(version)
			change(object)
			response.ConvertedObjects[i] = runtime.RawExtension{Object: object}
		}
		return success
	})
}
