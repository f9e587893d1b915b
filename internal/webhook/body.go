// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"os"
)

// readBody reads the body of r into x.in, within the limits of the handler.
func (x *exchange) readBody(r *http.Request) *refusal {
	if refused := checkHeaders(r.Header); refused != nil {
		return refused
	}
	limit := x.handler.options.MaxBodyBytes
	if r.ContentLength > limit {
		return tooLarge(limit)
	}
	if r.ContentLength >= 0 {
		limit = r.ContentLength
	}
	for room := int64(firstBytes - 1); ; room = min(limit, growth*room) {
		// One more byte than allowed shows whether the body is longer.
		if refused := x.reserve(int(room)+1, cap(x.out)); refused != nil {
			return refused
		}
		x.in = withRoom(x.in, int(room)+1)
		for int64(len(x.in)) <= room {
			n, err := x.readSlice(r, x.in[len(x.in):room+1])
			x.in = x.in[:len(x.in)+n]
			switch {
			case errors.Is(err, io.EOF):
				return nil
			case err != nil:
				return unreadable(err)
			case int64(len(x.in)) > limit:
				return tooLarge(limit)
			}
		}
	}
}

// readSlice reads a part of a body. A large body is read in slices.
func (x *exchange) readSlice(r *http.Request, into []byte) (int, error) {
	if !x.takesTurns() || len(x.in) < firstBytes {
		return r.Body.Read(into)
	}
	return x.copySlice(r.Context(), func() (int, error) { return r.Body.Read(into[:min(len(into), sliceBytes)]) })
}

func checkHeaders(header http.Header) *refusal {
	// API servers send exactly this. Other values are parsed.
	if types := header["Content-Type"]; len(types) != 1 || types[0] != "application/json" {
		contentType := header.Get("Content-Type")
		if mediaType, _, err := mime.ParseMediaType(contentType); err != nil || mediaType != "application/json" {
			return unsupported("Content-Type is %q, not application/json", contentType)
		}
	}
	for _, encoding := range header["Content-Encoding"] {
		if encoding != "" && encoding != "identity" {
			return unsupported("Content-Encoding is %q: send the review uncompressed", encoding)
		}
	}
	return nil
}

// reserve takes memory for buffers of these sizes for the body and the answer, beyond what belongs to the
// connection.
func (x *exchange) reserve(in, out int) *refusal {
	bytes := int64(max(in-firstBytes, 0) + max(out-firstBytes, 0))
	if bytes <= x.claim.held || x.handler.limiters.bodies.hold(&x.claim, bytes) {
		return nil
	}
	return busy()
}

func busy() *refusal {
	return &refusal{http.StatusTooManyRequests, failureOverloaded, "the converter is busy: the reviews that it holds fill the memory that it may use for them"}
}

func unsupported(format, value string) *refusal {
	return &refusal{http.StatusUnsupportedMediaType, failureInvalidReview, fmt.Sprintf(format, value)}
}

func tooLarge(limit int64) *refusal {
	return &refusal{http.StatusRequestEntityTooLarge, failureBodyTooLarge, fmt.Sprintf("the review is larger than the %d bytes that the converter accepts", limit)}
}

// unreadable returns the refusal for a body that could not be read completely.
func unreadable(err error) *refusal {
	switch {
	case errors.Is(err, io.ErrUnexpectedEOF):
		return &refusal{http.StatusBadRequest, failureCanceled, "the body ends before its Content-Length"}
	case errors.Is(err, os.ErrDeadlineExceeded):
		return &refusal{http.StatusRequestTimeout, failureCanceled, fmt.Sprintf("the body did not arrive within %s", readTimeout)}
	}
	return &refusal{http.StatusBadRequest, failureCanceled, fmt.Sprintf("the body cannot be read: %s", err)}
}
