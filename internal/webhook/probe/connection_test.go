// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package probe

import (
	"context"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"

	"github.com/conversion-operator/conversion-operator/internal/test/expect"
	"github.com/conversion-operator/conversion-operator/internal/webhook"
	"github.com/conversion-operator/conversion-operator/internal/webhook/internal/testca"
)

// expiring is a context whose deadline passes when the test closes passed.
type expiring struct {
	context.Context
	passed chan struct{}
	err    error
}

func (c *expiring) Done() <-chan struct{} { return c.passed }

func (c *expiring) Err() error {
	select {
	case <-c.passed:
		return c.err
	default:
		return nil
	}
}

func TestPodHangs(t *testing.T) {
	hangAt := func(path string) func(*testing.T, chan struct{}) Target {
		return func(t *testing.T, hanging chan struct{}) Target {
			pod := newPod(t, converter)
			handler := pod.other
			pod.other = func(w http.ResponseWriter, r *http.Request) {
				if r.URL.Path == path {
					// The server detects that the client disconnected only after it has read the
					// body.
					_, _ = io.Copy(io.Discard, r.Body)
					close(hanging)
					<-r.Context().Done()
					return
				}
				handler(w, r)
			}
			return pod.target
		}
	}
	cases := map[string]struct {
		start func(*testing.T, chan struct{}) Target
		want  string
	}{
		"in the handshake": {
			start: func(t *testing.T, hanging chan struct{}) Target {
				return Target{CABundle: testca.New(t).Bundle, ServerName: serverName, Address: acceptAnd(t, func(c net.Conn) { readRecord(c); close(hanging) })}
			},
			want: "TLS handshake with ADDRESS as crontabs.conversion-system.svc timed out: " + hintPod,
		},
		"for the ruleset":  {start: hangAt(webhook.RulesetsPath), want: "GET /ruleset timed out: " + hintPod},
		"for a conversion": {start: hangAt(webhook.ConvertPath + "/abc"), want: "POST /convert/abc timed out: " + hintPod},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			hanging := make(chan struct{})
			target := tc.start(t, hanging)
			_, err := Pod(&expiring{t.Context(), hanging, context.DeadlineExceeded}, target)
			expectError(t, &Error{ReasonUnreachable, strings.ReplaceAll(tc.want, "ADDRESS", target.Address)}, err)
		})
		t.Run(name+" and is cancelled", func(t *testing.T) {
			hanging := make(chan struct{})
			target := tc.start(t, hanging)
			_, err := Pod(&expiring{t.Context(), hanging, context.Canceled}, target)
			if _, ok := errors.AsType[*Error](err); ok || !errors.Is(err, context.Canceled) {
				t.Errorf("error is %T %v", err, err)
			}
		})
	}
}

func TestNoConverterListens(t *testing.T) {
	cases := map[string]struct {
		address string
		want    *Error
	}{
		"nothing": {acceptAnd(t, nil), &Error{ReasonUnreachable, "connecting to ADDRESS: connection refused: nothing listens at that port"}},
		"something that hangs up": {
			acceptAnd(t, func(c net.Conn) { readRecord(c); c.Close() }),
			&Error{ReasonUnreachable, "TLS handshake with ADDRESS as crontabs.conversion-system.svc: the connection was closed by the other side"},
		},
		"something without TLS": {
			acceptAnd(t, func(c net.Conn) { _, _ = io.WriteString(c, "HTTP/1.1 400 Bad Request\r\n\r\n") }),
			&Error{ReasonUnexpectedAnswer, "TLS handshake with ADDRESS as crontabs.conversion-system.svc: tls: first record does not look like a TLS handshake"},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			_, err := Pod(t.Context(), Target{CABundle: testca.New(t).Bundle, ServerName: serverName, Address: tc.address})
			tc.want.Message = strings.ReplaceAll(tc.want.Message, "ADDRESS", tc.address)
			expectError(t, tc.want, err)
		})
	}
}

// acceptAnd returns an address, and calls do with the first connection to it. If do is nil, nothing
// listens there.
func acceptAnd(t *testing.T, do func(net.Conn)) string {
	t.Helper()
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	expect.NoError(t, err)
	if do == nil {
		listener.Close()
		return listener.Addr().String()
	}
	t.Cleanup(func() { listener.Close() })
	go func() {
		connection, err := listener.Accept()
		if err != nil {
			return
		}
		t.Cleanup(func() { connection.Close() })
		do(connection)
	}()
	return listener.Addr().String()
}

// readRecord reads the first TLS record of a client.
func readRecord(connection net.Conn) {
	var header [5]byte
	_, _ = io.ReadFull(connection, header[:])
	_, _ = io.CopyN(io.Discard, connection, int64(binary.BigEndian.Uint16(header[3:])))
}
