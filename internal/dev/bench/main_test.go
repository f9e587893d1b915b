// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"flag"
	"io"
	"strings"
	"testing"

	"github.com/conversion-operator/conversion-operator/internal/dev/bench/measure"
)

// fake is a suite that breaks if it is told to.
type fake struct{ broken bool }

func (f *fake) Flags(flags *flag.FlagSet) { flags.BoolVar(&f.broken, "broken", false, "") }

func (f *fake) Run(_ context.Context, results *measure.Results) error {
	results.Add("case", "ours", 2, "ms")
	if f.broken {
		return errors.New("it is broken")
	}
	return nil
}

func TestRun(t *testing.T) {
	suites["fake"] = &fake{}
	t.Cleanup(func() { delete(suites, "fake") })
	for args, want := range map[string]struct{ prints, fails string }{
		"fake":          {"2.00  ours", ""},
		"fake -broken":  {"2.00  ours", "it is broken"},
		"fake -no-flag": {"", "not defined"},
		"other":         {"", `there is no suite "other": choose conversion`},
		"":              {"", `there is no suite "": choose conversion`},
	} {
		var printed strings.Builder
		err := run(t.Context(), strings.Fields(args), &printed, io.Discard)
		if (err == nil) != (want.fails == "") || err != nil && !strings.Contains(err.Error(), want.fails) {
			t.Errorf("%q: error %v, want %q", args, err, want.fails)
		}
		if !strings.Contains(printed.String(), want.prints) || want.prints == "" && printed.Len() > 0 {
			t.Errorf("%q prints %q, want %q", args, printed.String(), want.prints)
		}
	}
}
