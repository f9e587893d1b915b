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

// firstBytes are waited for before anything of a body is read. Most reviews are
// smaller. What a client promises beyond is believed only as it arrives: nobody
// shuts others out by a large Content-Length.
const firstBytes = 64 << 10

// memoryPerByte is what a call holds for each byte of its body: that byte, and
// one of the answer, which is about as long.
const memoryPerByte = 2

// receive fills the exchange with the body of r, within the bounds of the handler.
func (x *exchange) receive(r *http.Request) *refusal {
	if err := acceptable(r.Header); err != nil {
		return err
	}
	limit := x.handler.options.MaxBodyBytes
	if r.ContentLength > limit {
		return tooLarge(limit)
	}
	if r.ContentLength >= 0 {
		limit = r.ContentLength
	}
	room := min(limit, firstBytes)
	if err := x.reserve(r.Context(), room); err != nil {
		return err
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
			more := min(2*room, limit) - room
			if !x.reserveMore(more) {
				return overloaded(x.handler.gate.limit)
			}
			room += more
		}
	}
}

func acceptable(header http.Header) *refusal {
	// This is what an API server sends. Only others are worth a closer look.
	if contentType := header.Get("Content-Type"); contentType != "application/json" {
		if mediaType, _, err := mime.ParseMediaType(contentType); err != nil || mediaType != "application/json" {
			return unsupported("Content-Type is %q, not application/json", contentType)
		}
	}
	if encoding := header.Get("Content-Encoding"); encoding != "" && encoding != "identity" {
		return unsupported("Content-Encoding is %q: send the review uncompressed", encoding)
	}
	return nil
}

// reserve waits until there is room for so many bytes of a body and its answer.
func (x *exchange) reserve(ctx context.Context, bytes int64) *refusal {
	held, err := x.handler.gate.enter(ctx, memoryPerByte*bytes)
	x.reserved = held
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return &refusal{http.StatusRequestTimeout, failureCanceled, errGone.Error()}
	}
	return overloaded(x.handler.gate.limit)
}

// reserveMore does not wait: calls that wait while they hold something could wait
// for each other.
func (x *exchange) reserveMore(bytes int64) bool {
	held, ok := x.handler.gate.widen(x.reserved, memoryPerByte*bytes)
	x.reserved = held
	return ok
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
