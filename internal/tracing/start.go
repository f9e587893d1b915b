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

// flushTimeout bounds how long the end of the program waits for the last spans to
// be taken.
const flushTimeout = 5 * time.Second

// Options of the traces of a program.
type Options struct {
	// Endpoint is the URL of an OTLP receiver that speaks gRPC. Without it there are
	// no traces. See Endpoint, the function.
	Endpoint string
	// Service and Version name the program, where the environment does not.
	Service, Version string
}

// Tracing is the program's traces, or none.
type Tracing struct {
	Tracer
	provider *sdktrace.TracerProvider
}

// Endpoint is where the environment wants traces to go, by the variables that
// OpenTelemetry specifies; empty where it wants none.
func Endpoint(getenv func(string) string) string {
	if getenv("OTEL_SDK_DISABLED") == "true" || getenv("OTEL_TRACES_EXPORTER") == "none" {
		return ""
	}
	return cmp.Or(getenv("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"), getenv("OTEL_EXPORTER_OTLP_ENDPOINT"))
}

// Start begins to send spans to the endpoint, and does nothing at all without one.
// A receiver that cannot be reached is no error: the log tells, and spans are
// dropped. What else there is to choose, such as headers, certificates and
// sampling, the SDK reads from the environment (OTEL_…).
func Start(ctx context.Context, options Options) (*Tracing, error) {
	if options.Endpoint == "" {
		return &Tracing{}, nil
	}
	if to, err := url.Parse(options.Endpoint); err != nil || to.Host == "" || to.Scheme != "http" && to.Scheme != "https" {
		return nil, fmt.Errorf("the endpoint of traces is %q: it must be a URL like http://collector.example.com:4317, or https:// for TLS", options.Endpoint)
	}
	exporter, err := otlptracegrpc.New(ctx, otlptracegrpc.WithEndpointURL(options.Endpoint))
	if err != nil {
		return nil, fmt.Errorf("prepare to send traces to %s: %w", options.Endpoint, err)
	}
	about, err := describe(ctx, options)
	if err != nil {
		return nil, fmt.Errorf("describe the program in its traces: %w", err)
	}
	log := logr.FromContextOrDiscard(ctx)
	otel.SetErrorHandler(otel.ErrorHandlerFunc(func(err error) { log.Error(err, "Traces are lost") }))
	log.Info("Sending traces", "endpoint", options.Endpoint)
	return over(sdktrace.NewTracerProvider(sdktrace.WithBatcher(exporter), sdktrace.WithResource(about))), nil
}

func over(provider *sdktrace.TracerProvider) *Tracing {
	return &Tracing{Tracer: NewTracer(provider), provider: provider}
}

// describe lets the environment have the last word.
func describe(ctx context.Context, options Options) (*resource.Resource, error) {
	return resource.New(ctx,
		resource.WithAttributes(attribute.String("service.name", options.Service), attribute.String("service.version", options.Version)),
		resource.WithTelemetrySDK(),
		resource.WithFromEnv())
}

// Stop sends the rest, and waits for that a little while. The context may have
// ended: it is what ends programs.
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

// Transport makes a span of every request that is part of a trace, and tells the
// API server of it, whose own traces then continue ours. Requests outside a trace,
// such as watches, have none.
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
