// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package manifest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	kubernetesyaml "sigs.k8s.io/yaml"

	"github.com/conversion-operator/conversion-operator/internal/test/expect"
)

// TestYAML reads values of YAML as JSON.
func TestYAML(t *testing.T) {
	for name, test := range map[string]struct{ yaml, want string }{
		"above 2^53":          {"9007199254740993", "9007199254740993"},
		"above 2^64":          {"123456789012345678901234567890", "123456789012345678901234567890"},
		"a decimal":           {"1.50", "1.50"},
		"an exponent":         {"1E+5", "1E+5"},
		"minus zero":          {"-0", "-0"},
		"hexadecimal":         {"0x1F", "31"},
		"octal":               {"017", "15"},
		"underscores":         {"1_000", "1000"},
		"no zero":             {".5", "0.5"},
		"plus":                {"+7", "7"},
		"a quoted number":     {`"007"`, `"007"`},
		"text by its tag":     {"!!str 7", `"7"`},
		"a YAML 1.1 boolean":  {"yes", "true"},
		"another":             {"Off", "false"},
		"a quoted boolean":    {"'no'", `"no"`},
		"a boolean":           {"TRUE", "true"},
		"nothing":             {"", "null"},
		"a tilde":             {"~", "null"},
		"a date":              {"2001-02-03", `"2001-02-03"`},
		"a time":              {"2001-02-03T04:05:06Z", `"2001-02-03T04:05:06Z"`},
		"a version":           {"1.2.3", `"1.2.3"`},
		"five words":          {"1 * * * 5", `"1 * * * 5"`},
		"HTML":                {"a<b>&c", `"a<b>&c"`},
		"a block":             {"|\n  a\n  b\n", `"a\nb\n"`},
		"a fold":              {">-\n  a\n  b\n", `"a b"`},
		"a list":              {"[1, {b: 2, a: 1}]", `[1,{"b":2,"a":1}]`},
		"names by their text": {"{1: a, true: b, 1.0: c}", `{"1":"a","true":"b","1.0":"c"}`},
		"an anchor":           {"[&x {a: 1.0}, *x]", `[{"a":1.0},{"a":1.0}]`},
		"a merge":             {"[&x {a: 1, b: 2}, {<<: *x, b: 3}]", `[{"a":1,"b":2},{"b":3,"a":1}]`},
		"two merges":          {"[&x {a: 1}, &y {a: 2, b: 2}, {<<: [*x, *y]}]", `[{"a":1},{"a":2,"b":2},{"a":1,"b":2}]`},
	} {
		t.Run(name, func(t *testing.T) {
			documents, err := Parse("f", []byte("value: "+test.yaml))
			expect.NoError(t, err)
			expect.Equal(t, "JSON", `{"value":`+test.want+`}`, string(documents[0].JSON))
		})
	}
}

// nested returns a value inside a number of objects or lists.
func nested(before, opening, closing string, depth int) string {
	return before + strings.Repeat(opening, depth) + "1" + strings.Repeat(closing, depth)
}

// TestDepth reads and writes documents of the depth that API servers allow.
func TestDepth(t *testing.T) {
	const depth = 10_000
	want := nested("", `{"a":`, "}", depth)
	blocks := ""
	for i := range 2000 {
		blocks += strings.Repeat(" ", i) + "a:\n"
	}
	for name, test := range map[string]struct{ text, want string }{
		"JSON":   {want, want},
		"flow":   {"---\n" + nested("", "{a: ", "}", depth), want},
		"lists":  {nested("a: ", "[", "]", depth-1), nested(`{"a":`, "[", "]", depth-1) + "}"},
		"blocks": {blocks + strings.Repeat(" ", 2000) + "a: 1\n", nested("", `{"a":`, "}", 2001)},
	} {
		t.Run(name, func(t *testing.T) {
			documents, err := Parse("f", []byte(test.text))
			expect.NoError(t, err)
			expect.Equal(t, "text", test.want, string(documents[0].JSON))
			var out bytes.Buffer
			expect.NoError(t, Write(&out, JSON, documents))
		})
	}
}

