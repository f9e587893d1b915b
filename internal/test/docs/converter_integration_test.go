//go:build integration

// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package docs

import (
	"crypto/tls"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/conversion-operator/conversion-operator/internal/pki"
	"github.com/conversion-operator/conversion-operator/internal/test/expect"
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
	authority, err := pki.NewAuthority("converters of tests", o.issued, 2*time.Hour)
	expect.NoError(t, err)
	leaf, err := pki.IssueLeaf(authority, o.dnsName, o.issued, time.Hour)
	expect.NoError(t, err)
	pair, err := tls.X509KeyPair(leaf.Certificate, leaf.Key)
	expect.NoError(t, err)
	server := httptest.NewUnstartedServer(answer)
	server.Config.ErrorLog = log.New(io.Discard, "", 0) // handshakes fail on purpose
	server.TLS = &tls.Config{Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS12}
	if o.plain {
		server.Start()
	} else {
		server.StartTLS()
	}
	t.Cleanup(server.Close)
	_, port, err := net.SplitHostPort(server.Listener.Addr().String())
	expect.NoError(t, err)
	// A Service of type ExternalName leads to the test process.
	c.file(t, "service.yaml", `---
{apiVersion: v1, kind: Service, metadata: {name: crontab-converter, namespace: conversion-system},
  spec: {type: ExternalName, externalName: localhost}}`)
	c.run(t, "kubectl apply -f service.yaml")
	c.convertBy(t, `"service": {"namespace": "conversion-system", "name": "crontab-converter", "path": "/convert", "port": `+port+`}`, o.trusted(authority.Certificate))
	if o.down {
		server.Close()
	}
}

// review returns a handler that answers ConversionReviews with the result of convert.
func review(convert func(version string, objects []unstructured.Unstructured) ([]unstructured.Unstructured, metav1.Status)) http.HandlerFunc {
	return func(w http.ResponseWriter, request *http.Request) {
		asked := &apiextensionsv1.ConversionReview{}
		if err := json.NewDecoder(request.Body).Decode(asked); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		objects := make([]unstructured.Unstructured, len(asked.Request.Objects))
		for i, raw := range asked.Request.Objects {
			if err := objects[i].UnmarshalJSON(raw.Raw); err != nil {
				http.Error(w, err.Error(), http.StatusBadRequest)
				return
			}
		}
		converted, status := convert(asked.Request.DesiredAPIVersion, objects)
		answer := &apiextensionsv1.ConversionReview{TypeMeta: asked.TypeMeta, Response: &apiextensionsv1.ConversionResponse{UID: asked.Request.UID, Result: status}}
		for i := range converted {
			answer.Response.ConvertedObjects = append(answer.Response.ConvertedObjects, runtime.RawExtension{Object: &converted[i]})
		}
		if err := json.NewEncoder(w).Encode(answer); err != nil {
			panic(fmt.Sprintf("an answer cannot be encoded: %v", err))
		}
	}
}
