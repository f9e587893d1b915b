// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/conversion-operator/conversion-operator/internal/engine/conversion"
	"github.com/conversion-operator/conversion-operator/internal/test/expect"
)

// convertFunc implements Converter by a function that gets a single object.
type convertFunc func(dst, object []byte, toVersion string) ([]byte, error)

func (f convertFunc) Answer(dst, text []byte, toVersion string, _ func(int64) bool) ([]byte, conversion.Outcome, error) {
	var outcome conversion.Outcome
	var object json.RawMessage
	decoder := json.NewDecoder(bytes.NewReader(text))
	if err := decoder.Decode(&object); err != nil {
		return dst, outcome, err
	}
	var typed metav1.TypeMeta
	if err := json.Unmarshal(object, &typed); err != nil {
		return dst, outcome, err
	}
	outcome.From = strings.TrimPrefix(typed.APIVersion, "example.com/")
	outcome.Read = int(decoder.InputOffset())
	dst, err := f(dst, object, toVersion)
	return dst, outcome, err
}

// rename changes the version of objects of example.com, and nothing else. It fails for those that
// contain "bad" or "overflow", and panics for those that contain "panic".
func rename(dst, object []byte, toVersion string) ([]byte, error) {
	if bytes.Contains(object, []byte("bad")) {
		return append(dst, "half of an obj"...), errors.New(".spec.hostPort: it is bad")
	}
	if bytes.Contains(object, []byte("panic")) {
		panic("secret value")
	}
	if bytes.Contains(object, []byte("overflow")) {
		return dst, &conversion.OverflowError{Version: "v1beta1", Preserved: 300000, Others: 100}
	}
	for _, version := range []string{"v1beta1", "v1", "v2"} {
		old := []byte(`"apiVersion":"example.com/` + version + `"`)
		if bytes.Contains(object, old) {
			return append(dst, bytes.Replace(object, old, []byte(`"apiVersion":"example.com/`+toVersion+`"`), 1)...), nil
		}
	}
	return dst, errors.New("unknown version")
}

// testPath is the path of the ruleset in tests.
const testPath = ConvertPath + "/abc"

// only returns the ruleset of tests.
func only(converter Converter, pairs ...[2]string) []Ruleset {
	return []Ruleset{{CRD: crontabs, Group: "example.com", Kind: "CronTab", Hash: "abc", Pairs: pairs, Converter: converter}}
}

func newTestHandler() *Handler {
	return NewHandler(only(convertFunc(rename)), HandlerOptions{Log: logr.Discard()})
}

// post sends a body to testPath like an API server.
func post(handler http.Handler, body string) *httptest.ResponseRecorder {
	return postTo(handler, testPath, body)
}

// postTo sends a body to a path like an API server.
func postTo(handler http.Handler, path, body string) *httptest.ResponseRecorder {
	request := httptest.NewRequest(http.MethodPost, path+"?timeout=30s", strings.NewReader(body))
	request.Header.Set("Content-Type", "application/json")
	recorder := httptest.NewRecorder()
	handler.ServeHTTP(recorder, request)
	return recorder
}

func v1Review(request string) string {
	return `{"kind":"ConversionReview","apiVersion":"apiextensions.k8s.io/v1","request":` + request + `}`
}

const (
	success = `{"kind":"ConversionReview","apiVersion":"apiextensions.k8s.io/v1","response":{"uid":"u","convertedObjects":[%s],"result":{"status":"Success"}}}`
	failed  = `{"kind":"ConversionReview","apiVersion":"apiextensions.k8s.io/v1","response":{"uid":"u","convertedObjects":[],"result":{"status":"Failure","message":%q}}}`
)

