// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package probe

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/conversion-operator/conversion-operator/internal/test/expect"
)

// TestReviewAnswers tests the malformed answers in the tests of the API server,
// k8s.io/apiextensions-apiserver/pkg/apiserver/conversion/webhook_converter_test.go.
func TestReviewAnswers(t *testing.T) {
	const head = `"kind":"ConversionReview","apiVersion":"apiextensions.k8s.io/v1"`
	cases := map[string]struct {
		answer string
		want   *Error
	}{
		"valid":                 {answer: `{` + head + `,"response":{"uid":"UID","result":{"status":"Success"},"convertedObjects":[OBJECT]}}`},
		"no response":           {answer: `{` + head + `}`, want: &Error{ReasonUnexpectedAnswer, `the answer to a ConversionReview has no response`}},
		"no uid":                {answer: `{` + head + `,"response":{"result":{"status":"Success"}}}`, want: &Error{ReasonUnexpectedAnswer, `the answer to a ConversionReview does not carry its request.uid in response.uid`}},
		"another uid":           {answer: `{` + head + `,"response":{"uid":"x","result":{"status":"Success"}}}`, want: &Error{ReasonUnexpectedAnswer, `the answer to a ConversionReview does not carry its request.uid in response.uid`}},
		"no apiVersion":         {answer: `{"kind":"ConversionReview","response":{"uid":"UID","result":{"status":"Success"}}}`, want: &Error{ReasonUnexpectedAnswer, `the answer to a ConversionReview is of kind "/, Kind=ConversionReview", expected "apiextensions.k8s.io/v1, Kind=ConversionReview"`}},
		"no kind":               {answer: `{"apiVersion":"apiextensions.k8s.io/v1","response":{"uid":"UID","result":{"status":"Success"}}}`, want: &Error{ReasonUnexpectedAnswer, `the answer to a ConversionReview is of kind "apiextensions.k8s.io/v1, Kind=", expected "apiextensions.k8s.io/v1, Kind=ConversionReview"`}},
		"mismatched apiVersion": {answer: `{"kind":"ConversionReview","apiVersion":"apiextensions.k8s.io/v2"}`, want: &Error{ReasonUnexpectedAnswer, `the answer to a ConversionReview is of kind "apiextensions.k8s.io/v2, Kind=ConversionReview", expected "apiextensions.k8s.io/v1, Kind=ConversionReview"`}},
		"mismatched kind":       {answer: `{"kind":"ConversionReview2","apiVersion":"apiextensions.k8s.io/v1"}`, want: &Error{ReasonUnexpectedAnswer, `the answer to a ConversionReview is of kind "apiextensions.k8s.io/v1, Kind=ConversionReview2", expected "apiextensions.k8s.io/v1, Kind=ConversionReview"`}},
		"names in other case":   {answer: `{` + head + `,"Response":{"uid":"UID"}}`, want: &Error{ReasonUnexpectedAnswer, `the answer to a ConversionReview has no response`}},
		"empty status":          {answer: `{` + head + `,"response":{"uid":"UID","result":{}}}`, want: &Error{ReasonCanaryFailed, `converting to example.com/v1: response.result.status is "", not "Success"`}},
		"failure status":        {answer: `{` + head + `,"response":{"uid":"UID","result":{"status":"Failure"}}}`, want: &Error{ReasonCanaryFailed, `converting to example.com/v1: response.result.status is "Failure", not "Success"`}},
		"custom message":        {answer: `{` + head + `,"response":{"uid":"UID","result":{"status":"Failure","message":"some failure message"}}}`, want: &Error{ReasonCanaryFailed, `converting to example.com/v1: some failure message`}},
		"no objects":            {answer: `{` + head + `,"response":{"uid":"UID","result":{"status":"Success"}}}`, want: &Error{ReasonCanaryFailed, `converting to example.com/v1: the pod returned 0 objects, expected 1`}},
		"too many objects":      {answer: `{` + head + `,"response":{"uid":"UID","result":{"status":"Success"},"convertedObjects":[OBJECT,OBJECT]}}`, want: &Error{ReasonCanaryFailed, `converting to example.com/v1: the pod returned 2 objects, expected 1`}},
		"garbage":               {answer: `garbage`, want: &Error{ReasonUnexpectedAnswer, `the answer to a ConversionReview is not JSON of that kind: "garbage"`}},
		"empty":                 {answer: ``, want: &Error{ReasonUnexpectedAnswer, `the answer to a ConversionReview is not JSON of that kind: ""`}},
		"of another type":       {answer: `{` + head + `,"response":{"uid":1}}`, want: &Error{ReasonUnexpectedAnswer, `the answer to a ConversionReview is not JSON of that kind: "{\"kind\":\"ConversionReview\",\"apiVersion\":\"apiextensions.k8s.io/v1\",\"response\":{\"uid\":1}}"`}},
		"a null for an object":  {answer: `{` + head + `,"response":{"uid":"UID","result":{"status":"Success"},"convertedObjects":[null]}}`, want: &Error{ReasonCanaryFailed, `converting a canary from example.com/v1beta1 to example.com/v1: the answer is not acceptable to an API server: it is not a JSON object: unexpected end of JSON input`}},
		"a Status of a failure": {answer: asJSON(t, metav1.Status{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}, Status: "Failure"}), want: &Error{ReasonUnexpectedAnswer, `the answer to a ConversionReview is of kind "/v1, Kind=Status", expected "apiextensions.k8s.io/v1, Kind=ConversionReview"`}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			pod := newPod(t)
			pod.answer = func(uid string, _ []byte) string {
				return strings.NewReplacer("UID", uid, "OBJECT", converted).Replace(tc.answer)
			}
			_, err := Pod(t.Context(), pod.target)
			expectError(t, tc.want, err)
		})
	}
}

