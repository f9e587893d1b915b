// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package converters

import (
	"io"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// TestLatency: all subjects are called in all cases, and the ratios refer to the first.
func TestLatency(t *testing.T) {
	binary, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	rows, err := Latency(t.Context(), io.Discard, LatencyOptions{Binary: binary, Bench: binary, Idle: 3, Each: 40 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	var subjects []string
	for _, row := range rows {
		if row.Value <= 0 || row.Suite != LatencySuite {
			t.Errorf("%+v", row)
		}
		if strings.HasPrefix(row.Unit, "times") && row.Subject == alone && row.Value != 1 {
			t.Errorf("the ratio of a subject to itself is not 1: %+v", row)
		}
		if row.Unit == "us, p99" {
			subjects = append(subjects, row.Subject)
		}
	}
	want := []string{alone, "one kind beside 3 idle ones", typed, alone, "one kind beside 3 idle ones", typed}
	if diff := cmp.Diff(want, subjects); diff != "" {
		t.Errorf("subjects (-want +got):\n%s", diff)
	}
}

// TestServed: a converter pod has a path for each group, and converts no other kind at it.
func TestServed(t *testing.T) {
	binary, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	served, err := StartOurs(t.Context(), binary, t.TempDir(), group, "other.example.com")
	if err != nil {
		t.Fatal(err)
	}
	defer served.Stop()
	b, err := newBody(shape{name: "plain"}, 1)
	if err != nil {
		t.Fatal(err)
	}
	at := served.caller()
	if _, err := b.objectsOf(answerOf(at, b)); err != nil {
		t.Error(err)
	}
	at.url = served.URLs[1]
	if _, err := b.objectsOf(answerOf(at, b)); err == nil {
		t.Error("an object is converted at the path of another group")
	}
}

func answerOf(handler *caller, b body) *answer {
	c := newClient(handler, b.text)
	c.call()
	return &c.answer
}
