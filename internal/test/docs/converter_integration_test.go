//go:build integration

// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package docs

import (
	"net"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/conversion-operator/conversion-operator/internal/test/expect"
	"github.com/conversion-operator/conversion-operator/internal/test/reviews"
)

// converterOptions break a converter's connections.
type converterOptions struct {
	// dnsName is the name in its certificate.
	dnsName string
	// issued is the beginning of its certificate, which is valid for an hour.
	issued time.Time
	// plain makes it serve HTTP without TLS.
	plain bool
	// down stops it before the first request.
	down bool
	// bundle is the caBundle, if that is not the converter's authority.
	bundle []byte
}

func (o *converterOptions) trusted(authority []byte) []byte {
	if o.bundle != nil {
		return o.bundle
	}
	return authority
}

type converterOption func(*converterOptions)

// serve starts a converter behind the Service crontab-converter, and configures the CronTab to use
// it.
func (c *symptomCase) serve(t *testing.T, answer http.HandlerFunc, options ...converterOption) {
	t.Helper()
	o := converterOptions{dnsName: c.converter + ".conversion-system.svc", issued: time.Now()}
	for _, option := range options {
		option(&o)
	}
	server, authority := reviews.Begin(t, answer, o.dnsName, o.issued, func(server *httptest.Server) {
		if o.plain {
			server.Start()
		} else {
			server.StartTLS()
		}
	})
	_, port, err := net.SplitHostPort(server.Listener.Addr().String())
	expect.NoError(t, err)
	// A Service of type ExternalName leads to the test process.
	c.file(t, "service.yaml", `---
{apiVersion: v1, kind: Service, metadata: {name: crontab-converter, namespace: conversion-system},
  spec: {type: ExternalName, externalName: localhost}}`)
	c.run(t, "kubectl apply -f service.yaml")
	c.convertBy(t, `"service": {"namespace": "conversion-system", "name": "crontab-converter", "path": "/convert", "port": `+port+`}`, o.trusted(authority))
	if o.down {
		server.Close()
	}
}
