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
			b := newBody(c.shape, count)
			expect.NoError(t, agree(b, all))
			if each := len(b.text) / count; each < c.shape.size || each > c.shape.size+c.shape.size/4 {
				t.Errorf("%s: an object has %d bytes", b.name, each)
			}
		}
	}
}

func TestDisagreement(t *testing.T) {
	b := newBody(shape{name: "kept", size: small, owner: true}, 2)
	all, err := subjects()
	expect.NoError(t, err)
	honest := newClient(all[0].handler, b.text)
	honest.call()
	for _, test := range []struct {
		old, new string
		converts bool
		want     string
	}{
		{`9007199254740993`, `9007199254740992`, true, "9007199254740992"}, // it went through a float
		{`conversion-operator.io/v1.`, `conversion-operator.io/v2.`, true, "differs"},
		{`bench.example.com/v2`, `bench.example.com/v1`, true, "not in bench.example.com/v2"},
		{string(b.uid), "1", true, "not a success"},
		{`"Success"`, `"Failure"`, true, "not a success"},
		{`"metadata":`, `"other":`, true, "no metadata"},
		{`{`, `[`, true, "no ConversionReview"},
		{`"`, `'`, false, "does not send the body back"},
	} {
		forged := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			_, _ = w.Write(bytes.ReplaceAll(honest.answer, []byte(test.old), []byte(test.new)))
		})
		if err := agree(b, []subject{all[0], {"forged", forged, test.converts}}); err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s for %s: error %v, want %q", test.new, test.old, err, test.want)
		}
	}
}
