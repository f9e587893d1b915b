// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package converters

import (
	"bytes"
	"net/http"
	"strings"
	"testing"

	"github.com/conversion-operator/conversion-operator/internal/test/expect"
)

// TestBodies: all subjects agree on a few objects of each case (the benchmark itself compares
// hundreds before it measures), and sizes match the names of the cases.
func TestBodies(t *testing.T) {
	all, err := subjects()
	expect.NoError(t, err)
	for _, c := range cases {
		for _, count := range []int{1, 20} {
			b, err := newBody(c.shape, count)
			expect.NoError(t, err)
			expect.NoError(t, agree(b, all))
			if each := len(b.text) / count; each < c.shape.size || each > c.shape.size+c.shape.size/4 {
				t.Errorf("%s: an object has %d bytes", b.name, each)
			}
		}
	}
}

func TestDisagreement(t *testing.T) {
	b, err := newBody(shape{name: "kept", size: small, owner: true}, 2)
	expect.NoError(t, err)
	all, err := subjects()
	expect.NoError(t, err)
	honest := newClient(all[0].handler, b.text)
	honest.call()
	tests := map[string]struct {
		old, new string
		converts bool
		want     string
	}{
		"a number that went through a float": {`9007199254740993`, `9007199254740992`, true, "9007199254740992"},
		"nothing preserved":                  {`conversion-operator.io/v1.`, `conversion-operator.io/v2.`, true, "differs"},
		"another version":                    {`bench.example.com/v2`, `bench.example.com/v1`, true, "not in bench.example.com/v2"},
		"another uid":                        {string(b.uid), "1", true, `for uid "1"`},
		"a failure":                          {`"Success"`, `"Failure"`, true, "the conversion failed"},
		"no kind":                            {`"kind":"Task"`, `"other":"Task"`, true, "not readable"},
		"no metadata":                        {`"metadata":`, `"other":`, true, "no metadata"},
		"another kind":                       {`"ConversionReview"`, `"Review"`, true, "is a Review"},
		"no review":                          {`{`, `[`, true, "no ConversionReview"},
		"a body that does not come back":     {`"`, `'`, false, "does not send the body back"},
		"managedFields may be missing":       {`"managedFields":`, `"other":`, true, ""},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			forged := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				_, _ = w.Write(bytes.ReplaceAll(honest.answer.text, []byte(test.old), []byte(test.new)))
			})
			err := agree(b, []subject{all[0], {"forged", forged, test.converts}})
			if test.want == "" && err != nil || test.want != "" && (err == nil || !strings.Contains(err.Error(), test.want)) {
				t.Errorf("error %v, want %q", err, test.want)
			}
		})
	}
}
