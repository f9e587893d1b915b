// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package terminal

import (
	"strings"
	"testing"

	"github.com/conversion-operator/conversion-operator/internal/test/expect"
)

func TestWriteTable(t *testing.T) {
	for name, test := range map[string]struct {
		rows [][]string
		want string
	}{
		"nothing":     {nil, ""},
		"a head only": {[][]string{{"NAME"}}, ""},
		"two columns": {[][]string{{"NAME", "STATE"}, {"longer name", "ok"}}, "NAME          STATE\nlonger name   ok\n"},
		"colours": {
			[][]string{{"STATE", "NAME"}, {Colors(true).In(Red, "bad"), "a"}, {"good", "b"}},
			"STATE   NAME\n\x1b[31mbad\x1b[0m     a\ngood    b\n",
		},
		"more than ASCII": {[][]string{{"A", "B"}, {"→é", "x"}}, "A    B\n→é   x\n"},
		"a short row":     {[][]string{{"A", "B", "C"}, {"1"}, {"1", "2", "3"}}, "A   B   C\n1\n1   2   3\n"},
	} {
		t.Run(name, func(t *testing.T) {
			var out strings.Builder
			expect.NoError(t, WriteTable(&out, test.rows))
			expect.Equal(t, "table", test.want, out.String())
		})
	}
}

func TestColors(t *testing.T) {
	expect.Equal(t, "without colours it", "yes", Colors(false).In(Green, "yes"))
	expect.Equal(t, "in no colour it", "yes", Colors(true).In(Plain, "yes"))
	expect.Equal(t, "nothing in a colour", "", Colors(true).In(Green, ""))
}

func TestText(t *testing.T) {
	expect.Equal(t, "one line", "a[2Jb c d", OneLine("a\x1b[2Jb\r\n  c\x07\td"))
	expect.Equal(t, "or dash", "-x", OrDash("")+OrDash("x"))
	expect.Equal(t, "count", "1 error, 2 errors", Count(1, "error")+", "+Count(2, "error"))
}

func TestFit(t *testing.T) {
	const text = "one\ntwo\nthree is long\nfour\n"
	for name, test := range map[string]struct {
		width, height int
		want          string
	}{
		"all":            {80, 24, text},
		"just":           {80, 5, text},
		"a row less":     {80, 4, "one\ntwo\n2 more lines\n"},
		"a narrow one":   {7, 5, "one\ntwo\n2 more lines\n"},
		"a small one":    {80, 1, "4 more lines\n"},
		"none at all":    {0, 0, "4 more lines\n"},
		"exactly a line": {13, 5, text},
	} {
		t.Run(name, func(t *testing.T) {
			expect.Equal(t, "text", test.want, Fit(text, test.width, test.height))
		})
	}
}
