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

	admissionv1 "k8s.io/api/admission/v1"
	registrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/conversion-operator/conversion-operator/internal/operator/pki"
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

// admissions are the ways in which admission refuses a patch, or does not answer.
var admissions = map[string]func(*testing.T, *recorder, string){
	"admission-denies":             validates(deny(http.StatusForbidden)),
	"admission-denies-as-invalid":  validates(deny(http.StatusUnprocessableEntity)),
	"admission-denies-as-401":      validates(deny(http.StatusUnauthorized)),
	"admission-denies-as-404":      validates(deny(http.StatusNotFound)),
	"admission-denies-as-409":      validates(deny(http.StatusConflict)),
	"admission-denies-without-why": validates(deny(0)),
	"admission-answers-500":        validates(text(http.StatusInternalServerError, "a panic")),
	"admission-answers-404":        validates(text(http.StatusNotFound, "404 page not found")),
	"admission-answers-html":       validates(text(http.StatusOK, "<html>Sign in</html>")),
	"admission-hangs":              validates(reviews.Hang),
	"admission-is-down":            webhook(http.NotFound, func(server *httptest.Server) { server.StartTLS(); server.Close() }),
	"admission-service-not-found":  missingWebhook,
	"mutation-denies":              mutates(deny(http.StatusForbidden)),
	"mutation-is-wrong": mutates(respond(func(response *admissionv1.AdmissionResponse) {
		response.Allowed = true
		response.PatchType, response.Patch = new(admissionv1.PatchTypeJSONPatch), []byte(`[{"op": "remove", "path": "/absent"}]`)
	})),

	"policy-denies":            policy(registrationv1.Validation{Expression: "false", Message: "it is held back"}),
	"policy-denies-by-default": policy(registrationv1.Validation{Expression: "false"}),
	"policy-denies-as-forbidden": policy(registrationv1.Validation{Expression: "false",
		Message: "it is held back", Reason: new(metav1.StatusReasonForbidden)}),
	"policy-denies-as-too-large": policy(registrationv1.Validation{Expression: "false",
		Message: "it is held back", Reason: new(metav1.StatusReasonRequestEntityTooLarge)}),
	"policy-fails": policy(registrationv1.Validation{Expression: "object.absent == 1"}),
}

// admissionTimeout is in seconds. On a busy machine, webhooks that answer do so in time.
const admissionTimeout = 15

func respond(change func(*admissionv1.AdmissionResponse)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		review := &admissionv1.AdmissionReview{}
		if err := json.NewDecoder(r.Body).Decode(review); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		review.Response = &admissionv1.AdmissionResponse{UID: review.Request.UID}
		change(review.Response)
		review.Request = nil
		_ = json.NewEncoder(w).Encode(review) // the caller may be gone
	}
}

func deny(code int32) http.HandlerFunc {
	return respond(func(response *admissionv1.AdmissionResponse) {
		if code != 0 {
			response.Result = &metav1.Status{Code: code, Message: "it is held back"}
		}
	})
}

func rulesOf(resource string) []registrationv1.RuleWithOperations {
	return []registrationv1.RuleWithOperations{{
		Operations: []registrationv1.OperationType{registrationv1.Update},
		Rule:       registrationv1.Rule{APIGroups: []string{Group}, APIVersions: []string{"*"}, Resources: []string{resource}},
	}}
}

func (r *recorder) validate(t *testing.T, name string, config registrationv1.WebhookClientConfig) {
	t.Helper()
	expect.NoError(t, r.Client.Create(t.Context(), &registrationv1.ValidatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: name},
		Webhooks: []registrationv1.ValidatingWebhook{{Name: "check.example.com", ClientConfig: config, Rules: rulesOf(name), TimeoutSeconds: new(int32(admissionTimeout)),
			SideEffects: new(registrationv1.SideEffectClassNone), AdmissionReviewVersions: []string{"v1"}}}}))
	r.failing(t, name, regexp.MustCompile("denied the request|failed calling webhook"))
}

func webhook(answer http.HandlerFunc, start func(*httptest.Server)) func(*testing.T, *recorder, string) {
	return func(t *testing.T, r *recorder, name string) {
		config := begin(t, answer, localhost, 0, start)
		r.validate(t, name, registrationv1.WebhookClientConfig{URL: config.URL, CABundle: config.CABundle})
	}
}

func validates(answer http.HandlerFunc) func(*testing.T, *recorder, string) {
	return webhook(answer, (*httptest.Server).StartTLS)
}

func missingWebhook(t *testing.T, r *recorder, name string) {
	r.validate(t, name, registrationv1.WebhookClientConfig{
		Service: &registrationv1.ServiceReference{Namespace: metav1.NamespaceDefault, Name: name}, CABundle: anotherAuthority(t)})
}

func mutates(answer http.HandlerFunc) func(*testing.T, *recorder, string) {
	return func(t *testing.T, r *recorder, name string) {
		config := begin(t, answer, localhost, 0, (*httptest.Server).StartTLS)
		expect.NoError(t, r.Client.Create(t.Context(), &registrationv1.MutatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: name},
			Webhooks: []registrationv1.MutatingWebhook{{Name: "change.example.com", Rules: rulesOf(name), TimeoutSeconds: new(int32(admissionTimeout)),
				ClientConfig: registrationv1.WebhookClientConfig{URL: config.URL, CABundle: config.CABundle},
				SideEffects:  new(registrationv1.SideEffectClassNone), AdmissionReviewVersions: []string{"v1"}}}}))
		r.failing(t, name, regexp.MustCompile("denied the request|absent"))
	}
}

func policy(validation registrationv1.Validation) func(*testing.T, *recorder, string) {
	return func(t *testing.T, r *recorder, name string) {
		expect.NoError(t, r.Client.Create(t.Context(), &registrationv1.ValidatingAdmissionPolicy{ObjectMeta: metav1.ObjectMeta{Name: name},
			Spec: registrationv1.ValidatingAdmissionPolicySpec{Validations: []registrationv1.Validation{validation},
				MatchConstraints: &registrationv1.MatchResources{ResourceRules: []registrationv1.NamedRuleWithOperations{{RuleWithOperations: rulesOf(name)[0]}}}}}))
		expect.NoError(t, r.Client.Create(t.Context(), &registrationv1.ValidatingAdmissionPolicyBinding{ObjectMeta: metav1.ObjectMeta{Name: name},
			Spec: registrationv1.ValidatingAdmissionPolicyBindingSpec{PolicyName: name, ValidationActions: []registrationv1.ValidationAction{registrationv1.Deny}}}))
		r.failing(t, name, regexp.MustCompile("denied request"))
	}
}
