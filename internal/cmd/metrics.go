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

// readTimeout is more than a scraper takes to say what it wants.
const readTimeout = 10 * time.Second

// tellPrometheus serves metrics at the address, 0 for nowhere, until the function
// that it returns is called. Nobody's objects depend on metrics: where they cannot
// be served, the log says so, and that is all.
func tellPrometheus(ctx context.Context, address string, metrics http.Handler) (stop func()) {
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
			log.Error(err, "Metrics are served no more")
		}
	}()
	return func() {
		_ = server.Close() // nobody is kept waiting for a scrape
		<-ended
	}
}
