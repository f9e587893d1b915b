// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package tracing

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"testing"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
	"go.opentelemetry.io/otel/codes"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	collector "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	"google.golang.org/grpc"

	"github.com/conversion-operator/conversion-operator/internal/test/expect"
)

// recording keeps finished spans in memory.
func recording() (*Tracing, *tracetest.InMemoryExporter) {
	spans := tracetest.NewInMemoryExporter()
	return newTracing(sdktrace.NewTracerProvider(sdktrace.WithSyncer(spans))), spans
}

func nothing(context.Context) error { return nil }

func TestDisabledTracing(t *testing.T) {
	before := runtime.NumGoroutine()
	traces, err := Start(t.Context(), Options{Service: "test"})
	expect.NoError(t, err)
	defer traces.Stop(t.Context())
	expect.Equal(t, "goroutines", before, runtime.NumGoroutine())
	ctx := t.Context()
	if n := testing.AllocsPerRun(100, func() {
		_ = traces.Trace(ctx, "trace", nothing)
		_ = Span(ctx, "span", nothing)
	}); n != 0 {
		t.Errorf("it allocates %v times", n)
	}
	expect.Equal(t, "requests go the same way", true, traces.Transport(http.DefaultTransport) == http.DefaultTransport)
}

func TestTrace(t *testing.T) {
	traces, spans := recording()
	var log strings.Builder
	ctx := logr.NewContext(t.Context(), funcr.New(func(_, args string) { log.WriteString(args) }, funcr.Options{}))
	failure := errors.New("no such host")
	err := traces.Trace(ctx, "reconcile", func(ctx context.Context) error {
		logr.FromContextOrDiscard(ctx).Info("Looking")
		Note(ctx, PolicyGeneration.Int64(7))
		if err := Span(ctx, "observe", nothing, Run.String("r")); err != nil {
			return err
		}
		return Span(ctx, "apply", func(context.Context) error { return failure })
	}, Policy.String("crontabs.example.com"))
	if !errors.Is(err, failure) {
		t.Errorf("error is %v", err)
	}

	got := spans.GetSpans()
	root := got[len(got)-1]
	want := []string{
		"observe [conversion_operator.migration.run=r] Unset",
		"apply [] Error no such host",
		"reconcile [conversion_operator.policy=crontabs.example.com conversion_operator.policy.generation=7] Error no such host",
	}
	expect.Equal(t, "spans", want, told(got))
	for _, span := range got[:2] {
		expect.Equal(t, "parent of "+span.Name, root.SpanContext.SpanID(), span.Parent.SpanID())
	}
	if len(got[1].Events) != 1 || got[1].Events[0].Name != "exception" {
		t.Errorf("the error was recorded as %v", got[1].Events)
	}
	expect.Contains(t, "the log", log.String(), `"traceID"="`+root.SpanContext.TraceID().String()+`"`)
}

func told(spans tracetest.SpanStubs) []string {
	var told []string
	for _, span := range spans {
		var attributes []string
		for _, attribute := range span.Attributes {
			attributes = append(attributes, string(attribute.Key)+"="+attribute.Value.String())
		}
		line := span.Name + " [" + strings.Join(attributes, " ") + "] " + span.Status.Code.String()
		if span.Status.Code == codes.Error {
			line += " " + span.Status.Description
		}
		told = append(told, line)
	}
	return told
}

func TestSpansOutsideATrace(t *testing.T) {
	traces, spans := recording()
	expect.NoError(t, Span(t.Context(), "alone", nothing))
	traces.Stop(t.Context())
	if got := spans.GetSpans(); len(got) != 0 {
		t.Errorf("spans %v", told(got))
	}
}

// TestRequests: requests propagate the trace, and requests outside a trace do not.
func TestRequests(t *testing.T) {
	var parents []string
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, request *http.Request) {
		parents = append(parents, request.Header.Get("Traceparent"))
	}))
	defer server.Close()
	traces, spans := recording()
	client := &http.Client{Transport: traces.Transport(http.DefaultTransport)}
	get := func(ctx context.Context) error {
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, server.URL, nil)
		if err != nil {
			return err
		}
		response, err := client.Do(request)
		if err != nil {
			return err
		}
		return response.Body.Close()
	}
	expect.NoError(t, errors.Join(get(t.Context()), traces.Trace(t.Context(), "reconcile", get)))
	got := spans.GetSpans()
	if len(got) != 2 {
		t.Fatalf("spans %v", told(got))
	}
	want := []string{"", "00-" + got[1].SpanContext.TraceID().String() + "-" + got[0].SpanContext.SpanID().String() + "-01"}
	expect.Equal(t, "headers", want, parents)
}

func TestEndpoint(t *testing.T) {
	const url, other = "http://collector:4317", "http://other:4317"
	cases := map[string]struct {
		env  map[string]string
		want string
	}{
		"by default":           {},
		"of everything":        {map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": url}, url},
		"of traces":            {map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": other, "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": url}, url},
		"switched off":         {map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": url, "OTEL_SDK_DISABLED": "true"}, ""},
		"everything but these": {map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": url, "OTEL_TRACES_EXPORTER": "none"}, ""},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			expect.Equal(t, "endpoint", tc.want, Endpoint(func(name string) string { return tc.env[name] }))
		})
	}
}

func TestBadEndpoints(t *testing.T) {
	for _, endpoint := range []string{"collector:4317", "grpc://collector:4317", "http://", ":"} {
		_, err := Start(t.Context(), Options{Endpoint: endpoint})
		expect.Contains(t, endpoint+": error", fmt.Sprint(err), "it must be a URL like http://")
	}
}

// receiver is a minimal OpenTelemetry collector.
type receiver struct {
	collector.UnimplementedTraceServiceServer
	got chan *collector.ExportTraceServiceRequest
}

func (r *receiver) Export(_ context.Context, request *collector.ExportTraceServiceRequest) (*collector.ExportTraceServiceResponse, error) {
	r.got <- request
	return &collector.ExportTraceServiceResponse{}, nil
}

// TestStop: the last spans are sent even though the context has ended.
func TestStop(t *testing.T) {
	t.Setenv("OTEL_RESOURCE_ATTRIBUTES", "k8s.namespace.name=conversion-system")
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	expect.NoError(t, err)
	server, receives := grpc.NewServer(), &receiver{got: make(chan *collector.ExportTraceServiceRequest, 1)}
	collector.RegisterTraceServiceServer(server, receives)
	go func() { _ = server.Serve(listener) }()
	defer server.Stop()

	ctx, cancel := context.WithCancel(t.Context())
	traces, err := Start(ctx, Options{Endpoint: "http://" + listener.Addr().String(), Service: "test", Version: "v1"})
	expect.NoError(t, err)
	expect.NoError(t, traces.Trace(ctx, "migrate", nothing))
	cancel()
	traces.Stop(ctx)
	of := (<-receives.got).GetResourceSpans()[0]
	about := map[string]string{}
	for _, attribute := range of.GetResource().GetAttributes() {
		about[attribute.GetKey()] = attribute.GetValue().GetStringValue()
	}
	maps.DeleteFunc(about, func(key, _ string) bool { return strings.HasPrefix(key, "telemetry.") })
	want := map[string]string{"service.name": "test", "service.version": "v1", "k8s.namespace.name": "conversion-system"}
	expect.Equal(t, "resource", want, about)
	var names []string
	for _, scoped := range of.GetScopeSpans() {
		for _, span := range scoped.GetSpans() {
			names = append(names, span.GetName())
		}
	}
	expect.Equal(t, "spans", []string{"migrate"}, names)
}
