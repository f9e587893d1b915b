// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package tracing

import (
	"context"

	"github.com/go-logr/logr"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"
)

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
