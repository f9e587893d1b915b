// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"encoding/json"
	"errors"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/go-logr/logr"
	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/conversion-operator/conversion-operator/internal/engine/conversion"
	"github.com/conversion-operator/conversion-operator/internal/test/expect"
)

// admitFunc is an Admitter by a function. It converts nothing.
type admitFunc func(object string) error

func (f admitFunc) Answer(dst, _ []byte, _ string, _ func(int64) bool) ([]byte, conversion.Outcome, error) {
	return dst, conversion.Outcome{}, errors.New("it does not convert")
}

func (f admitFunc) Admit(object []byte, _ func(int64) bool) error { return f(string(object)) }

func (f admitFunc) AdmitDeletion(object []byte, waits bool, _ func(int64) bool) error {
	if !waits {
		return nil
	}
	return f(string(object))
}

func admitting() *Handler {
	omitted := &conversion.Omitted{Version: "v1", At: "v1beta1", Count: 1, Bytes: 300 << 10, Fields: []string{".spec.blob"}}
	return NewHandler(only(admitFunc(func(object string) error {
		switch {
		case strings.Contains(object, "truncated"):
			return &conversion.TruncatedError{Annotation: "example", Omitted: omitted}
		case strings.Contains(object, "large"):
			return &conversion.TooLargeError{Omitted: omitted}
		case strings.Contains(object, "bad"):
			return errors.New(".spec.hostPort: it is bad")
		case strings.Contains(object, "stopped"):
			return conversion.ErrStopped
		case strings.Contains(object, "panic"):
			panic("secret value")
		}
		return nil
	})), HandlerOptions{MaxBodyBytes: 10000, Log: logr.Discard()})
}

func admissionOf(object string) string {
	return `{"kind":"AdmissionReview","apiVersion":"admission.k8s.io/v1","request":{"uid":"u","kind":{"kind":"CronTab"},"operation":"UPDATE","object":` + object + `,"oldObject":{"name":"bad"}}}`
}

func TestAdmit(t *testing.T) {
	for name, test := range map[string]struct {
		object, message string
		result          admissionResult
	}{
		"fits":                {`{"name":"a"}`, "", admitted},
		"deleted":             {`null`, "", admitted},
		"a truncated form":    {`{"name":"truncated"}`, "the object was truncated when it was read at v1beta1, because the fields that only version v1 has take 300 KiB, and all annotations together may take 256 KiB: write it at v1, without the annotation example, or make .spec.blob smaller there", refusedTruncated},
		"too large":           {`{"name":"large"}`, "the object cannot be converted to v1beta1 as a whole: the fields that only version v1 has take 300 KiB, and all annotations together may take 256 KiB: make .spec.blob smaller, or the object's other annotations", refusedTooLarge},
		"cannot be converted": {`{"name":"bad"}`, "the object could not be read at another version: .spec.hostPort: it is bad", refusedOther},
	} {
		t.Run(name, func(t *testing.T) {
			handler := admitting()
			recorder := postTo(handler, AdmitPath+"/abc", admissionOf(test.object))
			expect.Equal(t, "status", http.StatusOK, recorder.Code)
			var got admissionv1.AdmissionReview
			expect.NoError(t, json.Unmarshal(recorder.Body.Bytes(), &got))
			want := admissionv1.AdmissionReview{
				TypeMeta: metav1.TypeMeta{Kind: "AdmissionReview", APIVersion: "admission.k8s.io/v1"},
				Response: &admissionv1.AdmissionResponse{UID: "u", Allowed: test.message == ""},
			}
			if test.message != "" {
				want.Response.Result = &metav1.Status{Status: "Failure", Reason: "Invalid", Code: 422, Message: test.message}
			}
			expect.Equal(t, "result", want, got)
			countedAdmission(t, handler, test.result)
		})
	}
}

// TestAdmitDeletion checks that the old object is checked, and that only a deletion that waits is
// denied.
func TestAdmitDeletion(t *testing.T) {
	for options, admits := range map[string]bool{
		`null`: true, `{}`: true, `{"kind":"DeleteOptions","propagationPolicy":"Background"}`: true,
		`{"propagationPolicy":"Foreground"}`: false, `{"propagationPolicy":"Orphan"}`: false, `{"orphanDependents":true}`: false,
	} {
		body := `{"kind":"AdmissionReview","apiVersion":"admission.k8s.io/v1","request":{"uid":"u","operation":"DELETE","object":null,"oldObject":{"name":"truncated"},"options":` + options + `}}`
		recorder := postTo(admitting(), AdmitPath+"/abc", body)
		answer := recorder.Body.String()
		expect.Equal(t, "with "+options+", allowed by "+answer, admits, strings.Contains(answer, `"allowed":true`))
	}
}

// countedAdmission expects one AdmissionReview with this result in the metrics, and no
// ConversionReview.
func countedAdmission(t *testing.T, handler *Handler, result admissionResult) {
	t.Helper()
	for _, each := range admissionResults {
		line := `admission_reviews_total{crd="crontabs.example.com",result="` + string(each) + `"} 1`
		expect.Equal(t, "counted as "+string(each), each == result, slices.Contains(counted(scrape(t, handler)), line))
	}
	if strings.Contains(scrape(t, handler), `requests_total{crd="crontabs.example.com",failure_type="",result="success"} 1`) {
		t.Error("it was counted as a ConversionReview")
	}
}

// TestAdmitFails checks that the answer is a Status, so that the API server fails the write.
func TestAdmitFails(t *testing.T) {
	for name, test := range map[string]struct {
		path, body, message string
		code                int
	}{
		"another ruleset":         {"/admit/other", admissionOf(`{}`), "does not have the rules", http.StatusServiceUnavailable},
		"no JSON":                 {"/admit/abc", `{`, "not a usable AdmissionReview", http.StatusBadRequest},
		"a ConversionReview":      {"/admit/abc", v1Review(`{"uid":"u"}`), "not AdmissionReview of admission.k8s.io/v1", http.StatusBadRequest},
		"no request":              {"/admit/abc", `{"kind":"AdmissionReview","apiVersion":"admission.k8s.io/v1"}`, "request.uid is missing", http.StatusBadRequest},
		"too large":               {"/admit/abc", admissionOf(`{"name":"` + strings.Repeat("x", 10000) + `"}`), "larger than", http.StatusRequestEntityTooLarge},
		"the caller has given up": {"/admit/abc", admissionOf(`{"name":"stopped"}`), "gave up on the call", http.StatusRequestTimeout},
		"a bug":                   {"/admit/abc", admissionOf(`{"name":"panic"}`), "internal error of the converter", http.StatusInternalServerError},
	} {
		t.Run(name, func(t *testing.T) {
			handler := admitting()
			recorder := postTo(handler, test.path, test.body)
			expect.Equal(t, "status", test.code, recorder.Code)
			var status metav1.Status
			if err := json.Unmarshal(recorder.Body.Bytes(), &status); err != nil || !strings.Contains(status.Message, test.message) || strings.Contains(status.Message, "secret") {
				t.Errorf("got %s", recorder.Body)
			}
			countedAdmission(t, handler, admissionFailed)
		})
	}
}

// TestAdmitNothing checks that a converter that is no Admitter denies nothing.
func TestAdmitNothing(t *testing.T) {
	recorder := postTo(newTestHandler(), AdmitPath+"/abc", admissionOf(`{"name":"bad"}`))
	expect.Contains(t, "the answer", recorder.Body.String(), `"allowed":true`)
}
