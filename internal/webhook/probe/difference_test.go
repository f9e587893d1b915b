// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package probe

import (
	"testing"

	"github.com/conversion-operator/conversion-operator/internal/engine/preserved"
	"github.com/conversion-operator/conversion-operator/internal/test/expect"
)

func TestDifference(t *testing.T) {
	cases := map[string]struct{ want, got, found string }{
		"same":                    {`{"a":[1,"x",null,true]}`, `{"a":[1,"x",null,true]}`, ""},
		"order of members":        {`{"a":1,"b":2}`, `{"b":2,"a":1}`, ""},
		"escapes":                 {`{"a":"é"}`, `{"a":"\u00e9"}`, ""},
		"number written in other": {`{"a":10.50}`, `{"a":105e-1}`, ""},
		"large integers":          {`{"a":9007199254740993}`, `{"a":9007199254740992}`, ".a has another value"},
		"huge exponents":          {`{"a":1e999999999999}`, `{"a":1e999999999999}`, ""},
		"other huge exponents":    {`{"a":1e999999999999}`, `{"a":1e999999999998}`, ".a has another value"},
		"zeros":                   {`{"a":0}`, `{"a":-0.0e5}`, ""},
		"long fractions":          {`{"a":0.1000000000000000000001}`, `{"a":0.1}`, ".a has another value"},
		"value":                   {`{"a":{"b":"secret"}}`, `{"a":{"b":"other"}}`, ".a.b has another value"},
		"type":                    {`{"a":1}`, `{"a":"1"}`, ".a has another value"},
		"object for string":       {`{"a":"x"}`, `{"a":{}}`, ".a has another value"},
		"list for object":         {`{"a":{}}`, `{"a":[]}`, ".a has another value"},
		"object for list":         {`{"a":[]}`, `{"a":{}}`, ".a has another value"},
		"null for absent":         {`{}`, `{"a":null}`, ".a should not be there"},
		"absent for null":         {`{"a":null}`, `{}`, ".a is missing"},
		"element":                 {`{"a":[{"b":1},{"b":2}]}`, `{"a":[{"b":1},{"b":3}]}`, ".a[1].b has another value"},
		"shorter list":            {`{"a":[1,2]}`, `{"a":[1]}`, ".a has 1 elements, expected 2"},
		"longer list":             {`{"a":[]}`, `{"a":[1]}`, ".a has 1 elements, expected 0"},
		"name with a slash":       {`{"metadata":{"labels":{"a.b/c":"x"}}}`, `{"metadata":{"labels":{}}}`, `.metadata.labels["a.b/c"] is missing`},
		"first of many":           {`{"c":1,"b":1}`, `{"c":2,"a":1}`, ".a should not be there"},
		"the whole":               {`[]`, `{}`, "the object has another value"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			expect.Equal(t, "difference", tc.found, difference("", exact(t, tc.want), exact(t, tc.got), false))
		})
	}
}

func exact(t *testing.T, document string) any {
	t.Helper()
	value, err := preserved.Decode([]byte(document))
	expect.NoError(t, err)
	return value
}
