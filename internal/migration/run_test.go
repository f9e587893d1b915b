// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package migration

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
	"github.com/conversion-operator/conversion-operator/internal/migration/contract"
	"github.com/conversion-operator/conversion-operator/internal/operator/tracing"
	"github.com/conversion-operator/conversion-operator/internal/test/expect"
)

// The pod crashes at every patch in turn: before the write or after it, and with or without saved
// progress within the page.
func TestResumeAfterACrashAtEveryObject(t *testing.T) {
	const objects = 12
	for _, step := range []time.Duration{0, time.Second} {
		for _, after := range []bool{false, true} {
			for crash := range objects {
				t.Run(fmt.Sprintf("step %s, after the write %t, object %d", step, after, crash), func(t *testing.T) {
					api, store := newFakeAPI(objects), &fakeStore{}
					ctx, cancel := context.WithCancel(t.Context())
					refused := refusals{objectKey(6): forbidden("a006")}.of
					die := func(key string) error {
						if key == objectKey(crash) {
							cancel()
							return ctx.Err()
						}
						return nil
					}
					api.onPatch = func(key string) error {
						if !after {
							if err := die(key); err != nil {
								return err
							}
						}
						return refused(key)
					}
					if after {
						api.afterPatch = die
					}
					engine := newTestEngine(api, store)
					engine.Clock = steppingClock(step)
					_, err := engine.Run(ctx)
					if refusedFirst := after && crash == 6; !refusedFirst && !errors.Is(err, context.Canceled) {
						t.Fatalf("error is %v", err)
					}

					api.onPatch, api.afterPatch = refused, nil
					record := mustRun(t, newTestEngine(api, store))
					page := crash / 5 * 5
					again := crash - page
					if after {
						again++
					}
					checkResumed(t, record, api, again)
				})
			}
		}
	}
}

// checkResumed expects all objects but the sixth to be done, and at most as many found current as
// the page of the crash had rewritten.
func checkResumed(t *testing.T, record contract.Record, api *fakeAPI, again int) {
	t.Helper()
	if record.Total != 12 || record.Done() != 12 || record.Failed != 1 || record.Gone != 0 || record.Complete() {
		t.Errorf("counters are %+v", record.Counters)
	}
	if record.Current > int64(again) {
		t.Errorf("%d objects are current, the crashed page had rewritten %d", record.Current, again)
	}
	want := []v1alpha1.MigrationFailure{{
		Object: "ns/a006", Reason: v1alpha1.FailureAdmissionDenied, Message: forbidden("a006").Error(),
		Command: "kubectl patch crontabs.v1.example.com a006 --namespace ns --type merge --patch '{}' --dry-run=server",
	}}
	expect.Equal(t, "failures", want, record.Failures)
	expect.Equal(t, "old objects", []string{"ns/a006"}, api.oldKeys())
}

// TestTrace expects a span for each phase, and none for objects.
func TestTrace(t *testing.T) {
	spans := tracetest.NewInMemoryExporter()
	engine := newTestEngine(newFakeAPI(12), &fakeStore{})
	engine.Tracer = tracing.NewTracer(sdktrace.NewTracerProvider(sdktrace.WithSyncer(spans)))
	mustRun(t, engine)
	var got []string
	for _, span := range spans.GetSpans() {
		got = append(got, span.Name)
	}
	expect.Equal(t, "spans", []string{"preflight", "barrier", "pages", "audit", "verify", "migrate"}, got)
}
