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

// TestReadBody reads bodies through limiters that other calls hold in part. The first limiter has
// room for the starts of two bodies, the second for twice that.
func TestReadBody(t *testing.T) {
	const unit = memoryPerByte * firstBytes
	body := func(bytes int) string { return strings.Repeat(" ", bytes) }
	const busy = "the converter is busy: the reviews that it holds fill the 524288 bytes that it may use for them"
	const large = "the review is larger than the 524288 bytes that the converter accepts"
	cases := map[string]struct {
		body    string
		chunked bool
		// others is what other calls hold of the two limiters.
		others [2]int64
		want   string
		// held is what the call holds of both limiters in the end.
		held int64
	}{
		"nothing":                               {body: "", others: [2]int64{2 * unit, 2 * unit}},
		"small":                                 {body: body(100), held: 200},
		"small, of no length":                   {body: body(100), chunked: true, held: unit},
		"the beginning only":                    {body: body(firstBytes), others: [2]int64{unit, 2 * unit}, held: unit},
		"larger":                                {body: body(2 * firstBytes), others: [2]int64{unit, unit}, held: 2 * unit},
		"larger, of no length":                  {body: body(2 * firstBytes), chunked: true, held: 3 * unit},
		"larger than the limiters, alone":       {body: body(5 * firstBytes), held: 3 * unit},
		"the limit":                             {body: body(8 * firstBytes), held: 3 * unit},
		"the limit, of no length":               {body: body(8 * firstBytes), chunked: true, held: 3 * unit},
		"beyond the limit":                      {body: body(8*firstBytes + 1), want: large},
		"beyond the limit, of no length":        {body: body(8*firstBytes + 1), chunked: true, want: large, held: 3 * unit},
		"beyond the limit, without room":        {body: body(8*firstBytes + 1), others: [2]int64{2 * unit, 2 * unit}, want: large},
		"no room to begin":                      {body: body(firstBytes), others: [2]int64{unit + 1, 0}, want: busy},
		"no room to begin one of no length":     {body: body(1), chunked: true, others: [2]int64{unit + 1, 0}, want: busy},
		"no room to go on":                      {body: body(3 * firstBytes), others: [2]int64{0, 1}, want: busy, held: unit},
		"large bodies do not hinder small ones": {body: body(firstBytes), others: [2]int64{0, 2 * unit}, held: unit},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			handler := NewHandler(only(convertFunc(rename)), HandlerOptions{MaxBodyBytes: 8 * firstBytes, MaxBytesInFlight: 4 * unit})
			for i, limiter := range []*limiter{handler.limiters.first, handler.limiters.second} {
				limiter.maxWait = 0
				_, err := limiter.acquire(t.Context(), new(share), tc.others[i])
				expect.NoError(t, err)
			}
			request := requestWith(tc.body, nil)
			if tc.chunked {
				request.ContentLength = -1
			}
			x := handler.newExchange()
			got := ""
			if refused := x.readBody(request); refused != nil {
				got = refused.Error()
			} else if string(x.in) != tc.body {
				t.Errorf("got %d bytes, want %d", len(x.in), len(tc.body))
			}
			expect.Equal(t, "error", tc.want, got)
			others := tc.others[0] + tc.others[1]
			expect.Equal(t, "held", tc.held, usedBytes(handler)-others)
			x.release()
			expect.Equal(t, "held in the end", 0, usedBytes(handler)-others)
		})
	}
}

func TestBusyConverter(t *testing.T) {
	handler := NewHandler(only(convertFunc(rename)), HandlerOptions{MaxBytesInFlight: 10, Log: logr.Discard()})
	handler.limiters.first.maxWait = 0
	_, err := handler.limiters.first.acquire(t.Context(), &handler.served.Load().other.held.first, 10)
	expect.NoError(t, err)
	expect.Contains(t, "the metrics", scrape(t, handler), `conversion_operator_webhook_bytes_in_flight{crd="crontabs.example.com"} 5`)
	recorder := post(handler, v1Review(`{}`))
	expect.Equal(t, "status", http.StatusTooManyRequests, recorder.Code)
	expect.Equal(t, "Retry-After", "1", recorder.Header().Get("Retry-After"))
	expect.Equal(t, "Connection", "close", recorder.Header().Get("Connection"))
	expect.Equal(t, "answer", `{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","message":"the converter is busy: the reviews that it holds fill the 10 bytes that it may use for them","reason":"TooManyRequests","details":{"retryAfterSeconds":1},"code":429}`, recorder.Body.String())
}

func TestCallerDisconnectsWhileWaiting(t *testing.T) {
	handler := NewHandler(only(convertFunc(rename)), HandlerOptions{MaxBytesInFlight: 10, Log: logr.Discard()})
	_, err := handler.limiters.first.acquire(t.Context(), &handler.served.Load().other.held.first, 10)
	expect.NoError(t, err)
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
