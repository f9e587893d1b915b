// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package contract

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
	"github.com/conversion-operator/conversion-operator/internal/test/expect"
)

func completedRecord() Record {
	now := metav1.NewTime(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC).Local())
	counters := Counters{Total: 6, Rewritten: 3, Current: 2, Gone: 1}
	return Record{
		Format: RecordFormat, Run: "run-1", CRDUID: "crd-1", CRDGeneration: 3,
		State: StateCompleted, Barrier: "7", Counters: counters,
		Checkpoint: Checkpoint{Pages: 2, Counters: counters}, StartTime: &now, CompletionTime: &now,
	}
}

func TestParseRecordRefuses(t *testing.T) {
	tests := map[string]struct {
		change func(*Record)
		want   string
	}{
		"an unknown format":                 {func(r *Record) { r.Format = 3 }, "format is 3, this version of conversion-operator reads 2"},
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
		"failures that were not counted":    {func(r *Record) { r.Failures = []v1alpha1.MigrationFailure{{Object: "a"}} }, "lists 1 failures but counts 0"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			r := completedRecord()
			tt.change(&r)
			data, err := json.Marshal(r)
			expect.NoError(t, err)
			_, err = ParseRecord(data)
			expect.Contains(t, "error", fmt.Sprint(err), tt.want)
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

func TestReadRecord(t *testing.T) {
	text, err := json.Marshal(completedRecord())
	expect.NoError(t, err)
	cases := map[string]struct {
		run, text string
		want      State
		message   string
	}{
		"of the run":         {"run-1", string(text), StateCompleted, ""},
		"of another run":     {"run-2", string(text), StateAborted, "the record is of run run-1"},
		"of a newer version": {"run-1", strings.Replace(string(text), `"format":2`, `"format":99`, 1), StateAborted, `the migration record of run "run-1" is not usable: format is 99, this version of conversion-operator reads 2`},
		"unreadable":         {"run-1", "{", StateAborted, "the migration record is not readable: unexpected end of JSON input"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			got := ReadRecord(c.run, c.text)
			if !got.Finished() || got.State != c.want || got.Message != c.message || got.Run != c.run {
				t.Errorf("record is %+v, want state %s and message %q", got, c.want, c.message)
			}
			expect.Equal(t, "Complete() =", (c.want == StateCompleted), got.Complete())
		})
	}
}
