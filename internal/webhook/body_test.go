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
	"github.com/google/go-cmp/cmp"
)

// TestReceive takes bodies through a gate of four times the bytes that a call
// waits for, part of which others hold.
func TestReceive(t *testing.T) {
	const unit = memoryPerByte * firstBytes
	body := func(bytes int) string { return strings.Repeat(" ", bytes) }
	const busy = "the converter is busy: the reviews that it holds fill the 524288 bytes that it may use for them"
	cases := map[string]struct {
		body     string
		chunked  bool
		others   int64
		want     string
		reserved int64
	}{
		"nothing":                         {body: "", others: 4 * unit, reserved: 0},
		"small":                           {body: body(100), reserved: 200},
		"small, of no length":             {body: body(100), chunked: true, reserved: unit},
		"what is waited for":              {body: body(firstBytes), others: 3 * unit, reserved: unit},
		"larger":                          {body: body(3 * firstBytes), others: unit, reserved: 3 * unit},
		"larger, of no length":            {body: body(3 * firstBytes), chunked: true, reserved: 4 * unit},
		"larger than the gate, alone":     {body: body(5 * firstBytes), reserved: 4 * unit},
		"the limit":                       {body: body(8 * firstBytes), reserved: 4 * unit},
		"the limit, of no length":         {body: body(8 * firstBytes), chunked: true, reserved: 4 * unit},
		"beyond the limit":                {body: body(8*firstBytes + 1), want: "the review is larger than the 524288 bytes that the converter accepts"},
		"beyond the limit, of no length":  {body: body(8*firstBytes + 1), chunked: true, want: "the review is larger than the 524288 bytes that the converter accepts", reserved: 4 * unit},
		"no room to begin":                {body: body(firstBytes), others: 3*unit + 1, want: busy},
		"no room for what comes behind":   {body: body(firstBytes + 1), others: 3 * unit, want: busy, reserved: unit},
		"no room for one of no length":    {body: body(1), chunked: true, others: 3*unit + 1, want: busy},
		"room for less than all of it":    {body: body(4 * firstBytes), others: unit, want: busy, reserved: 2 * unit},
		"a Content-Length beyond all use": {body: body(8*firstBytes + 1), others: 4 * unit, want: "the review is larger than the 524288 bytes that the converter accepts"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			handler := NewHandler(convertFunc(rename), HandlerOptions{MaxBodyBytes: 8 * firstBytes, MaxBytesInFlight: 4 * unit})
			handler.gate.patience = 0
			if _, err := handler.gate.enter(t.Context(), tc.others); err != nil {
				t.Fatal(err)
			}
			request := requestWith(tc.body, nil)
			if tc.chunked {
				request.ContentLength = -1
			}
			x := handler.newExchange()
			got := ""
			if refused := x.receive(request); refused != nil {
				got = refused.Error()
			} else if string(x.in) != tc.body {
				t.Errorf("got %d bytes, want %d", len(x.in), len(tc.body))
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("error (-want +got):\n%s", diff)
			}
			expect(t, "reserved", tc.reserved, x.reserved)
			x.release()
			expect(t, "used by others", tc.others, handler.gate.used.Load())
		})
	}
}

func TestBusyConverter(t *testing.T) {
	handler := NewHandler(convertFunc(rename), HandlerOptions{Group: "example.com", MaxBytesInFlight: 10, Log: logr.Discard()})
	handler.gate.patience = 0
	if _, err := handler.gate.enter(t.Context(), 10); err != nil {
		t.Fatal(err)
	}
	if scraped := scrape(t, handler); !strings.Contains(scraped, `conversion_operator_webhook_bytes_in_flight{crd=""} 10`) {
		t.Errorf("the bytes in flight are not shown: %s", scraped)
	}
	recorder := post(handler, v1Review(`{}`))
	expect(t, "status", http.StatusTooManyRequests, recorder.Code)
	expect(t, "Retry-After", "1", recorder.Header().Get("Retry-After"))
	expect(t, "Connection", "close", recorder.Header().Get("Connection"))
	expect(t, "answer", `{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","message":"the converter is busy: the reviews that it holds fill the 10 bytes that it may use for them","reason":"TooManyRequests","details":{"retryAfterSeconds":1},"code":429}`, recorder.Body.String())
}

func TestCallerGoesAwayWhileWaiting(t *testing.T) {
	handler := NewHandler(convertFunc(rename), HandlerOptions{Group: "example.com", MaxBytesInFlight: 10, Log: logr.Discard()})
	if _, err := handler.gate.enter(t.Context(), 10); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	recorder := httptest.NewRecorder()
	handler.ServeHTTP(recorder, requestWith(v1Review(`{}`), nil).WithContext(ctx))
	expect(t, "status", http.StatusRequestTimeout, recorder.Code)
}

// TestCallerGoesAway stops between two objects of a review that nobody waits for.
func TestCallerGoesAway(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	count := 0
	handler := NewHandler(convertFunc(func(dst, object []byte, toVersion string) ([]byte, error) {
		if count++; count == 2 {
			cancel()
		}
		return rename(dst, object, toVersion)
	}), HandlerOptions{Group: "example.com", Log: logr.Discard()})
	object := `{"apiVersion":"example.com/v1beta1"}`
	body := v1Review(`{"uid":"u","desiredAPIVersion":"example.com/v1","objects":[` + strings.Repeat(object+",", 9) + object + `]}`)
	recorder := httptest.NewRecorder()
	handler.ServeHTTP(recorder, requestWith(body, nil).WithContext(ctx))
	expect(t, "converted", 2, count)
	if got := recorder.Body.String(); !strings.Contains(got, "object 1 of the review cannot be converted from v1beta1 to v1: the API server gave the call up before it was answered") {
		t.Error(got)
	}
}
