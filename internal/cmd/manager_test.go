// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cmd

import (
	"context"
	"crypto/tls"
	"net/http"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/rest"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
)

// TestManagerMetricsSpeakModernTLS, as converters do.
func TestManagerMetricsSpeakModernTLS(t *testing.T) {
	options := managerOptions{metrics: "127.0.0.1:0"}.metricsOptions()
	options.FilterProvider = nil // without an API server, there is nobody to ask who may
	server, err := metricsserver.NewServer(options, &rest.Config{}, http.DefaultClient)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- server.Start(ctx) }()
	defer func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}()
	bound, known := server.(interface{ GetBindAddr() string })
	if !known {
		t.Fatalf("%T does not tell where it listens", server)
	}
	err = wait.PollUntilContextTimeout(ctx, 5*time.Millisecond, time.Minute, true, func(context.Context) (bool, error) {
		return bound.GetBindAddr() != "", nil
	})
	if err != nil {
		t.Fatal(err)
	}
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
			connection, err := tls.Dial("tcp", bound.GetBindAddr(), test.client)
			if test.refused != "" {
				if err == nil || !strings.Contains(err.Error(), test.refused) {
					t.Errorf("error is %v, want %s", err, test.refused)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			defer connection.Close()
			if got := connection.ConnectionState().Version; got != test.version {
				t.Errorf("it speaks %s", tls.VersionName(got))
			}
		})
	}
}
