// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package migration

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/conversion-operator/conversion-operator/internal/tracing"
)

// TestARunIsTraced: a span for each phase, and none for an object.
func TestARunIsTraced(t *testing.T) {
	spans := tracetest.NewInMemoryExporter()
	engine := newTestEngine(newFakeAPI(12), &fakeStore{})
	engine.Tracer = tracing.NewTracer(sdktrace.NewTracerProvider(sdktrace.WithSyncer(spans)))
	mustRun(t, engine)
	var got []string
	for _, span := range spans.GetSpans() {
		got = append(got, span.Name)
	}
	if diff := cmp.Diff([]string{"preflight", "barrier", "pages", "audit", "verify", "migrate"}, got); diff != "" {
		t.Errorf("spans (-want +got):\n%s", diff)
	}
}
