// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package measure

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

var rows = []Row{
	{"conversion", "2 KB", "ours", 9.87654, "us/object"},
	{"conversion", "2 KB", "ours", 0, "allocs/request"},
	{"conversion", "2 KB", "theirs", 81.25, "us/object"},
	{"conversion", "10 KB", "ours", 1234.5, "us/object"},
	{"conversion", "10 KB", "ours", 20, "ratio"},
}

func TestTables(t *testing.T) {
	var got strings.Builder
	if err := Tables(&got, rows); err != nil {
		t.Fatal(err)
	}
	want := `
conversion: 2 KB
  us/object  allocs/request
       9.88            0.00  ours
       81.2                  theirs

conversion: 10 KB
  us/object  ratio
       1234   20.0  ours
`
	if diff := cmp.Diff(want, got.String()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestWriteFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "bin", "bench.json")
	if err := WriteFile(path, "conversion", rows[:2]); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	want := `[
{"suite":"conversion","case":"2 KB","subject":"ours","value":9.877,"unit":"us/object"},
{"suite":"conversion","case":"2 KB","subject":"ours","value":0,"unit":"allocs/request"}
]
`
	if diff := cmp.Diff(want, string(text)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if err := WriteFile(path, "conversion", nil); err != nil {
		t.Fatal(err)
	}
	if text, err = os.ReadFile(path); err != nil {
		t.Fatal(err)
	}
	var none []Row
	if err := json.Unmarshal(text, &none); err != nil || len(none) != 0 {
		t.Errorf("no rows are written as %s: %v", text, err)
	}
	other := Row{"scale", "200 policies", "manager", 120, "MiB"}
	for _, again := range []struct {
		suite string
		rows  []Row
	}{{"scale", []Row{other}}, {"conversion", rows[:1]}, {"conversion", rows[1:2]}} {
		if err := WriteFile(path, again.suite, again.rows); err != nil {
			t.Fatal(err)
		}
	}
	kept, err := readFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]Row{other, rows[1]}, kept); diff != "" {
		t.Errorf("rows of other suites stay (-want +got):\n%s", diff)
	}
	if err := WriteFile(filepath.Join(path, "below-a-file"), "conversion", rows); err == nil {
		t.Error("a file below a file was written")
	}
}

// sink prevents the compiler from removing a subject's allocations.
var sink []byte

func TestRun(t *testing.T) {
	calls := map[string]int{}
	var turns []string
	subject := func(name string, work func()) Subject {
		return Subject{Name: name, Call: func() {
			calls[name]++
			if len(turns) == 0 || turns[len(turns)-1] != name {
				turns = append(turns, name)
			}
			work()
		}}
	}
	samples := Run([]Subject{
		subject("thrifty", func() {}),
		subject("greedy", func() { sink = make([]byte, 1<<20) }),
	}, time.Millisecond)

	for i, name := range []string{"thrifty", "greedy"} {
		s := samples[i]
		if s.Subject != name || s.Best < 0 || s.Median < s.Best {
			t.Errorf("%+v", s)
		}
		if calls[name] < fewRounds {
			t.Errorf("%s was called %d times, in at least %d rounds", name, calls[name], fewRounds)
		}
	}
	if s := samples[0]; s.Allocs >= 1 || s.Bytes >= 1<<10 {
		t.Errorf("allocates next to nothing: %+v", s)
	}
	if s := samples[1]; s.Allocs < 1 || s.Bytes < 1<<20 {
		t.Errorf("allocates 1 MiB in each call: %+v", s)
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
		if got := Quantile(spans, part); got != want {
			t.Errorf("quantile %v is %d, want %d", part, got, want)
		}
	}
	if spans[0] != 20 {
		t.Error("the spans are in another order")
	}
}
