// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"encoding/json"
	"net/http"
	"strconv"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/conversion-operator/conversion-operator/internal/engine/tree"
)

// retryAfterSeconds is when a caller may retry after the pod was busy, or did not have the
// requested ruleset. API servers then retry even a POST, until their own timeout.
const retryAfterSeconds = 1

// appendHead appends the answer up to the first converted object.
func appendHead(dst []byte, r *review) []byte {
	dst = append(dst, `{"kind":"ConversionReview","apiVersion":"`+reviewVersion+`","response":{"uid":`...)
	dst = appendText(dst, r.uid)
	return append(dst, `,"convertedObjects":[`...)
}

// appendSuccess completes an answer after its last object.
func appendSuccess(dst []byte) []byte {
	return append(dst, `],"result":{"status":"Success"}}}`...)
}

// appendFailure completes an answer without objects.
func appendFailure(dst []byte, message string) []byte {
	dst = append(dst, `],"result":{"status":"Failure","message":`...)
	dst = appendText(dst, []byte(message))
	return append(dst, `}}}`...)
}

// appendText appends text as a JSON string. It replaces invalid UTF-8.
func appendText(dst, text []byte) []byte {
	return tree.Quote(dst, strings.ToValidUTF8(string(text), "\ufffd"))
}

// refusal is an error that is answered with an HTTP status.
type refusal struct {
	code    int
	failure failure
	message string
}

func (e *refusal) Error() string { return e.message }

var statusReasons = map[int]metav1.StatusReason{
	http.StatusBadRequest:            metav1.StatusReasonBadRequest,
	http.StatusRequestTimeout:        metav1.StatusReasonTimeout,
	http.StatusRequestEntityTooLarge: metav1.StatusReasonRequestEntityTooLarge,
	http.StatusUnsupportedMediaType:  metav1.StatusReasonUnsupportedMediaType,
	http.StatusTooManyRequests:       metav1.StatusReasonTooManyRequests,
	http.StatusInternalServerError:   metav1.StatusReasonInternalError,
	http.StatusServiceUnavailable:    metav1.StatusReasonServiceUnavailable,
}

// refuse answers a request that is not a review, or that cannot be served now. The body is a
// Status: API servers show its message to the user. For plain text they would only report an
// unknown reason.
func refuse(w http.ResponseWriter, r *refusal) {
	status := metav1.Status{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"},
		Status:   metav1.StatusFailure,
		Message:  r.message,
		Reason:   statusReasons[r.code],
		Code:     int32(r.code),
	}
	if r.failure == failureOverloaded || r.failure == failureUnknownRuleset {
		status.Details = &metav1.StatusDetails{RetryAfterSeconds: retryAfterSeconds}
		w.Header().Set("Retry-After", strconv.Itoa(retryAfterSeconds))
		// The next connection may reach a pod that is less busy, or has the ruleset.
		w.Header().Set("Connection", "close")
	}
	writeJSON(w, r.code, status)
}

func writeJSON(w http.ResponseWriter, code int, answer any) {
	body, err := json.Marshal(answer)
	if err != nil {
		panic(err) // the structs of this package always marshal
	}
	write(w, code, jsonContent, body)
}

// Content types, in the form of http.Header values.
var (
	jsonContent = []string{"application/json"}
	textContent = []string{"text/plain; charset=utf-8"}
)

// write sends the complete answer with its length, so that the connection is kept alive and the
// answer is not chunked.
func write(w http.ResponseWriter, code int, contentType []string, body []byte) {
	// An error means that the client has disconnected.
	_, _ = w.Write(beginWrite(w, code, contentType, body))
}

// beginWrite writes the headers of an answer, and returns its body.
func beginWrite(w http.ResponseWriter, code int, contentType []string, body []byte) []byte {
	header := w.Header()
	header["Content-Type"] = contentType
	header["Content-Length"] = []string{strconv.Itoa(len(body))}
	w.WriteHeader(code)
	return body
}
