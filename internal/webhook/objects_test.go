// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"strings"
	"testing"
)

// TestDescribe names objects wherever their text lets one find a name, also those
// that are refused for what they are.
func TestDescribe(t *testing.T) {
	deep := strings.Repeat("[", 2*maxNesting)
	closed := deep + strings.Repeat("]", 2*maxNesting)
	const metadata = `"metadata":{"labels":{"name":"x"},"name":"a","namespace":"n"}`
	for name, test := range map[string]struct{ text, want, version string }{
		"an object":             {`{"apiVersion":"e/v1",` + metadata + `}],"more":1`, "n/a", "e/v1"},
		"in the cluster":        {`{"metadata":{"name":"a"}}`, "a", ""},
		"too deep":              {`{"apiVersion":"e/v1",` + metadata + `,"spec":` + closed + `}`, "n/a", "e/v1"},
		"too deep, in front":    {`{"a":` + closed + `,"apiVersion":"e/v1",` + metadata + `}`, "n/a", "e/v1"},
		"too deep, in it":       {`{"metadata":{"annotations":` + closed + `,"name":"a"}}`, "a", ""},
		"it does not end":       {`{"apiVersion":"e/v1",` + metadata + `,"spec":` + deep, "n/a", "e/v1"},
		"no JSON behind":        {`{` + metadata + `,bad}`, "n/a", ""},
		"no JSON in front":      {`{bad,` + metadata + `}`, "", ""},
		"no metadata":           {`{"apiVersion":"e/v1"}`, "", "e/v1"},
		"metadata of no kind":   {`{"metadata":[1],"apiVersion":"e/v1"}`, "", "e/v1"},
		"a name of no kind":     {`{"metadata":{"name":{"name":"x"},"namespace":"n"}}`, "", ""},
		"a name with escapes":   {`{"metadata":{"n\u0061me":"\u0061"}}`, "a", ""},
		"a namespace of none":   {`{"metadata":{"name":"a","namespace":null}}`, "a", ""},
		"no object":             {`[1]`, "", ""},
		"nothing":               {``, "", ""},
		"metadata of something": {`{"spec":{` + metadata + `}}`, "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			got, version := describe([]byte(test.text))
			wantEqual(t, "name", test.want, got)
			wantEqual(t, "version", test.version, version)
		})
	}
}
