//go:build integration

// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package answers

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"regexp"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
	registrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/conversion-operator/conversion-operator/internal/test/expect"
	"github.com/conversion-operator/conversion-operator/internal/test/reviews"
)

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
