// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package measure

import (
	"fmt"
	"os/exec"
	"runtime"
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

// TestUsageOf: children are found by program and subcommand, and what they use is read.
func TestUsageOf(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("only Linux tells what processes use")
	}
	for range 2 {
		child := exec.CommandContext(t.Context(), "sh", "/dev/stdin")
		child.Stdin = strings.NewReader("while :; do :; done")
		expect.NoError(t, child.Start())
		defer func() { _ = child.Wait() }()
		defer func() { _ = child.Process.Kill() }()
	}
	var u Usage
	expect.Eventually(t, "two children have used a processor", func() (bool, string) {
		var err error
		u, err = UsageOf("sh /dev/stdin")
		return u.Processes == 2 && u.CPU >= 30*time.Millisecond, fmt.Sprint(u, err)
	})
	if u.Resident <= 0 || u.Anonymous <= 0 || u.Anonymous > u.Resident || u.Peak < u.Resident/2 {
		t.Errorf("unlikely: %+v", u)
	}
	if _, err := UsageOf("no-such-program"); err == nil {
		t.Error("a program that does not run uses something")
	}
}