// TestConvertedObjects tests objects that an API server rejects, and objects that differ from the
// expected ones.
func TestConvertedObjects(t *testing.T) {
	const rejected = "converting a canary from example.com/v1beta1 to example.com/v1: the answer is not acceptable to an API server: "
	const unexpected = "converting a canary from example.com/v1beta1 to example.com/v1: the answer is not the one expected: "
	replace := func(old, replacement string) string { return strings.Replace(converted, old, replacement, 1) }
	cases := map[string]struct {
		object string
		want   string
	}{
		"as expected":            {object: converted},
		"a number written so":    {object: replace(`9007199254740993`, `9007199254740993.0`)},
		"not an object":          {object: `[]`, want: rejected + `it is not a JSON object: json: cannot unmarshal array into Go value of type map[string]interface {}`},
		"old version":            {object: replace(`example.com/v1`, `example.com/v1beta1`), want: rejected + `apiVersion is "example.com/v1beta1", expected "example.com/v1"`},
		"no apiVersion":          {object: replace(`"apiVersion":"example.com/v1",`, ``), want: rejected + `apiVersion is "", expected "example.com/v1"`},
		"another kind":           {object: replace(`CronTab`, `Job`), want: rejected + `kind is "Job", expected "CronTab"`},
		"no kind":                {object: replace(`"kind":"CronTab",`, ``), want: rejected + `kind is missing`},
		"another name":           {object: replace(`"one"`, `"two"`), want: rejected + `metadata.name is "two", expected "one"`},
		"no namespace":           {object: replace(`"namespace":"default",`, ``), want: rejected + `metadata.namespace is "", expected "default"`},
		"another uid":            {object: replace(`"1-2-3"`, `"4"`), want: rejected + `metadata.uid is "4", expected "1-2-3"`},
		"metadata no object":     {object: replace(`"metadata":`, `"metadata":[],"x":`), want: rejected + `metadata.name is "", expected "one"`},
		"labels no object":       {object: replace(`"labels":{"a":"b"}`, `"labels":["a"]`), want: rejected + `metadata.labels is not a map of strings`},
		"label no string":        {object: replace(`"a":"b"`, `"a":null`), want: rejected + `metadata.labels is not a map of strings`},
		"invalid label key":      {object: replace(`"a":"b"`, `"some/non-qualified/label":"b"`), want: rejected + `metadata.labels: Invalid value: "some/non-qualified/label": a valid label key must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]') with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')`},
		"too large annotation":   {object: replace(`"labels"`, `"annotations":{"a":"`+strings.Repeat("x", 256<<10)+`"},"labels"`), want: rejected + `metadata.annotations: Too long: may not be more than 262144 bytes`},
		"labels null":            {object: replace(`"labels":{"a":"b"}`, `"labels":null`), want: unexpected + `.metadata.labels has another value`},
		"labels dropped":         {object: replace(`"labels":{"a":"b"},`, ``), want: unexpected + `.metadata.labels is missing`},
		"a rounded number":       {object: replace(`9007199254740993`, `9007199254740992`), want: unexpected + `.spec.n has another value`},
		"a field too many":       {object: replace(`"spec":{`, `"spec":{"hostPort":"h:1",`), want: unexpected + `.spec.hostPort should not be there`},
		"a field of wrong value": {object: replace(`"h"`, `"i"`), want: unexpected + `.spec.host has another value`},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			pod := newPod(t)
			pod.answer = func(uid string, _ []byte) string {
				return `{"kind":"ConversionReview","apiVersion":"apiextensions.k8s.io/v1","response":{"uid":"` + uid + `","result":{"status":"Success"},"convertedObjects":[` + tc.object + `]}}`
			}
			_, err := Pod(t.Context(), pod.target)
			var want *Error
			if tc.want != "" {
				want = &Error{ReasonCanaryFailed, "converting a canary from example.com/v1beta1 to example.com/v1: " +
					bounded(strings.TrimPrefix(tc.want, "converting a canary from example.com/v1beta1 to example.com/v1: "))}
			}
			expectError(t, want, err)
		})
	}
}