func TestConvert(t *testing.T) {
	review := func(version, objects string) string {
		return v1Review(`{"uid":"u","desiredAPIVersion":"example.com/` + version + `","objects":[` + objects + `]}`)
	}
	succeeds := func(objects string) string { return fmt.Sprintf(success, objects) }
	fails := func(message string) string { return fmt.Sprintf(failed, message) }
	cases := map[string]struct{ body, want string }{
		"one object": {review("v1", `{"apiVersion":"example.com/v1beta1","kind":"A","n":9007199254740993}`), succeeds(`{"apiVersion":"example.com/v1","kind":"A","n":9007199254740993}`)},
		"many objects at different versions, in order": {
			review("v2", `{"apiVersion":"example.com/v1beta1","n":1},{"apiVersion":"example.com/v1","n":2},{"apiVersion":"example.com/v1beta1","n":3}`),
			succeeds(`{"apiVersion":"example.com/v2","n":1},{"apiVersion":"example.com/v2","n":2},{"apiVersion":"example.com/v2","n":3}`),
		},
		"members in another order": {
			`{"request":{"objects":[{"apiVersion":"example.com/v1beta1"}],"desiredAPIVersion":"example.com/v1","uid":"u"},"apiVersion":"apiextensions.k8s.io/v1","kind":"ConversionReview"}`,
			succeeds(`{"apiVersion":"example.com/v1"}`),
		},
		"no objects":      {review("v1", ``), succeeds(``)},
		"objects missing": {v1Review(`{"uid":"u","desiredAPIVersion":"example.com/v1"}`), succeeds(``)},
		"uid with quotes": {v1Review(`{"uid":"\"u\u0000","desiredAPIVersion":"example.com/v1"}`), strings.Replace(fmt.Sprintf(success, ``), `"u"`, `"\"u\u0000"`, 1)},
		"one failure fails all objects": {
			review("v1", `{"apiVersion":"example.com/v1beta1"},{"apiVersion":"example.com/v1beta1","metadata":{"namespace":"default","name":"bad"}}`),
			fails(`default/bad cannot be converted from v1beta1 to v1: .spec.hostPort: it is bad`),
		},
		"failure of a cluster-scoped object":    {review("v1", `{"metadata":{"name":"bad"}}`), fails(`bad cannot be converted to v1: .spec.hostPort: it is bad`)},
		"failure of an object without metadata": {review("v1", `{"spec":"bad"}`), fails(`object 0 of the review cannot be converted to v1: .spec.hostPort: it is bad`)},
		"failure of an object that is not JSON": {
			review("v1", `{bad}`),
			fails(`object 0 of the review cannot be converted to v1: invalid character 'b' looking for beginning of object key string`),
		},
		"null for an object": {review("v1", `{"apiVersion":"example.com/v1beta1"},null`), fails(`object 1 of the review cannot be converted to v1: it is not a JSON object`)},
		"panic": {
			review("v1", `{"metadata":{"namespace":"default","name":"panic"}}`),
			fails(`default/panic cannot be converted to v1: internal error of the converter, its cause is in the log of the converter pod`),
		},
		"no desired version": {v1Review(`{"uid":"u","objects":[{}]}`), fails(`request.desiredAPIVersion is missing`)},
		"another group": {
			v1Review(`{"uid":"u","desiredAPIVersion":"example.org/v1","objects":[{}]}`),
			fails(`this converter serves example.com, but the request is for example.org/v1: the CustomResourceDefinition refers to the wrong webhook`),
		},
		"no version":    {v1Review(`{"uid":"u","desiredAPIVersion":"example.com","objects":[{}]}`), fails(`request.desiredAPIVersion is "example.com", not example.com/<version>`)},
		"empty version": {v1Review(`{"uid":"u","desiredAPIVersion":"example.com/","objects":[{}]}`), fails(`request.desiredAPIVersion is "example.com/", not example.com/<version>`)},
		"two versions":  {v1Review(`{"uid":"u","desiredAPIVersion":"example.com/v1/v2","objects":[{}]}`), fails(`request.desiredAPIVersion is "example.com/v1/v2", not example.com/<version>`)},
	}
	handler := newTestHandler()
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := post(handler, tc.body)
			expect.Equal(t, "status", http.StatusOK, got.Code)
			expect.Equal(t, "answer", expect.JSON(t, tc.want), expect.JSON(t, got.Body.String()))
			expect.Equal(t, "Content-Length", fmt.Sprint(got.Body.Len()), got.Header().Get("Content-Length"))
		})
	}
}

func TestConvertRefuses(t *testing.T) {
	valid := v1Review(`{"uid":"u","desiredAPIVersion":"example.com/v1","objects":[]}`)
	cases := map[string]struct {
		body    string
		headers map[string]string
		want    metav1.Status
	}{
		"empty body":            {body: "", want: status(400, "not a usable ConversionReview: invalid JSON at byte 0: a value was expected")},
		"garbage":               {body: "garbage", want: status(400, "not a usable ConversionReview: invalid JSON at byte 0: a value was expected")},
		"another kind":          {body: `{"kind":"AdmissionReview","apiVersion":"apiextensions.k8s.io/v1"}`, want: status(400, `not a usable ConversionReview: kind is "AdmissionReview", not "ConversionReview"`)},
		"no kind":               {body: `{"apiVersion":"apiextensions.k8s.io/v1"}`, want: status(400, `not a usable ConversionReview: kind is "", not "ConversionReview"`)},
		"another version":       {body: `{"kind":"ConversionReview","apiVersion":"apiextensions.k8s.io/v1beta1"}`, want: status(400, `not a usable ConversionReview: apiVersion is "apiextensions.k8s.io/v1beta1", but reviews are answered in apiextensions.k8s.io/v1 only: correct conversionReviewVersions of the CustomResourceDefinition`)},
		"no uid":                {body: v1Review(`{"desiredAPIVersion":"example.com/v1","objects":[]}`), want: status(400, "not a usable ConversionReview: request.uid is missing")},
		"no request":            {body: v1Review(`null`), want: status(400, "not a usable ConversionReview: request.uid is missing")},
		"no content type":       {body: valid, headers: map[string]string{"Content-Type": ""}, want: status(415, `Content-Type is "", not application/json`)},
		"another content type":  {body: valid, headers: map[string]string{"Content-Type": "application/yaml"}, want: status(415, `Content-Type is "application/yaml", not application/json`)},
		"compressed":            {body: valid, headers: map[string]string{"Content-Encoding": "gzip"}, want: status(415, `Content-Encoding is "gzip": send the review uncompressed`)},
		"large":                 {body: valid + strings.Repeat(" ", 1000), want: status(413, "the review is larger than the 1000 bytes that the converter accepts")},
		"large, of no length":   {body: valid + strings.Repeat(" ", 1000), headers: map[string]string{"Transfer-Encoding": "chunked"}, want: status(413, "the review is larger than the 1000 bytes that the converter accepts")},
		"shorter than promised": {body: valid, headers: map[string]string{"Content-Length": "999"}, want: status(400, "the body ends before its Content-Length")},
	}
	handler := NewHandler(only(convertFunc(rename)), HandlerOptions{MaxBodyBytes: 1000, Log: logr.Discard()})
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			recorder := httptest.NewRecorder()
			handler.ServeHTTP(recorder, requestWith(tc.body, tc.headers))
			var got metav1.Status
			if err := json.Unmarshal(recorder.Body.Bytes(), &got); err != nil {
				t.Fatalf("%v in %q", err, recorder.Body)
			}
			expect.Equal(t, "status", tc.want, got)
			expect.Equal(t, "HTTP status", int(tc.want.Code), recorder.Code)
		})
	}
}

