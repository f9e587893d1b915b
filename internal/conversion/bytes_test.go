// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package conversion_test

import (
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/conversion-operator/conversion-operator/internal/conversion"
)

// FuzzBytes: what is converted is JSON, and all JSON is converted. Unlike
// encoding/json the converter refuses text that is not UTF-8, deep nesting, and,
// where it looks, a name that is there twice.
func FuzzBytes(f *testing.F) {
	c := rich(f)
	for _, seed := range []string{
		`{}`, `[]`, ` {"a":[1,-0,1e+5,0.10,true,false,null,"\u0041é"]} `, `{"a":1,"a":2}`, `{"a":1}x`, `01`, `1.`, `"\x"`, "\"\xff\"", "\"\x01\"",
		`1,"spec":{"hostPort":"a:1","rows":[{"only":1}],"ports":[{"name":"a"}]}`, `"\ud800"`, `[[[[]]]]`, `1,"\u0073pec":null`, `1}`,
		`1,"metadata":{"annotations":{"conversion-operator.io/v1.widgets.example.com":"{\"format\":2,\"fields\":{\"/spec/rows/0\":{\"x\":\"a\",\"only\":1}}}","conversion-operator.io/v2":"{\"/spec/x\":1}"}},"spec":{"rows":[{"x":"a"}]}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, value []byte) {
		for _, version := range []string{"v1", "v2", "v3"} {
			for _, text := range []string{string(value), `{"apiVersion":"example.com/` + version + `","kind":"Widget","other":` + string(value) + "}"} {
				for _, to := range []string{"v1", "v2", "v3"} {
					if to != version {
						readsJSON(t, c, text, to)
					}
				}
			}
		}
	})
}

func readsJSON(t *testing.T, c *conversion.Converter, text, to string) {
	t.Helper()
	converted, err := c.Convert(nil, []byte(text), to)
	valid := json.Valid([]byte(text)) && utf8.ValidString(text)
	switch {
	case err == nil && (!valid || !json.Valid(converted)):
		t.Fatalf("%q was converted to %q", text, converted)
	case err != nil && valid && strings.Contains(err.Error(), "invalid JSON") &&
		!strings.Contains(err.Error(), "nested deeper") && !strings.Contains(err.Error(), "is there twice"):
		t.Fatalf("%q was not read: %v", text, err)
	}
}
