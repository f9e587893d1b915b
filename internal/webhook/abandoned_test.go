// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"context"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"testing"

	"github.com/go-logr/logr"

	"github.com/conversion-operator/conversion-operator/internal/engine/conversion"
	"github.com/conversion-operator/conversion-operator/internal/test/expect"
)

// endless is a Converter that converts until it is stopped.
type endless struct{ called chan struct{} }

func (e endless) Answer(dst, _ []byte, _ string, stop func(int64) bool) ([]byte, conversion.Outcome, error) {
	close(e.called)
	for !stop(0) {
		runtime.Gosched()
	}
	return dst, conversion.Outcome{From: "v1beta1"}, conversion.ErrStopped
}

const twoObjects = `{"uid":"u","desiredAPIVersion":"example.com/v1","objects":[{"apiVersion":"example.com/v1beta1","kind":"A"},{"apiVersion":"example.com/v1beta1","kind":"A"}]}`

// TestCallerDisconnects checks that a closed connection stops the conversion of the current object
// and of all that follow.
func TestCallerDisconnects(t *testing.T) {
	e := endless{make(chan struct{})}
	handler := NewHandler(only(e, [2]string{"v1beta1", "v1"}), HandlerOptions{Log: logr.Discard()})
	answered := make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		handler.ServeHTTP(w, r)
		close(answered)
	}))
	defer server.Close()

	ctx, disconnect := context.WithCancel(t.Context())
	go func() {
		<-e.called
		disconnect()
	}()
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, server.URL+testPath, strings.NewReader(v1Review(twoObjects)))
	expect.NoError(t, err)
	request.Header.Set("Content-Type", "application/json")
	if answer, err := http.DefaultClient.Do(request); err == nil {
		answer.Body.Close()
		t.Fatal("a caller that has disconnected got an answer")
	}
	<-answered
	want := namespace + `_conversion_failures_total{crd="crontabs.example.com",failure_type="canceled",from="v1beta1",to="v1"} 1`
	expect.Contains(t, "the metrics", scrape(t, handler), want)
}

// TestAPIServerHasTimedOut checks that a call older than the timeout of API servers is stopped,
// even if its connection is open.
func TestAPIServerHasTimedOut(t *testing.T) {
	e := endless{make(chan struct{})}
	handler := NewHandler(only(e, [2]string{"v1beta1", "v1"}), HandlerOptions{Log: logr.Discard()})
	x := begin(t, handler)
	x.converter, x.began, x.in = e, x.began-callTimeout, append(x.in[:0], v1Review(twoObjects)...)
	if refused := x.respond(t.Context()); refused != nil || x.failure != failureCanceled || x.converted != 0 {
		t.Errorf("%d objects: %v, failure %v", x.converted, refused, failureTypes[x.failure])
	}
	expect.Contains(t, "the answer", string(x.out), errAbandoned.Error())
}
