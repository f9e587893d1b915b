// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/go-logr/logr"

	"github.com/conversion-operator/conversion-operator/internal/test/expect"
)

// TestReadBody: a call holds memory for what has arrived of its body, and at most four times that. The start of a body
// needs none.
func TestReadBody(t *testing.T) {
	const room = 16 * firstBytes
	body := func(bytes int) string { return strings.Repeat(" ", bytes) }
	const busy = "the converter is busy: the reviews that it holds fill the memory that it may use for them"
	const large = "the review is larger than the 131072 bytes that the converter accepts"
	cases := map[string]struct {
		body string
		// announced is the length in the header, if it is not that of the body; -1 for none.
		announced int64
		// others is what other calls hold.
		others int64
		want   string
		// held is what the call holds in the end.
		held int64
	}{
		"nothing":                          {body: "", others: room},
		"the start":                        {body: body(firstBytes - 1), others: room},
		"the start of a large one":         {body: body(firstBytes - 1), announced: 8 * firstBytes, others: room},
		"the start of one of no length":    {body: body(firstBytes - 1), announced: -1, others: room},
		"larger":                           {body: body(2 * firstBytes), held: firstBytes + 1},
		"larger, of no length":             {body: body(2 * firstBytes), announced: -1, held: 3*firstBytes - 3},
		"less than announced":              {body: body(firstBytes), announced: 8 * firstBytes, held: 3*firstBytes - 3},
		"the limit":                        {body: body(8 * firstBytes), held: 7*firstBytes + 1},
		"the limit, of no length":          {body: body(8 * firstBytes), announced: -1, held: 7*firstBytes + 1},
		"beyond the limit":                 {body: body(8*firstBytes + 1), want: large},
		"beyond the limit, of no length":   {body: body(8*firstBytes + 1), announced: -1, want: large, held: 7*firstBytes + 1},
		"beyond the limit, without room":   {body: body(8*firstBytes + 1), others: room, want: large},
		"no room to go on":                 {body: body(firstBytes), others: room, want: busy},
		"no room for the next part of one": {body: body(8 * firstBytes), others: room - 4*firstBytes, want: busy, held: 3*firstBytes - 3},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			handler := NewHandler(only(convertFunc(rename)), HandlerOptions{MaxBodyBytes: 8 * firstBytes})
			bodies := &handler.limiters.bodies
			bodies.limit = room
			expect.Equal(t, "others hold", true, bodies.hold(new(claim), tc.others))
			request := requestWith(tc.body, nil)
			if tc.announced != 0 {
				request.ContentLength = tc.announced
			}
			x := handler.newExchange(t.Context())
			got := ""
			if refused := x.readBody(request); refused != nil {
				got = refused.Error()
			} else if string(x.in) != tc.body {
				t.Errorf("got %d bytes, want %d", len(x.in), len(tc.body))
			}
			expect.Equal(t, "error", tc.want, got)
			expect.Equal(t, "held", tc.held, bodies.used-tc.others)
			x.release()
			expect.Equal(t, "held in the end", 0, bodies.used-tc.others)
		})
	}
}

func TestBusyConverter(t *testing.T) {
	handler := NewHandler(only(convertFunc(rename)), HandlerOptions{Log: logr.Discard()})
	makeBusy(t, handler)
	recorder := post(handler, v1Review(`{}`))
	expect.Equal(t, "status", http.StatusTooManyRequests, recorder.Code)
	expect.Equal(t, "Retry-After", "1", recorder.Header().Get("Retry-After"))
	expect.Equal(t, "Connection", "close", recorder.Header().Get("Connection"))
	expect.Equal(t, "answer", `{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","message":"the converter is busy: the reviews that it holds fill the memory that it may use for them","reason":"TooManyRequests","details":{"retryAfterSeconds":1},"code":429}`, recorder.Body.String())
}

func TestCallerDisconnectsWhileWaiting(t *testing.T) {
	handler := NewHandler(only(convertFunc(rename)), HandlerOptions{Log: logr.Discard()})
	makeBusy(t, handler)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	recorder := httptest.NewRecorder()
	handler.ServeHTTP(recorder, requestWith(v1Review(`{}`), nil).WithContext(ctx))
	expect.Equal(t, "status", http.StatusRequestTimeout, recorder.Code)
}

// TestCallerDisconnectsBetweenObjects checks that the conversion stops before the next object.
func TestCallerDisconnectsBetweenObjects(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	count := 0
	handler := NewHandler(only(convertFunc(func(dst, object []byte, toVersion string) ([]byte, error) {
		if count++; count == 2 {
			cancel()
		}
		return rename(dst, object, toVersion)
	})), HandlerOptions{Log: logr.Discard()})
	object := `{"apiVersion":"example.com/v1beta1"}`
	body := v1Review(`{"uid":"u","desiredAPIVersion":"example.com/v1","objects":[` + strings.Repeat(object+",", 9) + object + `]}`)
	recorder := httptest.NewRecorder()
	handler.ServeHTTP(recorder, requestWith(body, nil).WithContext(ctx))
	expect.Equal(t, "converted", 2, count)
	expect.Contains(t, "the answer", recorder.Body.String(), "object 1 of the review cannot be converted from v1beta1 to v1: the API server gave up on the call before it was answered")
}
