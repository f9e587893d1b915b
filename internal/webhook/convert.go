// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"runtime/debug"
	"sync"
)

const (
	// bodyBytes is where a buffer for a body starts when the client promises more.
	bodyBytes = 1 << 20
	// pooledBytes is the largest buffer that is kept for the next call.
	pooledBytes = 4 << 20
)

// errPanic stands for a panic of the converter. What it was about is in the log only.
var errPanic = errors.New("internal error of the converter, its cause is in the log of the converter pod")

// exchange is the memory of one call.
type exchange struct {
	in  bytes.Buffer
	out []byte
}

var exchanges = sync.Pool{New: func() any { return new(exchange) }}

func (x *exchange) release() {
	if x.in.Cap() > pooledBytes || cap(x.out) > pooledBytes {
		return
	}
	x.in.Reset()
	x.out = x.out[:0]
	exchanges.Put(x)
}

// convert answers a ConversionReview: all objects or a failure. Only a request
// that is not a review at all gets an HTTP error.
func (h *Handler) convert(w http.ResponseWriter, r *http.Request) {
	x := exchanges.Get().(*exchange)
	defer x.release()

	if err := x.read(w, r, h.options.MaxBodyBytes); err != nil {
		refuse(w, err)
		return
	}
	review, err := parseReview(x.in.Bytes())
	if err == nil {
		err = review.check()
	}
	if err != nil {
		refuse(w, fmt.Errorf("not a usable ConversionReview: %w", err))
		return
	}
	x.out = h.answer(x.out, &review)
	write(w, http.StatusOK, "application/json", x.out)
}

// read fills the exchange with the body of r.
func (x *exchange) read(w http.ResponseWriter, r *http.Request, limit int64) error {
	if mediaType, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err != nil || mediaType != "application/json" {
		return &statusError{http.StatusUnsupportedMediaType, fmt.Sprintf("Content-Type is %q, not application/json", r.Header.Get("Content-Type"))}
	}
	if encoding := r.Header.Get("Content-Encoding"); encoding != "" && encoding != "identity" {
		return &statusError{http.StatusUnsupportedMediaType, fmt.Sprintf("Content-Encoding is %q: send the review uncompressed", encoding)}
	}
	if r.ContentLength > limit {
		return tooLarge(limit)
	}
	// What a client promises is believed up to a point only. ReadFrom wants room
	// to find the end.
	x.in.Grow(int(min(max(r.ContentLength, 0), bodyBytes)) + bytes.MinRead)
	_, err := x.in.ReadFrom(http.MaxBytesReader(w, r.Body, limit))
	if _, ok := errors.AsType[*http.MaxBytesError](err); ok {
		return tooLarge(limit)
	}
	if errors.Is(err, io.ErrUnexpectedEOF) {
		return errors.New("the body ends before its Content-Length")
	}
	return err
}

func tooLarge(limit int64) error {
	return &statusError{http.StatusRequestEntityTooLarge, fmt.Sprintf("the review is larger than the %d bytes that the converter accepts", limit)}
}

// answer appends the answer to r to dst, which is empty.
func (h *Handler) answer(dst []byte, r *review) []byte {
	version, err := r.version(h.options.Group)
	if err == nil {
		dst, err = h.appendObjects(appendHead(dst, r), r, version)
	}
	if err == nil {
		return appendSuccess(dst)
	}
	h.options.Log.Info("Conversion failed", "uid", r.uid, "desiredAPIVersion", r.desired, "objects", len(r.objects), "error", err.Error())
	return appendFailure(appendHead(dst[:0], r), err.Error())
}

// appendObjects appends the converted objects of r, up to the first that fails.
func (h *Handler) appendObjects(dst []byte, r *review, version string) ([]byte, error) {
	var err error
	for i, object := range r.objects {
		if i > 0 {
			dst = append(dst, ',')
		}
		if dst, err = h.convertObject(dst, object, r, version); err != nil {
			return dst, fmt.Errorf("%s cannot be converted to %s: %w", nameOf(object, i), version, err)
		}
	}
	return dst, nil
}

// convertObject turns a panic of the converter into an error, so that the answer
// still carries the uid: without it, the API server would report a mismatch of
// uids instead of the failure.
func (h *Handler) convertObject(dst, object []byte, r *review, version string) (out []byte, err error) {
	defer func() {
		if cause := recover(); cause != nil {
			h.options.Log.Error(fmt.Errorf("panic: %v", cause), "Converter panicked",
				"uid", r.uid, "desiredAPIVersion", r.desired, "stack", string(debug.Stack()))
			out, err = dst, errPanic
		}
	}()
	if object[0] != '{' {
		return dst, errors.New("it is not a JSON object")
	}
	return h.converter.Convert(dst, object, version)
}

// nameOf says which object of a review is meant, by its name if it has one: what
// is applied on the server side may come without metadata.
func nameOf(object []byte, index int) string {
	var partial struct {
		Metadata struct {
			Name      string `json:"name"`
			Namespace string `json:"namespace"`
		} `json:"metadata"`
	}
	if err := json.Unmarshal(object, &partial); err != nil || partial.Metadata.Name == "" {
		return fmt.Sprintf("object %d of the review", index)
	}
	if partial.Metadata.Namespace == "" {
		return partial.Metadata.Name
	}
	return partial.Metadata.Namespace + "/" + partial.Metadata.Name
}
