// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/conversion-operator/conversion-operator/internal/bench/measure"
)

// given replaces the suites by fakes.
func given(t *testing.T) {
	t.Helper()
	before := suites
	t.Cleanup(func() { suites = before })
	suites = suites[:0:0]
	for _, name := range []string{"first", "second"} {
		suite := before[0]
		suite.name = name
		suite.run = func(_ context.Context, _ io.Writer, o options) ([]measure.Row, error) {
			if o.binary == "broken" {
				return nil, errors.New("it is broken")
			}
			return []measure.Row{{Suite: name, Case: "c", Subject: "s", Value: 2, Unit: "ms"}}, nil
		}
		suites = append(suites, suite)
	}
}

func TestRun(t *testing.T) {
	given(t)
	tests := map[string]struct {
		args   []string
		suites []string
		error  string
	}{
		"one":     {[]string{"-suite=second"}, []string{"second"}, ""},
		"all":     {nil, nil, `there is no suite "": choose of first, second`},
		"none":    {[]string{"-suite=third"}, nil, `there is no suite "third": choose of first, second`},
		"broken":  {[]string{"-suite=first", "-binary=broken"}, nil, "suite first: it is broken"},
		"no flag": {[]string{"-no-flag"}, nil, "not defined"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "bench.json")
			var table strings.Builder
			err := run(t.Context(), append(test.args, "-o", path), &table, io.Discard)
			if test.error != "" {
				if err == nil || !strings.Contains(err.Error(), test.error) {
					t.Errorf("error %v, want %q", err, test.error)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			var rows []measure.Row
			text, err := os.ReadFile(path)
			if err == nil {
				err = json.Unmarshal(text, &rows)
			}
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, row := range rows {
				got = append(got, row.Suite)
				if !strings.Contains(table.String(), row.Suite+": c\n") {
					t.Errorf("the table lacks %+v:\n%s", row, table.String())
				}
			}
			if diff := cmp.Diff(test.suites, got); diff != "" {
				t.Errorf("suites (-want +got):\n%s", diff)
			}
		})
	}
}

func TestNumbers(t *testing.T) {
	for args, want := range map[string][]int{"": {1, 10, 100}, "-sizes=5": {5}, "-sizes=1,20": {1, 20}} {
		given := []string{"-suite=lists"}
		if args != "" {
			given = append(given, args)
		}
		o, err := parse(given, io.Discard)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, o.lists.Sizes); diff != "" {
			t.Errorf("%s (-want +got):\n%s", args, diff)
		}
	}
	if _, err := parse([]string{"-suite=lists", "-counts=1,many"}, io.Discard); err == nil {
		t.Error("-counts accepts text that is no number")
	}
}
