// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cmd

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/leaderelection"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/conversion-operator/conversion-operator/internal/operator/pki"
	"github.com/conversion-operator/conversion-operator/internal/test/expect"
)

// serveMetrics serves metrics as the manager does until the test ends, and returns the address.
func serveMetrics(t *testing.T, manager managerOptions) string {
	t.Helper()
	manager.metrics = "127.0.0.1:0"
	options := manager.metricsOptions()
	options.FilterProvider = nil // without an API server, no authorization is possible
	server, err := metricsserver.NewServer(options, &rest.Config{}, http.DefaultClient)
	expect.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- server.Start(ctx) }()
	t.Cleanup(func() {
		cancel()
		expect.NoError(t, <-ended)
	})
	bound, known := server.(interface{ GetBindAddr() string })
	if !known {
		t.Fatalf("%T does not tell where it listens", server)
	}
	expect.Eventually(t, "it listens", func() (bool, string) { return bound.GetBindAddr() != "", "no address" })
	return bound.GetBindAddr()
}

// TestManagerNeedsItsPod: a manager in a pod that does not know its own account does not start, because
// it could not keep users from that account.
func TestManagerNeedsItsPod(t *testing.T) {
	t.Setenv("KUBERNETES_SERVICE_HOST", "10.0.0.1")
	err := managerOptions{namespace: "conversion-system", image: "a"}.run(t.Context())
	if err == nil || !strings.HasPrefix(err.Error(), "--pod is empty in a pod") {
		t.Errorf("the error is %v", err)
	}
}

// TestManagerMetricsTLS: the metrics server has the same TLS settings as converters.
func TestManagerMetricsTLS(t *testing.T) {
	address := serveMetrics(t, managerOptions{})
	for name, test := range map[string]struct {
		client  *tls.Config
		version uint16
		refused string
	}{
		"who can":               {&tls.Config{}, tls.VersionTLS13, ""},
		"who cannot":            {&tls.Config{MaxVersion: tls.VersionTLS12}, tls.VersionTLS12, ""},
		"who knows old ciphers": {&tls.Config{MaxVersion: tls.VersionTLS12, CipherSuites: []uint16{tls.TLS_ECDHE_RSA_WITH_AES_128_CBC_SHA}}, 0, "handshake failure"},
		"who knows old TLS":     {&tls.Config{MaxVersion: tls.VersionTLS11, MinVersion: tls.VersionTLS10}, 0, "protocol version not supported"},
	} {
		t.Run(name, func(t *testing.T) {
			test.client.InsecureSkipVerify = true
			connection, err := tls.Dial("tcp", address, test.client)
			if test.refused != "" {
				expect.Contains(t, "the error", fmt.Sprint(err), test.refused)
				return
			}
			expect.NoError(t, err)
			defer connection.Close()
			expect.Equal(t, "the version that it speaks", tls.VersionName(test.version), tls.VersionName(connection.ConnectionState().Version))
		})
	}
}

// TestManagerMetricsCertificate: a client that trusts the authority of the mounted certificate can
// verify the manager, also after a renewal.
func TestManagerMetricsCertificate(t *testing.T) {
	const name = "conversion-operator-metrics.conversion-system.svc"
	directory, now := t.TempDir(), time.Now()
	authority, err := pki.NewAuthority("metrics", now, time.Hour)
	expect.NoError(t, err)
	trusted := x509.NewCertPool()
	trusted.AppendCertsFromPEM(authority.Certificate)
	mount := func() {
		leaf, err := pki.IssueLeaf(authority, name, now, time.Hour)
		expect.NoError(t, err)
		for file, text := range map[string][]byte{"tls.crt": leaf.Certificate, "tls.key": leaf.Key} {
			expect.NoError(t, os.WriteFile(filepath.Join(directory, file), text, 0o600))
		}
	}
	mount()
	address := serveMetrics(t, managerOptions{metricsCerts: directory})
	served := func() string {
		connection, err := tls.Dial("tcp", address, &tls.Config{RootCAs: trusted, ServerName: name})
		expect.NoError(t, err)
		defer connection.Close()
		return connection.ConnectionState().PeerCertificates[0].SerialNumber.String()
	}
	first := served()
	mount()
	expect.Eventually(t, "the renewed certificate is served", func() (bool, string) { return served() != first, "the first one" })
}

// TestManagerMetricsCertificateMissing: the manager does not start, because a generated
// certificate could not be verified.
func TestManagerMetricsCertificateMissing(t *testing.T) {
	directory := t.TempDir()
	_, _, err := run("manager", "--namespace=conversion-system", "--image=conversion-operator", "--metrics-cert-path="+directory)
	expect.Equal(t, "error", "--metrics-cert-path: open "+filepath.Join(directory, "tls.crt")+": no such file or directory", fmt.Sprint(err))
}

// TestElection computes the longest time without a leader, and the shortest time between the end
// of a leader that cannot renew and the start of the next.
func TestElection(t *testing.T) {
	longestTry := time.Duration((1 + leaderelection.JitterFactor) * float64(retryPeriod))
	if without := longestTry + leaseDuration + longestTry; without >= 18*time.Second {
		t.Errorf("it takes up to %s, and what the API server needs, until a dead leader is succeeded: that must be less than 20s", without)
	}
	if between := leaseDuration - renewDeadline; between < 3*time.Second {
		t.Errorf("a leader that cannot renew ends only %s before another may begin", between)
	}
	if tries := renewDeadline / retryPeriod; tries < 5 {
		t.Errorf("a leader tries only %d times to renew before it gives up", tries)
	}
}

// TestDefaults: without flags, only one manager acts, and API servers refuse objects that could make lists fail.
func TestDefaults(t *testing.T) {
	for _, name := range []string{"leader-elect", "size-admission"} {
		flag := newManagerCommand().Flags().Lookup(name)
		expect.Equal(t, "default of --"+name, "true", flag.DefValue)
	}
}
