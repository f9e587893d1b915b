// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr/funcr"

	"github.com/conversion-operator/conversion-operator/internal/engine/tree"
	"github.com/conversion-operator/conversion-operator/internal/test/expect"
)

// TestDescribe checks that a name is found wherever possible, also in malformed objects.
func TestDescribe(t *testing.T) {
	deep := strings.Repeat("[", 2*tree.MaxDepth)
	closed := deep + strings.Repeat("]", 2*tree.MaxDepth)
	const metadata = `"metadata":{"labels":{"name":"x"},"name":"a","namespace":"n"}`
	for name, test := range map[string]struct{ text, want, version string }{
		"an object":             {`{"apiVersion":"e/v1",` + metadata + `}],"more":1`, "n/a", "e/v1"},
		"in the cluster":        {`{"metadata":{"name":"a"}}`, "a", ""},
		"too deep":              {`{"apiVersion":"e/v1",` + metadata + `,"spec":` + closed + `}`, "n/a", "e/v1"},
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

// TestFailuresAreSampled checks that a kind with many broken objects does not fill the log.
func TestFailuresAreSampled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var levels []string
		log := funcr.New(func(_, args string) { levels = append(levels, args[:len(`"level"=0`)]) }, funcr.Options{Verbosity: 1})
		handler := NewHandler(only(convertFunc(rename)), HandlerOptions{Log: log})
		for _, later := range []time.Duration{0, 0, exampleInterval - 1, 1, 0} {
			time.Sleep(later) //nolint:forbidigo // the clock of synctest
			post(handler, v1Review(`{"uid":"u","desiredAPIVersion":"example.com/v1","objects":[{"metadata":{"name":"bad"}}]}`))
		}
		expect.Equal(t, "levels", []string{`"level"=0`, `"level"=1`, `"level"=1`, `"level"=0`, `"level"=1`}, levels)
	})
}
