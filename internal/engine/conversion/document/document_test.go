// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package document_test

import (
	"encoding/json"
	"fmt"
	"reflect"
	"runtime"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"github.com/conversion-operator/conversion-operator/internal/engine/conversion/document"
	"github.com/conversion-operator/conversion-operator/internal/engine/tree"
)

// asJSON returns the value of a text as JSON, "none" if it has none.
func asJSON(t *testing.T, format, text string) string {
	t.Helper()
	a := new(tree.Arena)
	value := document.Read(a, format, []byte(text))
	if value == nil {
		return "none"
	}
	return string(a.Canonical(nil, value))
}

// nodeOf returns the value of JSON.
func nodeOf(t *testing.T, a *tree.Arena, text string) *tree.Node {
	t.Helper()
	value, err := a.Read([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return value
}

func TestReadYAML(t *testing.T) {
	for name, test := range map[string]struct{ text, want string }{
		"block style":                  {"# why\nb: [1, x]\na:\n  c: y # here\n", `{"a":{"c":"y"},"b":[1,"x"]}`},
		"JSON":                         {`{"a": [true, null, "x"]}`, `{"a":[true,null,"x"]}`},
		"CRLF":                         {"a: 1\r\nb: x\r\n", `{"a":1,"b":"x"}`},
		"tab after a colon":            {"a:\tx", `{"a":"x"}`},
		"a byte order mark":            {"\ufeffa: 1", `{"a":1}`},
		"a document marker":            {"---\na: 1\n...\n", `{"a":1}`},
		"a directive":                  {"%YAML 1.1\n---\na: yes", `{"a":"yes"}`},
		"booleans":                     {"[true, False, yes, No, on, off, y]", `[true,false,"yes","No","on","off","y"]`},
		"names that are booleans":      {"{on: 1, true: 2}", `{"on":1,"true":2}`},
		"numbers":                      {"[0x1F, 0o17, 017, 0b11, 1_000, -0, +1, 9223372036854775807]", `[31,15,15,3,1000,0,1,9223372036854775807]`},
		"integers beyond 64 bits":      {"[9223372036854775808, 18446744073709551616]", `[9223372036854776000,18446744073709552000]`},
		"floats":                       {"[1.0, 1e3, 0.10, -0.0, 1e-7, 1e21, .5]", `[1,1000,0.1,0,1e-7,1e+21,0.5]`},
		"infinite":                     {"a: .inf", "none"},
		"not a number":                 {"a: .nan", "none"},
		"a float that is too large":    {"a: 1e400", `{"a":"1e400"}`},
		"names that are numbers":       {"{4317: a, 0x10: b, 1.50: c}", `{"1.5":"c","16":"b","4317":"a"}`},
		"times and versions":           {"[2026-01-02, 12:30:45, 1.2.3]", `["2026-01-02","12:30:45","1.2.3"]`},
		"nulls":                        {"{a: ~, b: null, c: }", `{"a":null,"b":null,"c":null}`},
		"block texts":                  {"a: |\n  x\n  y\nb: >-\n  x\n  y\n", `{"a":"x\ny\n","b":"x y"}`},
		"an anchor":                    {"a: &x {b: 1}\nc: *x", `{"a":{"b":1},"c":{"b":1}}`},
		"a merge":                      {"a: &x {b: 1, c: 2}\nd: {c: 3, <<: *x}", `{"a":{"b":1,"c":2},"d":{"b":1,"c":3}}`},
		"several merges":               {"- &x {a: 1}\n- &y {a: 2, b: 2}\n- <<: [*x, *y]", `[{"a":1},{"a":2,"b":2},{"a":1,"b":2}]`},
		"a merge in a merge":           {"- &x {a: 1}\n- &y {<<: *x, b: 2}\n- {<<: *y}", `[{"a":1},{"a":1,"b":2},{"a":1,"b":2}]`},
		"a quoted merge":               {`"<<": {a: 1}`, `{"<<":{"a":1}}`},
		"a merge of a text":            {"<<: a", "none"},
		"a merge of texts":             {"<<: [a]", "none"},
		"two merges":                   {"- &x {a: 1}\n- {<<: *x, <<: *x}", "none"},
		"an alias of itself":           {"a: &x [*x]", "none"},
		"a merge of itself":            {"a: &x {<<: *x}", "none"},
		"an alias of nothing":          {"a: *x", "none"},
		"a duplicate name":             {"a: 1\na: 1", "none"},
		"names that become the same":   {"1: a\n\"1\": b", "none"},
		"several documents":            {"a: 1\n---\nb: 1", "none"},
		"an invalid second document":   {"a: 1\n---\n{", "none"},
		"a tag of YAML":                {`[!!str 1, !!int "1", !!float 1, !!map {a: 1}, !!seq [], !!null ""]`, `["1",1,1,{"a":1},[],null]`},
		"a tag that does not fit":      {"a: !!int x", "none"},
		"a null that is none":          {"a: !!null x", "none"},
		"a tag of another language":    {"a: !Ref x", "none"},
		"a tag of a list":              {"a: !Ref [x]", "none"},
		"binary":                       {"a: !!binary aGVsbG8=", "none"},
		"a set":                        {"!!set {a, b}", "none"},
		"a name that is null":          {"~: a", "none"},
		"a name that is a list":        {"[a]: b", "none"},
		"a name that is an alias":      {"- &x a\n- {*x : 1}", `["a",{"a":1}]`},
		"empty":                        {"", "none"},
		"only a comment":               {"# nothing", "none"},
		"only a marker":                {"---", "none"},
		"null":                         {"null", "none"},
		"a text":                       {"hello: world: again", "none"},
		"a scalar":                     {"hello", `"hello"`},
		"a tab":                        {"a:\n\tb: 1", "none"},
		"a control character":          {"a: \x01", "none"},
		"escapes":                      {`a: "\0\x01\u00e9\U0001F600\N"`, "{\"a\":\"\\u0000\\u0001é😀\u0085\"}"},
		"invalid UTF-8":                {"a: \xff", "none"},
		"UTF-16":                       {"\xfe\xff\x00a\x00:\x00 \x001", "none"},
		"an open bracket":              {"a: [1", "none"},
		"names of the tag of a merge":  {"!!merge a: {b: 1}", "none"},
		"a name that is not resolved":  {"? !!str 1\n: a", `{"1":"a"}`},
		"members in any order":         {"{z: 1, a: 2, m: 3}", `{"a":2,"m":3,"z":1}`},
		"a long line":                  {"a: " + strings.Repeat("x ", 300) + "x", `{"a":"` + strings.Repeat("x ", 300) + `x"}`},
		"as deep as possible":          {strings.Repeat("[", 900) + strings.Repeat("]", 900), strings.Repeat("[", 900) + strings.Repeat("]", 900)},
		"too deep":                     {strings.Repeat("[", 2000) + strings.Repeat("]", 2000), "none"},
		"much too deep":                {strings.Repeat("[", 1<<20), "none"},
		"too deep in a block":          {strings.Repeat("- ", 2000) + "a", "none"},
		"a value for each of the text": {"[" + strings.Repeat("a,", 100) + "]", `[` + strings.Repeat(`"a",`, 99) + `"a"]`},
		"too many values":              {"[" + strings.Repeat("a,", 1<<17) + "]", "none"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := asJSON(t, document.YAML, test.text); got != test.want {
				t.Errorf("%s is read as %s, want %s", short(test.text), short(got), short(test.want))
			}
		})
	}
}

func short(text string) string {
	if len(text) > 200 {
		return fmt.Sprintf("%q… (%d bytes)", text[:200], len(text))
	}
	return fmt.Sprintf("%q", text)
}

func TestReadJSON(t *testing.T) {
	for text, want := range map[string]string{
		`{"b": 1, "a": [1.0, "<&>"]}`:            `{"a":[1,"<&>"],"b":1}`,
		`9223372036854775808`:                    `9223372036854776000`,
		`-0`:                                     `0`,
		`1e400`:                                  "none",
		`{"a":1,"a":1}`:                          "none",
		`{"a":{"b":1,"b":2}}`:                    "none",
		`{a: 1}`:                                 "none",
		`{} {}`:                                  "none",
		`null`:                                   "none",
		``:                                       "none",
		"[" + strings.Repeat("1,", 1<<17) + "1]": "none",
	} {
		if got := asJSON(t, document.JSON, text); got != want {
			t.Errorf("%s is read as %s, want %s", short(text), short(got), short(want))
		}
	}
}

// TestWrite has texts that other readers of YAML would read as something else without quotes.
func TestWrite(t *testing.T) {
	a := new(tree.Arena)
	value := nodeOf(t, a, `{"z":{"b":[1,{"c":[]}],"a":{}},"on":"yes","n":"12:30","o":"017","m":"a\nb\n","<<":"~","big":100000000000000000000,"x":0.5,"t":"2026-01-02"}`)
	const want = `"<<": "~"
big: 100000000000000000000
m: |
  a
  b
"n": "12:30"
o: "017"
"on": "yes"
t: "2026-01-02"
x: 0.5
z:
  a: {}
  b:
    - 1
    - c: []
`
	if text := document.Write(a, document.YAML, value); string(text) != want {
		t.Errorf("got\n%s\nwant\n%s", text, want)
	}
	const compact = `{"<<":"~","big":100000000000000000000,"m":"a\nb\n","n":"12:30","o":"017","on":"yes","t":"2026-01-02","x":0.5,"z":{"a":{},"b":[1,{"c":[]}]}}`
	if text := document.Write(a, document.JSON, value); string(text) != compact {
		t.Errorf("got %s, want %s", text, compact)
	}
}

// TestLimits reads and writes what would take a thousand times its size, or more.
func TestLimits(t *testing.T) {
	bomb := "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n"
	merges := "a0: &a0 {x: 1}\n"
	for i := 1; i < 40; i++ {
		bomb += fmt.Sprintf("a%d: &a%d [%s]\n", i, i, strings.TrimSuffix(strings.Repeat(fmt.Sprintf("*a%d, ", i-1), 10), ", "))
		merges += fmt.Sprintf("a%d: &a%d {<<: [%s]}\n", i, i, strings.TrimSuffix(strings.Repeat(fmt.Sprintf("*a%d, ", i-1), 10), ", "))
	}
	long := "a: &a " + strings.Repeat("x", 100_000) + "\nb: [" + strings.Repeat("*a, ", 10_000) + "]"
	a := new(tree.Arena)
	deep := nodeOf(t, a, strings.Repeat(`{"a":`, 5000)+`[`+strings.Repeat("1,", 10_000)+`1]`+strings.Repeat(`}`, 5000))
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for name, text := range map[string]string{"lists": bomb, "merges": merges, "a long text": long} {
		if document.Read(a, document.YAML, []byte(text)) != nil {
			t.Errorf("%s: read", name)
		}
	}
	if document.Write(a, document.YAML, deep) != nil {
		t.Error("a deep value was written")
	}
	runtime.ReadMemStats(&after)
	if used := after.TotalAlloc - before.TotalAlloc; used > 128<<20 {
		t.Errorf("%d bytes were allocated", used)
	}
}

// TestMemory reads the text that takes the most memory for its size.
func TestMemory(t *testing.T) {
	text := []byte("{" + strings.Repeat("a,", 30_000) + "}")
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	document.Read(new(tree.Arena), document.YAML, text)
	runtime.ReadMemStats(&after)
	if used := after.TotalAlloc - before.TotalAlloc; used > 32<<20 {
		t.Errorf("%d bytes were allocated for %d", used, len(text))
	} else {
		t.Logf("%d bytes for %d", used, len(text))
	}
}

// FuzzYAML compares what is read with the library's own decoding, which does not limit aliases, and
// checks that a value that is written is read again.
func FuzzYAML(f *testing.F) {
	for _, seed := range []string{"a: [1, 0x1F, 1.50, yes, ~]", "a: &x {b: 1}\nc: {<<: *x, d: 'e'}", "- |\n  x\n   y\n- >\n  z\n", "{\"a\": \"\\u0085\\u2028\"}", "? a\n: - - b", "a: !!str 1", "1: 2", "\"\": \" a\\n b\\t\\n\\n\"", "a: 2026-01-02", "!x y"} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		a := new(tree.Arena)
		value := document.Read(a, document.YAML, text)
		if value == nil {
			return
		}
		encoded := a.Canonical(nil, value)
		var ours, theirs any
		if err := yaml.Unmarshal(text, &theirs); err != nil {
			t.Fatalf("%q is %s, and the library says: %v", text, encoded, err)
		}
		hasTime := strings.Contains(fmt.Sprintf("%#v", theirs), "time.Date(") // which is a text for us
		if also, err := json.Marshal(theirs); err == nil && !hasTime {
			if json.Unmarshal(encoded, &ours) != nil || json.Unmarshal(also, &theirs) != nil || !reflect.DeepEqual(ours, theirs) {
				t.Fatalf("%q is %s, and the library reads %s", text, encoded, also)
			}
		}
		checkWritten(t, a, document.YAML, value)
	})
}

// checkWritten checks that a value that is written is read again.
func checkWritten(t *testing.T, a *tree.Arena, format string, value *tree.Node) {
	t.Helper()
	written := document.Write(a, format, value)
	if written == nil {
		return // its indentation is too much
	}
	if back := document.Read(a, format, written); !a.Equal(value, back) {
		t.Fatalf("%s: %s is written as %q, which is read as another value", format, value.JSON(), written)
	}
}

// FuzzJSON checks that a value that is written as YAML or JSON is read again.
func FuzzJSON(f *testing.F) {
	for _, seed := range []string{`{"a":[1,-0.5,1e21,"x",true,null,{}]}`, `"\u0000\u2028\ufffe\ud800"`, `{"<<":" ","":"#"}`, `["- a","a: b","\ta\n","\n","\r\n "]`} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		a := new(tree.Arena)
		if value := document.Read(a, document.JSON, text); value != nil {
			for _, format := range document.Formats {
				checkWritten(t, a, format, value)
			}
		}
	})
}
