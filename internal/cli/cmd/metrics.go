// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cmd

import (
	"context"
	"errors"
	"net"
	"net/http"
	"time"

	"github.com/go-logr/logr"
)

// readTimeout is how long a scraper may take to send its request.
const readTimeout = 10 * time.Second

// startMetricsServer serves metrics at the address (0 for none) until the caller calls the returned
// function. Conversions do not depend on metrics, so it only logs errors.
func startMetricsServer(ctx context.Context, address string, metrics http.Handler) (stop func()) {
	log := logr.FromContextOrDiscard(ctx)
	if address == "" || address == "0" {
		return func() {}
	}
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", address)
	if err != nil {
		log.Error(err, "Metrics are not served", "address", address)
		return func() {}
	}
	log.Info("Serving metrics", "address", listener.Addr().String())
	server := &http.Server{Handler: metrics, ReadHeaderTimeout: readTimeout}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
			log.Error(err, "Metrics server stopped")
		}
	}()
	return func() {
		_ = server.Close() // do not wait for a scrape
		<-ended
	}
}