// requestWith returns a request as a server receives it. Content-Length and Transfer-Encoding have
// the effect that they have on a connection.
func requestWith(body string, headers map[string]string) *http.Request {
	var reader io.Reader = strings.NewReader(body)
	if headers["Content-Length"] != "" {
		reader = io.MultiReader(reader, failingReader{})
	}
	request := httptest.NewRequest(http.MethodPost, testPath, reader)
	request.Header.Set("Content-Type", "application/json; charset=utf-8")
	for name, value := range headers {
		request.Header.Set(name, value)
	}
	if headers["Transfer-Encoding"] != "" {
		request.ContentLength = -1
	}
	return request
}

// failingReader is the rest of a body whose client disconnected.
type failingReader struct{}

func (failingReader) Read([]byte) (int, error) { return 0, io.ErrUnexpectedEOF }

func status(code int32, message string) metav1.Status {
	return metav1.Status{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"},
		Status:   "Failure",
		Message:  message,
		Reason:   map[int32]metav1.StatusReason{400: "BadRequest", 413: "RequestEntityTooLarge", 415: "UnsupportedMediaType"}[code],
		Code:     code,
	}
}

func TestFailuresAreLogged(t *testing.T) {
	var lines []string
	log := funcr.New(func(_, args string) { lines = append(lines, args) }, funcr.Options{})
	handler := NewHandler(only(convertFunc(rename)), HandlerOptions{Log: log})

	post(handler, v1Review(`{"uid":"u","desiredAPIVersion":"example.com/v1","objects":[{"metadata":{"name":"panic"}}]}`))

	want := []string{
		`"msg"="Converter panicked" "error"="panic: secret value" "policy"="crontabs.example.com" "kind"="CronTab" "uid"="u" "desiredAPIVersion"="example.com/v1" "stack"=`,
		`"level"=0 "msg"="Conversion failed" "policy"="crontabs.example.com" "kind"="CronTab" "uid"="u" "desiredAPIVersion"="example.com/v1" "converted"=0 "error"="panic cannot be converted to v1`,
	}
	if len(lines) != len(want) {
		t.Fatalf("got %d lines, want %d: %q", len(lines), len(want), lines)
	}
	for i := range want {
		if !strings.HasPrefix(lines[i], want[i]) {
			t.Errorf("line %d is %s, want a prefix %s", i, lines[i], want[i])
		}
	}
	expect.Contains(t, "the stack", lines[0], "webhook.rename")
}

// TestBuffersAreNotShared converts concurrently, so that shared buffers would mix up answers.
func TestBuffersAreNotShared(t *testing.T) {
	handler := newTestHandler()
	t.Run("group", func(t *testing.T) {
		for i := range 16 {
			t.Run(fmt.Sprint(i), func(t *testing.T) {
				t.Parallel()
				padding := strings.Repeat(fmt.Sprint(i%10), 1000*i)
				body := v1Review(`{"uid":"u","desiredAPIVersion":"example.com/v1","objects":[{"apiVersion":"example.com/v1beta1","p":"` + padding + `"}]}`)
				want := fmt.Sprintf(success, `{"apiVersion":"example.com/v1","p":"`+padding+`"}`)
				for range 50 {
					if got := post(handler, body).Body.String(); got != want {
						t.Fatalf("got %.200s", got)
					}
				}
			})
		}
	})
}
