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
	"slices"
)

// firstBytes is what of a body passes the first limiter. Most reviews are smaller.
const firstBytes = 64 << 10

// memoryPerByte is what a call holds for each byte of its body: that byte, and
// one of the answer, which is about as long.
const memoryPerByte = 2

// receive fills the exchange with the body of r, within the bounds of the handler.
func (x *exchange) receive(r *http.Request) *refusal {
	if refused := acceptable(r.Header); refused != nil {
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
	if refused := x.pass(r.Context(), x.handler.gates.first, room); refused != nil {
		return refused
	}
	for {
		// One byte more than there may be shows whether there is more.
		x.in = slices.Grow(x.in, int(room)+1-len(x.in))
		n, err := r.Body.Read(x.in[len(x.in) : room+1])
		x.in = x.in[:len(x.in)+n]
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return unreadable(err)
		case int64(len(x.in)) > limit:
			return tooLarge(limit)
		case int64(len(x.in)) > room:
			if refused := x.pass(r.Context(), x.handler.gates.second, limit-room); refused != nil {
				return refused
			}
			room = limit
		}
	}
}

func acceptable(header http.Header) *refusal {
	// This is what an API server sends. Only others are worth a closer look.
	if sent := header["Content-Type"]; len(sent) != 1 || sent[0] != "application/json" {
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

// pass waits at a limiter until there is room for that many bytes of a body and its
// answer.
func (x *exchange) pass(ctx context.Context, g *limiter, bytes int64) *refusal {
	held, err := g.enter(ctx, memoryPerByte*bytes)
	switch {
	case err == nil:
		x.passed = append(x.passed, passage{g, held})
		return nil
	case ctx.Err() != nil:
		return &refusal{http.StatusRequestTimeout, failureCanceled, errGone.Error()}
	}
	return overloaded(x.handler.gates.limit())
}

func unsupported(format, value string) *refusal {
	return &refusal{http.StatusUnsupportedMediaType, failureInvalidReview, fmt.Sprintf(format, value)}
}

func tooLarge(limit int64) *refusal {
	return &refusal{http.StatusRequestEntityTooLarge, failureBodyTooLarge, fmt.Sprintf("the review is larger than the %d bytes that the converter accepts", limit)}
}

func overloaded(limit int64) *refusal {
	return &refusal{http.StatusTooManyRequests, failureOverloaded,
		fmt.Sprintf("the converter is busy: the reviews that it holds fill the %d bytes that it may use for them", limit)}
}

// unreadable explains why the rest of a body did not come.
func unreadable(err error) *refusal {
	switch {
	case errors.Is(err, io.ErrUnexpectedEOF):
		return &refusal{http.StatusBadRequest, failureCanceled, "the body ends before its Content-Length"}
	case errors.Is(err, os.ErrDeadlineExceeded):
		return &refusal{http.StatusRequestTimeout, failureCanceled, fmt.Sprintf("the body did not arrive within %s", readTimeout)}
	}
	return &refusal{http.StatusBadRequest, failureCanceled, fmt.Sprintf("the body cannot be read: %s", err)}
}
