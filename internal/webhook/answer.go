// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"encoding/json"
	"net/http"
	"strconv"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/conversion-operator/conversion-operator/internal/jsonascii"
)

// retryAfterSeconds is when a call may come again that found the pod busy, or
// without the ruleset that it asks for.
// An API server then repeats even a POST, as long as its own time is not over.
const retryAfterSeconds = 1

// appendHead appends the answer up to its first converted object.
func appendHead(dst []byte, r *review) []byte {
	dst = append(dst, `{"kind":"ConversionReview","apiVersion":"`...)
	dst = append(dst, r.version()...)
	dst = append(dst, `","response":{"uid":`...)
	dst = appendText(dst, r.uid)
	return append(dst, `,"convertedObjects":[`...)
}

// appendSuccess ends an answer behind its last object.
func appendSuccess(dst []byte) []byte {
	return append(dst, `],"result":{"status":"Success"}}}`...)
}

// appendFailure ends an answer without objects.
func appendFailure(dst []byte, message string) []byte {
	dst = append(dst, `],"result":{"status":"Failure","message":`...)
	dst = appendText(dst, []byte(message))
	return append(dst, `}}}`...)
}

// appendText appends text as a JSON string. Bytes that are not UTF-8 are replaced.
func appendText(dst, text []byte) []byte {
	if jsonascii.Len(text) == len(text) {
		dst = append(dst, '"')
		dst = append(dst, text...)
		return append(dst, '"')
	}
	quoted, err := json.Marshal(string(text))
	if err != nil {
		panic(err) // strings always marshal
	}
	return append(dst, quoted...)
}

// refusal is an error with an HTTP status of its own.
type refusal struct {
	code    int
	failure failure
	message string
}

func (e *refusal) Error() string { return e.message }

var reasons = map[int]metav1.StatusReason{
	http.StatusBadRequest:            metav1.StatusReasonBadRequest,
	http.StatusRequestTimeout:        metav1.StatusReasonTimeout,
	http.StatusRequestEntityTooLarge: metav1.StatusReasonRequestEntityTooLarge,
	http.StatusUnsupportedMediaType:  metav1.StatusReasonUnsupportedMediaType,
	http.StatusTooManyRequests:       metav1.StatusReasonTooManyRequests,
	http.StatusInternalServerError:   metav1.StatusReasonInternalError,
	http.StatusServiceUnavailable:    metav1.StatusReasonServiceUnavailable,
}

// refuse answers a request that is not a review, or cannot be taken now. The body
// is a Status, out of which an API server takes the message for its user; of
// plain text it would only say that the request was rejected for an unknown reason.
func refuse(w http.ResponseWriter, own *refusal) {
	status := metav1.Status{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"},
		Status:   metav1.StatusFailure,
		Message:  own.message,
		Reason:   reasons[own.code],
		Code:     int32(own.code),
	}
	if own.failure == failureOverloaded || own.failure == failureUnknownRuleset {
		status.Details = &metav1.StatusDetails{RetryAfterSeconds: retryAfterSeconds}
		w.Header().Set("Retry-After", strconv.Itoa(retryAfterSeconds))
		// The next connection may lead to a pod that is less busy, or has the ruleset.
		w.Header().Set("Connection", "close")
	}
	writeJSON(w, own.code, status)
}

func writeJSON(w http.ResponseWriter, code int, answer any) {
	body, err := json.Marshal(answer)
	if err != nil {
		panic(err) // only called with plain structs
	}
	write(w, code, jsonContent, body)
}

// What answers are, in the form that http.Header holds.
var (
	jsonContent = []string{"application/json"}
	textContent = []string{"text/plain; charset=utf-8"}
)

// write answers in one piece of known length, so that the connection is kept
// and no chunks are framed.
func write(w http.ResponseWriter, code int, contentType []string, body []byte) {
	header := w.Header()
	header["Content-Type"] = contentType
	header["Content-Length"] = []string{strconv.Itoa(len(body))}
	w.WriteHeader(code)
	// The client is gone if this fails; there is no one left to tell.
	_, _ = w.Write(body)
}
