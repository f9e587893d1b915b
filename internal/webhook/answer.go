// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"encoding/json"
	"errors"
	"net/http"
	"strconv"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// appendHead appends the answer up to its first converted object.
func appendHead(dst []byte, r *review) []byte {
	dst = append(dst, `{"kind":"ConversionReview","apiVersion":`...)
	dst = appendText(dst, r.apiVersion)
	dst = append(dst, `,"response":{"uid":`...)
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
	dst = appendText(dst, message)
	return append(dst, `}}}`...)
}

// appendText appends text as a JSON string. Bytes that are not UTF-8 are replaced.
func appendText(dst []byte, text string) []byte {
	quoted, err := json.Marshal(text)
	if err != nil {
		panic(err) // strings always marshal
	}
	return append(dst, quoted...)
}

// statusError is an error with an HTTP status of its own.
type statusError struct {
	code    int
	message string
}

func (e *statusError) Error() string { return e.message }

// refuse answers a request that is not a review. The body is a Status, out of
// which an API server takes the message for its user; of plain text it would
// only say that the request was rejected for an unknown reason.
func refuse(w http.ResponseWriter, err error) {
	code := http.StatusBadRequest
	if own, ok := errors.AsType[*statusError](err); ok {
		code = own.code
	}
	writeJSON(w, code, metav1.Status{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"},
		Status:   metav1.StatusFailure,
		Message:  err.Error(),
		Reason:   reasons[code],
		Code:     int32(code),
	})
}

var reasons = map[int]metav1.StatusReason{
	http.StatusBadRequest:            metav1.StatusReasonBadRequest,
	http.StatusRequestEntityTooLarge: metav1.StatusReasonRequestEntityTooLarge,
	http.StatusUnsupportedMediaType:  metav1.StatusReasonUnsupportedMediaType,
}

func writeJSON(w http.ResponseWriter, code int, answer any) {
	body, err := json.Marshal(answer)
	if err != nil {
		panic(err) // only called with plain structs
	}
	write(w, code, "application/json", body)
}

// write answers in one piece of known length, so that the connection is kept
// and no chunks are framed.
func write(w http.ResponseWriter, code int, contentType string, body []byte) {
	header := w.Header()
	header.Set("Content-Type", contentType)
	header.Set("Content-Length", strconv.Itoa(len(body)))
	w.WriteHeader(code)
	// The client is gone if this fails; there is nobody left to tell.
	_, _ = w.Write(body)
}
