// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package manifest

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/conversion-operator/conversion-operator/internal/test/expect"
)

const listText = ` { "kind" : "List", "apiVersion":"v1",  "items": [ {"kind":"A", "n": 1.0} ,
 {"kind":"B","metadata":{"namespace":"x","name":"y"}} ], "metadata": {"resourceVersion":""} } `

func TestReplace(t *testing.T) {
	nameOf := func(o Object) ([]byte, error) { return []byte(`"` + o.String() + `"`), nil }
	for name, test := range map[string]struct {
		text string
		with func(Object) ([]byte, error)
		want string
		err  string
	}{
		"an object":    {`{"kind":"A","metadata":{"name":"a"}}`, nameOf, `"f, document 1 (a)"`, ""},
		"a list":       {listText, nameOf, `{ "kind" : "List", "apiVersion":"v1",  "items": [ "f, document 1, items[0]" ,` + "\n" + ` "f, document 1, items[1] (x/y)" ], "metadata": {"resourceVersion":""} }`, ""},
		"an empty one": {`{"kind":"AList","items":[]}`, nameOf, `{"kind":"AList","items":[]}`, ""},
		"a null":       {`{"kind":"AList","items":null}`, nameOf, `{"kind":"AList","items":null}`, ""},
		"no items":     {`{"kind":"AList","spec":1}`, nameOf, `"f, document 1"`, ""},
		"no list":      {`{"kind":"AList","items":{}}`, nameOf, "", "f, document 1: items is not a list"},
		"all errors": {
			listText, func(o Object) ([]byte, error) { return nil, errors.New("no " + o.Kind) }, "",
			"f, document 1, items[0]: no A\nf, document 1, items[1] (x/y): no B",
		},
	} {
		t.Run(name, func(t *testing.T) {
			documents, err := Parse("f", []byte(test.text))
			expect.NoError(t, err)
			got, err := documents[0].Replace(test.with)
			if err != nil {
				expect.Equal(t, "error", test.err, err.Error())
				return
			}
			expect.Equal(t, "text", test.want, string(got.JSON))
		})
	}
}

func TestSetAPIVersion(t *testing.T) {
	for text, want := range map[string]string{
		`{"a":{"apiVersion":"x"}, "apiVersion" : "old" ,"b":1.0}`: `{"a":{"apiVersion":"x"}, "apiVersion" : "new" ,"b":1.0}`,
		`{"a": 1}`: `{"a": 1}`,
	} {
		got, err := Document{JSON: []byte(text)}.SetAPIVersion("new")
		expect.NoError(t, err)
		expect.Equal(t, "text", want, string(got.JSON))
	}
}

// TestReadAll reads a directory, a file and the standard input, and writes in all forms.
func TestReadAll(t *testing.T) {
	directory := t.TempDir()
	for file, text := range map[string]string{
		"b.yaml": "# only a comment\n---\nb: 1.50\nlist:\n- text: 'yes'\n---\n---\nc: []\n", "a.json": "{ \"a\" : 1.0 }\n{\"b\":2}", "c.txt": "no", "d/e.json": "{}",
	} {
		expect.NoError(t, os.MkdirAll(filepath.Dir(filepath.Join(directory, file)), 0o700))
		expect.NoError(t, os.WriteFile(filepath.Join(directory, file), []byte(text), 0o600))
	}
	documents, err := ReadAll([]string{directory, Stdin, filepath.Join(directory, "d", "e.json")}, strings.NewReader("{a: b}"))
	expect.NoError(t, err)
	var places []string
	for _, document := range documents {
		places = append(places, strings.TrimPrefix(document.String(), directory))
	}
	want := []string{"/a.json, document 1", "/a.json, document 2", "/b.yaml, document 1", "/b.yaml, document 3", "stdin, document 1", "/d/e.json, document 1"}
	expect.Equal(t, "documents", want, places)
	for form, want := range map[Form]string{
		"":   "{ \"a\" : 1.0 }\n---\n{\"b\":2}\n---\nb: 1.50\nlist:\n- text: \"yes\"\n---\nc: []\n---\na: b\n---\n{}\n",
		JSON: "{ \"a\" : 1.0 }\n{\"b\":2}\n{\n  \"b\": 1.50,\n  \"list\": [\n    {\n      \"text\": \"yes\"\n    }\n  ]\n}\n{\n  \"c\": []\n}\n{\n  \"a\": \"b\"\n}\n{}\n",
		YAML: "a: 1.0\n---\nb: 2\n---\nb: 1.50\nlist:\n- text: \"yes\"\n---\nc: []\n---\na: b\n---\n{}\n",
	} {
		var out bytes.Buffer
		expect.NoError(t, Write(&out, form, documents))
		expect.Equal(t, fmt.Sprintf("form %q", form), want, out.String())
	}
}

func TestReadAllErrors(t *testing.T) {
	directory := t.TempDir()
	broken := filepath.Join(directory, "broken.txt")
	expect.NoError(t, os.WriteFile(broken, []byte("{"), 0o600))
	for path, want := range map[string]string{
		directory:                           directory + " has no .json, .yaml or .yml file",
		filepath.Join(directory, "missing"): "stat " + filepath.Join(directory, "missing") + ": no such file or directory",
		broken:                              broken + ", document 1: unexpected EOF",
	} {
		_, err := ReadAll([]string{path}, nil)
		expect.Equal(t, "error", want, fmt.Sprint(err))
	}
}
