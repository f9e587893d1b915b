// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"context"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"os"
)

// firstBytes is the part of a body that passes the first limiter. Most reviews are smaller.
const firstBytes = 64 << 10

// memoryPerByte is the memory that a call needs per byte of its body: that byte, and one byte of
// the answer, which has about the same length.
const memoryPerByte = 2

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
	room := min(limit, firstBytes)
	if refused := x.reserve(r.Context(), x.handler.limiters.first, &x.kind.held.first, memoryPerByte*room); refused != nil {
		return refused
	}
	for {
		// One more byte than allowed shows whether the body is longer.
		x.in = withRoom(x.in, int(room)+1)
		n, err := x.readSlice(r, x.in[len(x.in):room+1])
		x.in = x.in[:len(x.in)+n]
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return unreadable(err)
		case int64(len(x.in)) > limit:
			return tooLarge(limit)
		case int64(len(x.in)) > room:
			if refused := x.reserveRest(r.Context(), memoryPerByte*(limit-room)); refused != nil {
				return refused
			}
			room = limit
		}
	}
}

// readSlice reads a part of a body. A large body of one of several kinds is read in slices.
func (x *exchange) readSlice(r *http.Request, into []byte) (int, error) {
	if !x.shared() || len(x.in) < firstBytes {
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

// reserveRest waits for memory for the rest of a large body.
func (x *exchange) reserveRest(ctx context.Context, bytes int64) *refusal {
	limiters, held := x.handler.limiters, &x.kind.held
	if limiters.second.exceedsPart(bytes) {
		if refused := x.reserve(ctx, limiters.oversized, &held.oversized, 1); refused != nil {
			return refused
		}
	}
	return x.reserve(ctx, limiters.second, &held.second, bytes)
}

// reserve waits at a limiter until the call is admitted.
func (x *exchange) reserve(ctx context.Context, l *limiter, kind *share, amount int64) *refusal {
	held, call := l.enter(kind, amount)
	if call == nil {
		x.reservations = append(x.reservations, reservation{l, kind, held})
		return nil
	}
	// A call that waits holds no more than it was granted before.
	returnBuffer(x.out)
	x.out = nil
	if len(x.in) == 0 {
		returnBuffer(x.in)
		x.in = nil
	}
	held, err := l.wait(ctx, kind, call)
	switch {
	case err == nil:
		x.reservations = append(x.reservations, reservation{l, kind, held})
		return nil
	case ctx.Err() != nil:
		return &refusal{http.StatusRequestTimeout, failureCanceled, errAbandoned.Error()}
	}
	_, most := x.handler.limiters.bytes(&x.kind.held)
	return &refusal{http.StatusTooManyRequests, failureOverloaded,
		fmt.Sprintf("the converter is busy: the reviews that it holds fill the %d bytes that it may use for them", most)}
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
