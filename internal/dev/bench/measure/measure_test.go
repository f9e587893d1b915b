// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package measure

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/conversion-operator/conversion-operator/internal/test/expect"
)

func TestPrint(t *testing.T) {
	r := &Results{}
	r.Add("2 KB", "ours", 9.87654, "us/object")
	r.Add("2 KB", "ours", 0, "allocs/request")
	r.Add("2 KB", "theirs", 81.25, "us/object")
	r.Add("10 KB", "ours", 1234.5, "us/object")
	r.Add("10 KB", "ours", 20, "ratio")
	r.AddSpans("spans", "ours", []time.Duration{time.Second, 3 * time.Second})
	var got strings.Builder
	expect.NoError(t, r.Print(&got))
	want := `
2 KB
  us/object  allocs/request
       9.88            0.00  ours
       81.2                  theirs

10 KB
  us/object  ratio
       1234   20.0  ours

spans
  s, p50  s, p95  s, longest
    1.00    3.00        3.00  ours
`
	expect.Equal(t, "tables", want, got.String())
}

func TestRun(t *testing.T) {
	var turns []string
	subject := func(name string, work int) Subject {
		return Subject{Name: name, Call: func() {
			if len(turns) == 0 || turns[len(turns)-1] != name {
				turns = append(turns, name)
			}
			for began := time.Now(); time.Since(began) < time.Duration(work)*time.Microsecond; {
			}
		}}
	}
	best := Run([]Subject{subject("fast", 1), subject("slow", 500)}, time.Millisecond)
	if best["fast"] <= 0 || best["slow"] < 10*best["fast"] {
		t.Errorf("%v", best)
	}
	if got := len(turns); got < 2*fewRounds {
		t.Errorf("the subjects took %d turns, want one each in at least %d rounds", got, fewRounds)
	}
}

func TestQuantile(t *testing.T) {
	var spans []time.Duration
	for i := 20; i > 0; i-- {
		spans = append(spans, time.Duration(i))
	}
	for part, want := range map[float64]time.Duration{0: 1, 0.5: 10, 0.95: 19, 0.96: 20, 1: 20} {
		expect.Equal(t, fmt.Sprint("quantile ", part), want, Quantile(spans, part))
	}
	expect.Equal(t, "first span, of which the order must not change", 20, spans[0])
}

func TestWait(t *testing.T) {
	ended, end := context.WithCancel(t.Context())
	end()
	if Wait(t.Context(), 0) != nil || Wait(ended, time.Hour) == nil {
		t.Error("it must wait for the time, or for the end of the context")
	}
}