func TestYAMLErrors(t *testing.T) {
	bomb := "a0: &a0 [1, 1]\n"
	for i := range 30 {
		bomb += fmt.Sprintf("a%d: &a%d [*a%d, *a%d]\n", i+1, i+1, i, i)
	}
	merges := "a0: &a0 {a: 1, b: 2}\n"
	for i := range 60 {
		merges += fmt.Sprintf("a%d: &a%d {<<: [*a%d, *a%d]}\n", i+1, i+1, i, i)
	}
	const tooDeep = "nested deeper than 10000 levels of objects and lists, which is the maximum of API servers"
	for name, test := range map[string]struct{ yaml, want string }{
		"no object":        {"- a", "f, document 1: expected an object, with apiVersion and kind"},
		"the second":       {"a: 1\n---\n3", "f, document 2: expected an object, with apiVersion and kind"},
		"not closed":       {"a: [", "f, document 1: yaml: line 1: did not find expected node content"},
		"twice":            {"a: 1\nb: 2\na: 3", `f, document 1: line 3: duplicate name "a"`},
		"twice the same":   {"true: a\nyes: b", `f, document 1: line 2: duplicate name "true"`},
		"infinity":         {"a: .inf", `f, document 1: line 1: ".inf" cannot be converted to JSON: `},
		"a tag":            {"a: !!binary aGk=", "f, document 1: line 1: the tag !!binary has no meaning in JSON: remove it"},
		"a name":           {"[a]: 1", "f, document 1: line 1: a name must be text"},
		"a merged scalar":  {"<<: 1", "f, document 1: line 1: << can merge only mappings"},
		"a loop":           {"a: &x [*x]", "f, document 1: line 1: " + tooDeep},
		"a loop of merges": {"a: &x {<<: *x}", "f, document 1: line 1: " + tooDeep},
		"a list too deep":  {nested("a: ", "[", "]", 10_000), "f, document 1: line 1: " + tooDeep},
		"JSON too deep":    {nested("", `{"a":`, "}", 10_001), "f, document 1: " + tooDeep},
		"YAML too deep":    {nested("a: ", "[", "]", 10_001), "f, document 1: " + tooDeep},
		"a bomb of merges": {merges, "f, document 1: line 2: aliases make more than 1048576 values"},
		"a bomb":           {bomb, "f, document 1: line 1: aliases make more than 1048576 values"},
		"bad JSON":         {`{"a": 1,, }`, "f, document 1: line 1: invalid character ',' looking for beginning of object key string"},
		"bad JSON later":   {"{\n}\n{\n\"a\": 1,\n,\n\n}", "f, document 2: line 5: invalid character ','"},
		"half of a JSON":   {"{\n\"a\": 1,\n", "f, document 1: unexpected EOF"},
		"a template":       {"a: {{ b }}\n", "f, document 1: line 1: a name must be text"},
		"a template, half": {"a: {{ b\n", "f, document 1: yaml: line 1: did not find expected ',' or '}': it contains {{, as templates do: render it first"},
		"a binary file":    {"\x7fELF\x00\x00", "f, document 1: it is not text: it has null characters"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := Parse("f", []byte(test.yaml))
			if err == nil || !strings.HasPrefix(err.Error(), test.want) {
				t.Errorf("error is %v, want %s", err, test.want)
			}
		})
	}
}

// FuzzText writes text as YAML, and checks that kubectl and this package read the same text.
func FuzzText(f *testing.F) {
	for _, text := range []string{
		"", "a", "yes", "No", "007", "1.50", "1e3", "1_000", "0o7", "0x1f", ".5", "+1", "~", "null", "true", "<<", "=", "2001-01-01", "12:30:45",
		"a: b", "a #b", "- a", "---", "...", "a\nb", "\n a\n", " a ", "a\t", "*a", "&a", "!a", "%a", "@a", "`a", "[", "{", "'", `"`, "\u0085", "\u2028", "\ufeff", "\x00", "🙂",
	} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		object, err := json.Marshal(map[string]string{"text": text, "n " + text: "", text: text})
		if err != nil {
			t.Skip()
		}
		var out bytes.Buffer
		expect.NoError(t, writeYAML(&out, object))
		want := map[string]string{}
		expect.NoError(t, json.Unmarshal(object, &want))
		documents, err := Parse("f", out.Bytes())
		if err != nil {
			t.Fatalf("%v in\n%s", err, out.String())
		}
		kubectls, err := kubernetesyaml.YAMLToJSON(out.Bytes())
		if err != nil {
			t.Fatalf("%v in\n%s", err, out.String())
		}
		for reader, read := range map[string][]byte{"this package": documents[0].JSON, "kubectl": kubectls} {
			got := map[string]string{}
			if err := json.Unmarshal(read, &got); err != nil {
				t.Fatalf("%s: %v in\n%s", reader, err, out.String())
			}
			expect.Equal(t, fmt.Sprintf("what %s reads from\n%s", reader, out.String()), want, got)
		}
	})
}
