// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package migration

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func completedRecord() Record {
	now := metav1.NewTime(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC).Local())
	counters := Counters{Total: 6, Rewritten: 3, Current: 2, Gone: 1}
	return Record{
		Format: recordFormat, Run: "run-1", CRDUID: testPin.UID, CRDGeneration: testPin.Generation,
		State: StateCompleted, Barrier: "7", Counters: counters,
		Checkpoint: Checkpoint{Pages: 2, Counters: counters}, StartTime: &now, CompletionTime: &now,
	}
}

func TestParseRecordReadsWhatWasWritten(t *testing.T) {
	want := completedRecord()
	data, err := json.Marshal(want)
	if err != nil {
		t.Fatal(err)
	}
	got, err := ParseRecord(data)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("record (-want +got):\n%s", diff)
	}
}

// A record as the version before wrote it.
func TestParseRecordReadsTheFormatBefore(t *testing.T) {
	const counters = `"total":6,"rewritten":3,"current":2,"gone":0,"failed":1`
	const text = `{"format":1,"run":"run-1","crdUID":"crd-1","crdGeneration":3,"state":"Completed","barrier":"7",` + counters +
		`,"checkpoint":{"pages":2,` + counters + `},"failures":[{"object":"ns/a","message":"no"}],"startTime":"2026-01-02T03:04:05Z","completionTime":"2026-01-02T03:04:05Z"}`
	want := completedRecord()
	want.Format = oldFormat
	want.Counters = Counters{Total: 6, Rewritten: 3, Current: 2, Failed: 1}
	want.Checkpoint.Counters = want.Counters
	want.Failures = []Failure{{Object: "ns/a", Message: "no"}}
	got, err := ParseRecord([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("record (-want +got):\n%s", diff)
	}
}

func TestRunOfTheFormatBeforeGoesOn(t *testing.T) {
	api, store := newFakeAPI(12), &fakeStore{}
	ctx, cancel := context.WithCancel(t.Context())
	api.onPatch = func(key string) error {
		if key == objectKey(7) {
			cancel()
		}
		return ctx.Err()
	}
	if _, err := newTestEngine(api, store).Run(ctx); err == nil {
		t.Fatal("the run did not stop")
	}
	api.onPatch = nil
	store.edit(t, func(r *Record) { r.Format, r.BarrierKind, r.APIServers = oldFormat, "", 0 })
	record := mustRun(t, newTestEngine(api, store))
	if !record.Complete() || record.Format != recordFormat || record.Rewritten+record.Current != 12 {
		t.Errorf("record is %+v", record)
	}
}

func TestParseRecordRefuses(t *testing.T) {
	tests := map[string]struct {
		change func(*Record)
		want   string
	}{
		"an unknown format":                 {func(r *Record) { r.Format = 3 }, "format is 3, this version of conversion-operator reads 1 and 2"},
		"no start":                          {func(r *Record) { r.StartTime = nil }, "startTime is empty"},
		"no run":                            {func(r *Record) { r.Run = "" }, "run is empty"},
		"no uid":                            {func(r *Record) { r.CRDUID = "" }, "crdUID is empty"},
		"no generation":                     {func(r *Record) { r.CRDGeneration = 0 }, "crdGeneration is 0"},
		"no state":                          {func(r *Record) { r.State = "" }, "state"},
		"an unknown state":                  {func(r *Record) { r.State = "Done" }, `state "Done" is unknown`},
		"a completed run without a barrier": {func(r *Record) { r.Barrier = "" }, "barrier is empty"},
		"a running run without a barrier":   {func(r *Record) { r.State, r.Barrier = StateRunning, "" }, "barrier is empty"},
		"a completed run without its end":   {func(r *Record) { r.CompletionTime = nil }, "completionTime is empty"},
		"an aborted run without a message":  {func(r *Record) { r.State = StateAborted }, "message is empty"},
		"a completed run with objects left": {func(r *Record) { r.Total++ }, "6 of 7 objects are done"},
		"failures that were not counted":    {func(r *Record) { r.Failures = []Failure{{Object: "a"}} }, "lists 1 failures but counts 0"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			r := completedRecord()
			tt.change(&r)
			data, err := json.Marshal(r)
			if err != nil {
				t.Fatal(err)
			}
			wantError(t, second(ParseRecord(data)), tt.want)
		})
	}
	for _, text := range []string{"", "{", "null", "{}", "[]", `{"state":"Completed"}`} {
		t.Run("text "+text, func(t *testing.T) {
			if r, err := ParseRecord([]byte(text)); err == nil || r.Complete() {
				t.Errorf("ParseRecord(%q) = %v, %v", text, r, err)
			}
		})
	}
}

func TestRecordEnd(t *testing.T) {
	tests := map[string]struct {
		state              State
		failed             int64
		finished, complete bool
	}{
		"settling":              {state: StateSettling},
		"running":               {state: StateRunning},
		"aborted":               {state: StateAborted, finished: true},
		"completed":             {state: StateCompleted, finished: true, complete: true},
		"completed with failed": {state: StateCompleted, failed: 1, finished: true},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			r := Record{State: tt.state, Counters: Counters{Failed: tt.failed}}
			if r.Finished() != tt.finished || r.Complete() != tt.complete {
				t.Errorf("Finished() = %t, Complete() = %t, want %t, %t", r.Finished(), r.Complete(), tt.finished, tt.complete)
			}
		})
	}
}

func TestShortenKeepsWholeCharacters(t *testing.T) {
	for _, text := range []string{"short", strings.Repeat("x", maxMessage), strings.Repeat("ä", maxMessage), "x" + strings.Repeat("ä", maxMessage)} {
		got := shorten(text, maxMessage)
		if len(got) > maxMessage || !utf8.ValidString(got) || (len(text) <= maxMessage && got != text) {
			t.Errorf("shorten made %d bytes of %d: %q", len(got), len(text), got)
		}
	}
}

func second[T any](_ T, err error) error { return err }

func wantError(t *testing.T, err error, part string) {
	t.Helper()
	if err == nil || !strings.Contains(err.Error(), part) {
		t.Errorf("error is %v, want one with %q", err, part)
	}
}
