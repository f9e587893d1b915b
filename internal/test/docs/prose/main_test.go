// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/conversion-operator/conversion-operator/internal/test/expect"
)

// TestRules: each rule finds its wrong examples, in pages, comments and strings, and not its right ones.
func TestRules(t *testing.T) {
	rules := parse(rulesText)
	expect.Equal(t, "rules", strings.Count(rulesText, " => "), len(rules))
	for _, of := range rules {
		for kind, wrong := range map[string]bool{"  wrong": true, "  right": false} {
			if len(of.examples[kind]) == 0 {
				t.Errorf("%s lacks an example that is %s", of.phrase, kind)
			}
			for _, example := range of.examples[kind] {
				for path, text := range map[string]string{"x.md": example, "line.go": "// " + example,
					"lines.go": "// " + strings.ReplaceAll(example, " ", "\n\t// "), "string.go": "`\n" + example + "\n\n`"} {
					found := check(io.Discard, path, []byte(text), []rule{of}) > 0
					expect.Equal(t, fmt.Sprintf("%s: %s finds %q", path, of.phrase, example), wrong, found)
				}
			}
		}
	}
}

// TestWhere: phrases are found in prose alone, with their lines.
func TestWhere(t *testing.T) {
	for name, test := range map[string]struct{ path, text, want string }{
		"page":          {"x.md", "a\n\nit was a blue\nmoon", "x.md:3: instead of \"blue\\nmoon\": red sun\n"},
		"paragraphs":    {"x.md", "blue\n\nmoon", ""},
		"unless":        {"x.md", "two blue moons", ""},
		"fence":         {"x.md", "a\n```sh\nblue moon\n```\nb", ""},
		"code":          {"x.md", "a `a blue moon` b, ``a `blue moon` ``", ""},
		"target":        {"x.md", "[a](docs/tide.md)", ""},
		"text of link":  {"x.md", "[blue moon](docs/a.md)", "x.md:1: instead of \"blue moon\": red sun\n"},
		"HTML comment":  {"x.md", "<!-- blue moon -->", ""},
		"comment":       {"x.go", "package a\n\n// blue moon", "x.go:3: instead of \"blue moon\": red sun\n"},
		"block comment": {"x.go", "/*\nblue moon\n*/", "x.go:2: instead of \"blue moon\": red sun\n"},
		"message":       {"x.go", "x(\"a blue moon\")", "x.go:1: instead of \"blue moon\": red sun\n"},
		"name":          {"x.go", "x(\"tide\")", ""},
		"Go code":       {"x.go", "tide := 1", ""},
		"two comments":  {"x.go", "// blue\nx()\n// moon", ""},
	} {
		var out strings.Builder
		check(&out, test.path, []byte(test.text), parse("blue moon => red sun unless two blue moons\ntide => sea"))
		expect.Equal(t, name, test.want, out.String())
	}
}
