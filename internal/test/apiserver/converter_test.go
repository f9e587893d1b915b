//go:build integration

// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"context"
	"errors"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/conversion-operator/conversion-operator/internal/conversion"
	"github.com/conversion-operator/conversion-operator/internal/pki"
	"github.com/conversion-operator/conversion-operator/internal/test/expect"
	"github.com/conversion-operator/conversion-operator/internal/webhook"
)

// host is the API server's address for converters.
const host = "localhost"

// converter acts as a converter pod.
type converter struct {
	plan      *conversion.Ruleset
	engine    *conversion.Converter
	bundle    []byte
	directory string
	port      int
	stop      func()
}

// newConverter starts a converter for a ruleset, which is encoded and decoded as for a converter
// pod.
func newConverter(t *testing.T, compiled *conversion.Ruleset) *converter {
	t.Helper()
	text, err := compiled.Marshal()
	expect.NoError(t, err)
	plan, err := conversion.Load(text)
	expect.NoError(t, err)
	engine, err := conversion.NewConverter(plan)
	expect.NoError(t, err)
	c := &converter{plan: plan, engine: engine, directory: t.TempDir(), port: freePort(t)}
	c.certify(t)
	c.start(t)
	return c
}

// certify issues the converter's certificate.
func (c *converter) certify(t *testing.T) {
	t.Helper()
	authority, err := pki.NewAuthority("converters of tests", time.Now(), time.Hour)
	expect.NoError(t, err)
	leaf, err := pki.IssueLeaf(authority, host, time.Now(), time.Hour)
	expect.NoError(t, err)
	c.bundle = authority.Certificate
	expect.NoError(t, os.WriteFile(filepath.Join(c.directory, corev1.TLSCertKey), leaf.Certificate, 0o600))
	expect.NoError(t, os.WriteFile(filepath.Join(c.directory, corev1.TLSPrivateKeyKey), leaf.Key, 0o600))
}

// start starts the server, until stop or the end of the test.
func (c *converter) start(t *testing.T) {
	t.Helper()
	server, err := webhook.NewServer(c.handler(), webhook.ServerOptions{Address: c.address(), CertificateDirectory: c.directory, Log: logr.Discard()})
	expect.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- server.Run(ctx) }()
	c.stop = sync.OnceFunc(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(c.stop)
	expect.Success(t, "the converter listens", func(ctx context.Context) error {
		connection, err := new(net.Dialer).DialContext(ctx, "tcp", c.address())
		return errors.Join(err, closeIfOpen(connection))
	})
}

// handler converts by the ruleset.
func (c *converter) handler() *webhook.Handler {
	return webhook.NewHandler([]webhook.Ruleset{{CRD: c.plan.CRD, Group: c.plan.Group, Kind: c.plan.Kind, Hash: c.plan.Hash(), Pairs: c.plan.Pairs(), Converter: c.engine}},
		webhook.HandlerOptions{Log: logr.Discard()})
}

func closeIfOpen(connection net.Conn) error {
	if connection == nil {
		return nil
	}
	return connection.Close()
}

// path is the URL path of the ruleset.
func (c *converter) path() string { return webhook.ConvertPath + "/" + c.plan.Hash() }

func (c *converter) address() string { return net.JoinHostPort(host, strconv.Itoa(c.port)) }

// conversion returns spec.conversion for this converter.
func (c *converter) conversion() *apiextensionsv1.CustomResourceConversion {
	return &apiextensionsv1.CustomResourceConversion{
		Strategy: apiextensionsv1.WebhookConverter,
		Webhook: &apiextensionsv1.WebhookConversion{
			ConversionReviewVersions: []string{"v1"},
			ClientConfig: &apiextensionsv1.WebhookClientConfig{
				URL: new("https://" + c.address() + c.path()), CABundle: c.bundle,
			},
		},
	}
}

// The ports of converters are below those that the kernel gives to connections and to listeners that ask for
// any port: a converter stops and listens again.
const (
	firstPort = 20000
	portCount = 12000
)

// port is the last port of a converter, counted from the first one. Other processes begin elsewhere.
var port = func() *atomic.Int64 {
	begin := new(atomic.Int64)
	begin.Store(rand.Int64N(portCount))
	return begin
}()

// freePort returns a port without a listener, which no other converter of this process has.
func freePort(t *testing.T) int {
	t.Helper()
	for range portCount {
		next := firstPort + int(port.Add(1)%portCount)
		listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", ":"+strconv.Itoa(next))
		if err == nil {
			expect.NoError(t, listener.Close())
			return next
		}
	}
	t.Fatal("there is no free port")
	return 0
}
