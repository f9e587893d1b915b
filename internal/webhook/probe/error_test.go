// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package probe

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"syscall"
	"testing"

	"github.com/conversion-operator/conversion-operator/internal/test/expect"
)

// TestFail tests network errors that cannot occur on loopback.
func TestFail(t *testing.T) {
	local := &net.TCPAddr{IP: net.IPv4(10, 0, 0, 1), Port: 54321}
	remote := &net.TCPAddr{IP: net.IPv4(10, 0, 0, 7), Port: 9443}
	operation := func(name string, err error) error {
		return &net.OpError{Op: name, Net: "tcp", Source: local, Addr: remote, Err: err}
	}
	request := func(err error) error {
		return &url.Error{Op: http.MethodPost, URL: "https://crontabs.conversion-system.svc:9443/convert", Err: err}
	}
	cases := map[string]struct {
		err  error
		want *Error
	}{
		"dropped packets":   {operation("dial", os.NewSyscallError("connect", syscall.ETIMEDOUT)), &Error{ReasonUnreachable, "connecting timed out: look there"}},
		"deadline":          {operation("dial", os.ErrDeadlineExceeded), &Error{ReasonUnreachable, "connecting timed out: look there"}},
		"no route":          {operation("dial", os.NewSyscallError("connect", syscall.EHOSTUNREACH)), &Error{ReasonUnreachable, "connecting: no route to host: " + hintNetwork}},
		"refused":           {operation("dial", os.NewSyscallError("connect", syscall.ECONNREFUSED)), &Error{ReasonUnreachable, "connecting: connection refused: nothing listens at that port"}},
		"reset":             {request(operation("read", os.NewSyscallError("read", syscall.ECONNRESET))), &Error{ReasonUnreachable, "connecting: connection reset by peer: " + hintNetwork}},
		"closed":            {request(io.EOF), &Error{ReasonUnreachable, "connecting: the connection was closed by the other side"}},
		"closed in a body":  {io.ErrUnexpectedEOF, &Error{ReasonUnreachable, "connecting: the connection was closed by the other side"}},
		"not HTTP":          {request(fmt.Errorf("malformed HTTP response %q", "SSH-2.0")), &Error{ReasonUnexpectedAnswer, `connecting: malformed HTTP response "SSH-2.0"`}},
		"alert":             {operation("remote error", fmt.Errorf("tls: certificate required")), &Error{ReasonUnexpectedAnswer, "connecting: tls: certificate required"}},
		"an Error":          {request(failf(ReasonTLSVerificationFailed, "expired")), &Error{ReasonTLSVerificationFailed, "expired"}},
		"something unknown": {fmt.Errorf("unknown"), &Error{ReasonUnexpectedAnswer, "connecting: unknown"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			expectError(t, tc.want, step{"connecting", "look there"}.fail(t.Context(), tc.err))
		})
	}
}

func TestFailReturnsCancellation(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	expect.Equal(t, "error", context.Canceled.Error(), (step{}).fail(ctx, io.EOF).Error())
}
