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
	"go.opentelemetry.io/otel/codes"
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

// Attributes of spans.
const (
	// Policy is the name of the ConversionPolicy and of its CustomResourceDefinition.
	Policy = attribute.Key("conversion_operator.policy")
	// PolicyGeneration is metadata.generation of the policy.
	PolicyGeneration = attribute.Key("conversion_operator.policy.generation")
	// CRD is the name of a CustomResourceDefinition.
	CRD = attribute.Key("conversion_operator.crd")
	// CRDGeneration is metadata.generation of the CustomResourceDefinition.
	CRDGeneration = attribute.Key("conversion_operator.crd.generation")
	// Run identifies a migration, as the status of its policy does.
	Run = attribute.Key("conversion_operator.migration.run")
	// Ready is the reason of the condition Ready.
	Ready = attribute.Key("conversion_operator.ready.reason")
	// Steps is the number of planned steps.
	Steps = attribute.Key("conversion_operator.steps")
)

// Tracer starts traces. The zero value starts none.
type Tracer struct{ tracer trace.Tracer }

// NewTracer returns a Tracer whose spans go to the provider.
func NewTracer(provider trace.TracerProvider) Tracer {
	return Tracer{provider.Tracer(scope)}
}

// scope is the instrumentation scope of the spans.
const scope = "github.com/conversion-operator/conversion-operator"

// Trace calls do in a new trace, and returns its error. It adds the ID of the trace to the logger
// of the context.
func (t Tracer) Trace(ctx context.Context, name string, do func(context.Context) error, attributes ...attribute.KeyValue) error {
	if t.tracer == nil {
		return do(ctx)
	}
	ctx, span := t.tracer.Start(ctx, name, trace.WithAttributes(attributes...))
	defer span.End()
	if spanContext := span.SpanContext(); spanContext.IsSampled() {
		ctx = logr.NewContext(ctx, logr.FromContextOrDiscard(ctx).WithValues("traceID", spanContext.TraceID().String()))
	}
	return record(span, do(ctx))
}

// Span calls do in a new span of the context's trace, if there is one, and returns its error.
func Span(ctx context.Context, name string, do func(context.Context) error, attributes ...attribute.KeyValue) error {
	parent := trace.SpanFromContext(ctx)
	if !parent.IsRecording() {
		return do(ctx)
	}
	ctx, span := parent.TracerProvider().Tracer(scope).Start(ctx, name, trace.WithAttributes(attributes...))
	defer span.End()
	return record(span, do(ctx))
}

// Note sets attributes of the context's span, if there is one.
func Note(ctx context.Context, attributes ...attribute.KeyValue) {
	trace.SpanFromContext(ctx).SetAttributes(attributes...)
}

func record(span trace.Span, err error) error {
	if err != nil {
		span.RecordError(err)
		span.SetStatus(codes.Error, err.Error())
	}
	return err
}