// TestCanaryWithoutMetadata checks that the answer must have metadata even then.
func TestCanaryWithoutMetadata(t *testing.T) {
	pod := newPod(t)
	pod.target.Canaries = []Canary{{DesiredAPIVersion: "example.com/v1", Object: []byte(`{"apiVersion":"example.com/v1beta1","kind":"CronTab","spec":{}}`)}}
	pod.answer = func(uid string, _ []byte) string {
		return `{"kind":"ConversionReview","apiVersion":"apiextensions.k8s.io/v1","response":{"uid":"` + uid + `","result":{"status":"Success"},"convertedObjects":[{"apiVersion":"example.com/v1","kind":"CronTab","spec":{}}]}}`
	}
	_, err := Pod(t.Context(), pod.target)
	expectError(t, &Error{ReasonCanaryFailed, "converting a canary from example.com/v1beta1 to example.com/v1: the answer is not acceptable to an API server: metadata is missing or not an object"}, err)
}

func TestMistakesOfTheCaller(t *testing.T) {
	cases := map[string]struct {
		change func(*Target)
		want   string
	}{
		"canary not an object":   {func(t *Target) { t.Canaries[0].Object = []byte(`[`) }, "the canary to example.com/v1 is not an object: it is not a JSON object: unexpected end of JSON input"},
		"expectation not JSON":   {func(t *Target) { t.Canaries[0].Expected = []byte(`{`) }, "the answer expected of the canary to example.com/v1 is not JSON: unexpected EOF"},
		"address without a port": {func(t *Target) { t.Address = "10.0.0.7" }, "the pod's address: address 10.0.0.7: missing port in address"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			pod := newPod(t, converter)
			tc.change(&pod.target)
			_, err := Pod(t.Context(), pod.target)
			if _, ok := errors.AsType[*Error](err); ok || err == nil || err.Error() != tc.want {
				t.Errorf("error is %T %v, want %s", err, err, tc.want)
			}
		})
	}
}

func asJSON(t *testing.T, value any) string {
	t.Helper()
	document, err := json.Marshal(value)
	expect.NoError(t, err)
	return string(document)
}

func expectError(t *testing.T, want *Error, err error) {
	t.Helper()
	got, ok := errors.AsType[*Error](err)
	if err != nil && !ok {
		t.Fatalf("error of type %T: %v", err, err)
	}
	expect.Equal(t, "error", want, got)
}
