// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr/funcr"

	"github.com/conversion-operator/conversion-operator/internal/test/expect"
)

// TestDescribe checks that a name is found wherever possible, also in malformed objects.
func TestDescribe(t *testing.T) {
	deep := strings.Repeat("[", 2*maxNesting)
	closed := deep + strings.Repeat("]", 2*maxNesting)
	const metadata = `"metadata":{"labels":{"name":"x"},"name":"a","namespace":"n"}`
	for name, test := range map[string]struct{ text, want, version string }{
		"an object":             {`{"apiVersion":"e/v1",` + metadata + `}],"more":1`, "n/a", "e/v1"},
		"in the cluster":        {`{"metadata":{"name":"a"}}`, "a", ""},
		"too deep":              {`{"apiVersion":"e/v1",` + metadata + `,"spec":` + closed + `}`, "n/a", "e/v1"},
		"too deep, before it":   {`{"a":` + closed + `,"apiVersion":"e/v1",` + metadata + `}`, "n/a", "e/v1"},
		"too deep, in it":       {`{"metadata":{"annotations":` + closed + `,"name":"a"}}`, "a", ""},
		"it does not end":       {`{"apiVersion":"e/v1",` + metadata + `,"spec":` + deep, "n/a", "e/v1"},
		"no JSON after it":      {`{` + metadata + `,bad}`, "n/a", ""},
		"no JSON before it":     {`{bad,` + metadata + `}`, "", ""},
		"no metadata":           {`{"apiVersion":"e/v1"}`, "", "e/v1"},
		"metadata is a list":    {`{"metadata":[1],"apiVersion":"e/v1"}`, "", "e/v1"},
		"the name is an object": {`{"metadata":{"name":{"name":"x"},"namespace":"n"}}`, "", ""},
		"a name with escapes":   {`{"metadata":{"n\u0061me":"\u0061"}}`, "a", ""},
		"the namespace is null": {`{"metadata":{"name":"a","namespace":null}}`, "a", ""},
		"no object":             {`[1]`, "", ""},
		"nothing":               {``, "", ""},
		"metadata below spec":   {`{"spec":{` + metadata + `}}`, "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			got, version := describe([]byte(test.text))
			expect.Equal(t, "name", test.want, got)
			expect.Equal(t, "version", test.version, version)
		})
	}
}

func TestLogSampler(t *testing.T) {
	var s logSampler
	now := time.Unix(1_000_000, 0)
	var got []int
	for _, after := range []time.Duration{0, 0, exampleInterval - 1, exampleInterval, exampleInterval + 1, 2 * exampleInterval} {
		got = append(got, s.level(now.Add(after)))
	}
	expect.Equal(t, "levels", []int{0, 1, 1, 0, 1, 0}, got)
}

// TestFailuresAreSampled checks that a kind with many broken objects does not fill the log.
func TestFailuresAreSampled(t *testing.T) {
	lines := map[bool]int{}
	log := funcr.New(func(_, args string) { lines[strings.Contains(args, `"level"=0`)]++ }, funcr.Options{Verbosity: 1})
	handler := NewHandler(only(convertFunc(rename)), HandlerOptions{Log: log})
	handler.served.Load().other.logSampler.level(time.Now().Add(time.Hour)) // no further line within an hour
	for range 3 {
		post(handler, v1Review(`{"uid":"u","desiredAPIVersion":"example.com/v1","objects":[{"metadata":{"name":"bad"}}]}`))
	}
	expect.Equal(t, "lines at level 0", map[bool]int{false: 3}, lines)
}
