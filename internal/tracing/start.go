// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package tracing

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"net/url"
	"time"

	"github.com/go-logr/logr"
	"go.opentelemetry.io/contrib/instrumentation/net/http/otelhttp"
	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracegrpc"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"
)

// flushTimeout bounds how long Stop waits for the receiver to accept the last spans.
const flushTimeout = 5 * time.Second

// Options configure the traces of a program.
type Options struct {
	// Endpoint is the URL of a receiver of OTLP over gRPC. Tracing is disabled if it is empty. The
	// function Endpoint returns the default.
	Endpoint string
	// Service and Version identify the program, unless the environment does.
	Service, Version string
}

// Tracing sends the traces of the program. The zero value sends none.
type Tracing struct {
	Tracer
	provider *sdktrace.TracerProvider
}

// Endpoint returns the endpoint in the environment variables that OpenTelemetry specifies; empty
// if they disable traces.
func Endpoint(getenv func(string) string) string {
	if getenv("OTEL_SDK_DISABLED") == "true" || getenv("OTEL_TRACES_EXPORTER") == "none" {
		return ""
	}
	return cmp.Or(getenv("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"), getenv("OTEL_EXPORTER_OTLP_ENDPOINT"))
}

// Start starts sending spans to the endpoint. Without an endpoint it does nothing. If the receiver
// cannot be reached, spans are dropped and the error is logged. The SDK reads other settings, such
// as headers, certificates and sampling, from the environment (OTEL_…).
func Start(ctx context.Context, options Options) (*Tracing, error) {
	if options.Endpoint == "" {
		return &Tracing{}, nil
	}
	if receiver, err := url.Parse(options.Endpoint); err != nil || receiver.Host == "" || receiver.Scheme != "http" && receiver.Scheme != "https" {
		return nil, fmt.Errorf("the endpoint of traces is %q: it must be a URL like http://collector.example.com:4317, or https:// for TLS", options.Endpoint)
	}
	exporter, err := otlptracegrpc.New(ctx, otlptracegrpc.WithEndpointURL(options.Endpoint))
	if err != nil {
		return nil, fmt.Errorf("prepare to send traces to %s: %w", options.Endpoint, err)
	}
	attributes, err := describe(ctx, options)
	if err != nil {
		return nil, fmt.Errorf("describe the program in its traces: %w", err)
	}
	log := logr.FromContextOrDiscard(ctx)
	otel.SetErrorHandler(otel.ErrorHandlerFunc(func(err error) { log.Error(err, "Traces are lost") }))
	log.Info("Sending traces", "endpoint", options.Endpoint)
	return newTracing(sdktrace.NewTracerProvider(sdktrace.WithBatcher(exporter), sdktrace.WithResource(attributes))), nil
}

func newTracing(provider *sdktrace.TracerProvider) *Tracing {
	return &Tracing{Tracer: NewTracer(provider), provider: provider}
}

// describe returns the attributes of the program. Those of the environment take precedence.
func describe(ctx context.Context, options Options) (*resource.Resource, error) {
	return resource.New(ctx,
		resource.WithAttributes(attribute.String("service.name", options.Service), attribute.String("service.version", options.Version)),
		resource.WithTelemetrySDK(),
		resource.WithFromEnv())
}

// Stop sends the remaining spans, and waits for a limited time, even if ctx has ended.
func (t *Tracing) Stop(ctx context.Context) {
	if t.provider == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), flushTimeout)
	defer cancel()
	if err := t.provider.Shutdown(ctx); err != nil {
		logr.FromContextOrDiscard(ctx).Error(err, "The last traces are lost")
	}
}

// Transport records a span for each request that is part of a trace, and propagates the trace to
// the API server. Requests outside a trace, such as watches, have no span.
func (t *Tracing) Transport(next http.RoundTripper) http.RoundTripper {
	if t.provider == nil {
		return next
	}
	return otelhttp.NewTransport(next,
		otelhttp.WithTracerProvider(t.provider),
		otelhttp.WithPropagators(propagation.TraceContext{}),
		otelhttp.WithFilter(func(request *http.Request) bool {
			return trace.SpanFromContext(request.Context()).IsRecording()
		}))
}
