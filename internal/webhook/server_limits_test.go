// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"bufio"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/conversion-operator/conversion-operator/internal/test/expect"
)

// connect opens a TLS connection without an HTTP client.
func (r *running) connect(t *testing.T, config *tls.Config) *tls.Conn {
	t.Helper()
	config.RootCAs, config.ServerName = r.authority.Pool(), serviceName
	connection, err := new(tls.Dialer{Config: config}).DialContext(t.Context(), "tcp", r.address)
	expect.NoError(t, err)
	t.Cleanup(func() { connection.Close() })
	return connection.(*tls.Conn)
}

// TestSlowClients checks that clients that send less than they announce are disconnected, and that
// their memory is released.
func TestSlowClients(t *testing.T) {
	const head = "POST " + testPath + " HTTP/1.1\r\nHost: " + serviceName + "\r\nContent-Type: application/json\r\n"
	cases := map[string]struct {
		sent string
		want string
	}{
		"no body":              {sent: head + "Content-Length: 1000\r\n\r\n", want: "408 Request Timeout"},
		"half of a body":       {sent: head + "Content-Length: 1000\r\n\r\n" + v1Review(`{"uid":`), want: "408 Request Timeout"},
		"half of a chunk":      {sent: head + "Transfer-Encoding: chunked\r\n\r\n1000\r\n{", want: "408 Request Timeout"},
		"a header without end": {sent: head + "X-Long: " + strings.Repeat("x", 2*maxHeaderBytes), want: "431 Request Header Fields Too Large"},
		"no HTTP":              {sent: "\x00\x01\x02\r\n\r\n", want: "400 Bad Request"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			// The time must also suffice for the handshake on a busy machine.
			server := start(t, newTestHandler(), func(s *Server) { s.readTimeout = 3 * time.Second })
			connection := server.connect(t, &tls.Config{})
			_, err := io.WriteString(connection, tc.sent)
			expect.NoError(t, err)
			reader := bufio.NewReader(connection)
			expect.Equal(t, "status", tc.want, statusLine(reader))
			// The copy ends when the server closes the connection.
			_, _ = io.Copy(io.Discard, reader)
			expect.Equal(t, "bytes in flight", 0, server.handler.limiters.used())
		})
	}
}

// pipe is a listener for connections in memory.
type pipe struct {
	net.Listener
	served chan net.Conn
}

func (l *pipe) Accept() (net.Conn, error) {
	if connection, open := <-l.served; open {
		return connection, nil
	}
	return nil, net.ErrClosed
}

func (l *pipe) Close() error {
	close(l.served)
	return nil
}

func (l *pipe) Addr() net.Addr { return &net.TCPAddr{} }

// statusLine returns the status of an answer, or an empty string if there is none.
func statusLine(reader *bufio.Reader) string {
	response, err := http.ReadResponse(reader, nil)
	if err != nil {
		return ""
	}
	defer response.Body.Close()
	_, _ = io.Copy(io.Discard, response.Body)
	return response.Status
}

// TestHalfSentBodies checks bodies of clients that disconnect.
func TestHalfSentBodies(t *testing.T) {
	server := start(t, newTestHandler())
	for _, length := range []int{1000, firstBytes * 3} {
		connection := server.connect(t, &tls.Config{})
		if _, err := fmt.Fprintf(connection, "POST "+testPath+" HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s",
			length, strings.Repeat(" ", length/2)); err != nil {
			t.Fatal(err)
		}
		expect.NoError(t, connection.CloseWrite())
		expect.Equal(t, "status", "400 Bad Request", statusLine(bufio.NewReader(connection)))
		connection.Close()
	}
	server.end()
	expect.Equal(t, "bytes in flight", 0, server.handler.limiters.used())
	want := namespace + `_requests_total{crd="crontabs.example.com",failure_type="canceled",result="failure"} 2`
	expect.Contains(t, "the metrics", scrape(t, server.handler), want)
}

// TestServerResumesTLSSessions checks the negotiated version of a new and of a resumed session.
func TestServerResumesTLSSessions(t *testing.T) {
	server := start(t, newTestHandler())
	cases := map[string]struct {
		config *tls.Config
		want   uint16
	}{
		"1.3": {config: &tls.Config{}, want: tls.VersionTLS13},
		"1.2": {config: &tls.Config{MaxVersion: tls.VersionTLS12}, want: tls.VersionTLS12},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			tc.config.ClientSessionCache = tls.NewLRUClientSessionCache(1)
			for _, resumed := range []bool{false, true} {
				connection := server.connect(t, tc.config.Clone())
				state := connection.ConnectionState()
				expect.Equal(t, "version", tls.VersionName(tc.want), tls.VersionName(state.Version))
				expect.Equal(t, "resumed", resumed, state.DidResume)
				// The ticket arrives with the first answer.
				_, _ = io.WriteString(connection, "GET /readyz HTTP/1.1\r\nHost: a\r\n\r\n")
				expect.Equal(t, "status", "200 OK", statusLine(bufio.NewReader(connection)))
			}
		})
	}
}
