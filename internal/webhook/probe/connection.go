// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package probe

import (
	"bytes"
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"sync/atomic"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/conversion-operator/conversion-operator/internal/webhook"
)

// maxAnswerBytes bounds the size of an answer. Canary objects are small.
const maxAnswerBytes = 16 << 20

// connection is a verified TLS connection to a pod.
type connection struct {
	// base is the URL of the pod with its server name.
	base string
	// path is the path that the API server will call, and version the version of its reviews.
	path, version string
	// token is sent to the pod unless it is empty.
	token string
	// hint says what to check if it does not answer; the pod, if it is empty.
	hint string
	// refusals are the HTTP statuses other than 200 that only say that objects are not converted.
	refusals []int
	notAfter time.Time
	dialer   *dialer
	client   *http.Client
}

// dial connects to the pod and verifies its certificate.
func dial(ctx context.Context, target *Target) (*connection, error) {
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(target.CABundle) {
		return nil, failf(ReasonInvalidCertificate, "the CA bundle holds no certificate in PEM")
	}
	_, port, err := net.SplitHostPort(target.Address)
	if err != nil {
		return nil, fmt.Errorf("the pod's address: %w", err)
	}
	d := &dialer{address: target.Address, tls: &tls.Config{
		RootCAs:    roots,
		ServerName: target.ServerName,
		MinVersion: tls.VersionTLS12,
		NextProtos: []string{"http/1.1"}, // as API servers do for Services
	}}
	first, err := d.dial(ctx)
	if err != nil {
		return nil, err
	}
	d.first.Store(first)
	return &connection{
		path: webhook.ConvertPath + "/" + target.RulesetHash, version: apiextensionsv1.SchemeGroupVersion.Version,
		base:     "https://" + net.JoinHostPort(target.ServerName, port),
		notAfter: first.ConnectionState().PeerCertificates[0].NotAfter,
		dialer:   d,
		client: &http.Client{
			// No proxy and no compression: the request goes to the pod itself.
			Transport:     &http.Transport{DialTLSContext: d.reuse, DisableCompression: true},
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		},
	}, nil
}

func (c *connection) close() {
	c.client.CloseIdleConnections()
	if unused := c.dialer.first.Swap(nil); unused != nil {
		unused.Close()
	}
}

// dialer opens verified connections to one address, whatever host name is requested.
type dialer struct {
	address string
	tls     *tls.Config
	// first is opened before the HTTP client exists, so that a failure names its step.
	first atomic.Pointer[tls.Conn]
}

func (d *dialer) dial(ctx context.Context) (*tls.Conn, error) {
	conn, err := new(net.Dialer).DialContext(ctx, "tcp", d.address)
	if err != nil {
		return nil, step{"connecting to " + d.address, hintNetwork}.fail(ctx, err)
	}
	secured := tls.Client(conn, d.tls)
	if err := secured.HandshakeContext(ctx); err != nil {
		conn.Close()
		return nil, step{"TLS handshake with " + d.address + " as " + d.tls.ServerName, hintPod}.fail(ctx, err)
	}
	return secured, nil
}

// reuse returns the first connection once. If the server closes it after an answer, reuse opens
// another one.
func (d *dialer) reuse(ctx context.Context, _, _ string) (net.Conn, error) {
	if first := d.first.Swap(nil); first != nil {
		return first, nil
	}
	return d.dial(ctx)
}

// call returns the body of an answer with status 200.
func (c *connection) call(ctx context.Context, method, path string, body []byte) ([]byte, error) {
	step := step{method + " " + path, cmp.Or(c.hint, hintPod)}
	request, err := http.NewRequestWithContext(ctx, method, c.base+path, bytes.NewReader(body))
	if err != nil {
		return nil, fmt.Errorf("the pod's server name: %w", err)
	}
	request.Header.Set("User-Agent", webhook.ProbeAgent)
	if c.token != "" {
		webhook.Authorize(request, c.token)
	}
	if method == http.MethodPost {
		request.Header.Set("Content-Type", "application/json")
	}
	response, err := c.client.Do(request)
	if err != nil {
		return nil, step.fail(ctx, err)
	}
	defer response.Body.Close()
	answer, err := io.ReadAll(io.LimitReader(response.Body, maxAnswerBytes+1))
	if err == nil {
		// After the end of ctx, the pod may send any answer.
		err = ctx.Err()
	}
	if err != nil {
		return nil, step.fail(ctx, err)
	}
	if response.StatusCode != http.StatusOK {
		failure := failf(ReasonUnexpectedAnswer, "%s answered HTTP status %d: %s", step.name, response.StatusCode, statusMessage(answer))
		if slices.Contains(c.refusals, response.StatusCode) {
			return nil, &refusal{failure}
		}
		return nil, failure
	}
	if len(answer) > maxAnswerBytes {
		return nil, failf(ReasonUnexpectedAnswer, "%s answered more than %d bytes", step.name, maxAnswerBytes)
	}
	return answer, nil
}

// statusMessage returns the message of a Status, or the text itself.
func statusMessage(body []byte) string {
	var status metav1.Status
	if err := json.Unmarshal(body, &status); err == nil && status.Message != "" {
		return bounded(status.Message)
	}
	return quote(string(bytes.TrimSpace(body)))
}

// Handshake only verifies the certificate of a converter, and returns when it expires. The error is
// like that of Pod.
func Handshake(ctx context.Context, target OwnTarget) (notAfter time.Time, err error) {
	connection, err := dial(ctx, &Target{Address: target.Address, CABundle: target.CABundle, ServerName: target.ServerName})
	if err != nil {
		return time.Time{}, err
	}
	defer connection.close()
	return connection.notAfter, nil
}
