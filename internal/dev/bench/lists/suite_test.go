// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package lists

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/conversion-operator/conversion-operator/internal/dev/bench/converters"
	"github.com/conversion-operator/conversion-operator/internal/dev/bench/measure"
	"github.com/conversion-operator/conversion-operator/internal/test/expect"
)

// TestAdd: what a conversion adds is the difference between the fastest lists, and nothing has no ratio.
func TestAdd(t *testing.T) {
	results, got := &measure.Results{}, strings.Builder{}
	add(results, "case", 10, []*kind{
		{subject: none, spans: []time.Duration{12 * time.Millisecond, 10 * time.Millisecond}, bytes: 10 << 10},
		{subject: "ours", spans: []time.Duration{15 * time.Millisecond, 14 * time.Millisecond}, bytes: 20 << 10},
		{subject: "fast", spans: []time.Duration{10 * time.Millisecond}, bytes: 20 << 10},
		{subject: converters.Typed, spans: []time.Duration{18 * time.Millisecond, 50 * time.Millisecond}, bytes: 20 << 10},
	})
	expect.NoError(t, results.Print(&got))
	want := `
case
  KB/object    ms  ms, median  times strategy None  us added/object  controller-runtime adds times as much
       1.00  10.0        10.0                 1.00                                                          strategy None
       2.00  14.0        14.0                 1.40              400                                   2.00  ours
       2.00  10.0        10.0                 1.00             0.00                                         fast
       2.00  18.0        18.0                 1.80              800                                   1.00  controller-runtime, Go types
`
	expect.Equal(t, "table", want, got.String())
}

func TestCheck(t *testing.T) {
	const converted, stored = `{"metadata":{"name":"task-1"},"spec":{"runtime":{"image":"a"}}}`, `{"metadata":{"name":"task-2"},"spec":{"image":"a"}}`
	for _, test := range []struct {
		items     string
		converted bool
		valid     bool
	}{
		{converted + converted, true, true},
		{stored + stored, false, true},
		{converted + stored, true, false},
		{stored + converted, false, false},
		{converted, true, false},
	} {
		err := check([]byte(test.items), 2, test.converted)
		expect.Equal(t, fmt.Sprintf("that this is valid: %s, converted %t: %v", test.items, test.converted, err), test.valid, err == nil)
	}
}
