// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/go-logr/logr"

	"github.com/conversion-operator/conversion-operator/internal/engine/tree"
	"github.com/conversion-operator/conversion-operator/internal/test/expect"
)

// respond converts a body without a server.
func respond(t *testing.T, handler *Handler, body string) (answer string, err error) {
	t.Helper()
	x := handler.newExchange(t.Context())
	defer x.release()
	x.in = append(x.in, body...)
	if refused := x.selectRuleset("abc", ""); refused != nil {
		return "", refused
	}
	if refused := x.respond(t.Context()); refused != nil {
		return "", refused
	}
	return string(x.out), nil
}

func newEcho() *Handler {
	echo := func(dst, object []byte, _ string) ([]byte, error) { return append(dst, object...), nil }
	return NewHandler(only(convertFunc(echo)), HandlerOptions{Log: logr.Discard()})
}

func TestReadReview(t *testing.T) {
	want := fmt.Sprintf(success, `{"a":[1,"]}",{}]},{}`)
	cases := map[string]string{
		"as an API server writes it":           `{"kind":"ConversionReview","apiVersion":"apiextensions.k8s.io/v1","request":{"uid":"u","desiredAPIVersion":"example.com/v1","objects":[{"a":[1,"]}",{}]},{}]},"response":{"uid":"","convertedObjects":null,"result":{"metadata":{}}}}`,
		"objects first":                        `{"request":{"objects":[{"a":[1,"]}",{}]},{}],"desiredAPIVersion":"example.com/v1","uid":"u"},"apiVersion":"apiextensions.k8s.io/v1","kind":"ConversionReview"}`,
		"objects before desiredAPIVersion":     `{"kind":"ConversionReview","apiVersion":"apiextensions.k8s.io/v1","request":{"uid":"u","objects":[{"a":[1,"]}",{}]},{}],"desiredAPIVersion":"example.com/v1"}}`,
		"request before kind":                  `{"apiVersion":"apiextensions.k8s.io/v1","request":{"uid":"u","desiredAPIVersion":"example.com/v1","objects":[{"a":[1,"]}",{}]},{}]},"kind":"ConversionReview"}`,
		"with space everywhere":                "\n{ \"kind\" : \"ConversionReview\" ,\r\n\t\"apiVersion\" : \"apiextensions.k8s.io/v1\" , \"request\" : { \"uid\" : \"u\" , \"desiredAPIVersion\" : \"example.com/v1\" , \"objects\" : [ {\"a\":[1,\"]}\",{}]} , {} ] } } \n",
		"with space everywhere, objects first": " { \"request\" : { \"objects\" : [ {\"a\":[1,\"]}\",{}]} , {} ] , \"desiredAPIVersion\" : \"example.com/v1\" , \"uid\" : \"u\" } , \"kind\" : \"ConversionReview\" , \"apiVersion\" : \"apiextensions.k8s.io/v1\" }",
		"with names and values escaped":        `{"\u006bind":"Conversion\u0052eview","apiVersion":"apiextensions.k8s.io\/v1","request":{"uid":"\u0075","desiredAPIVersion":"example.com\/v1","\u006fbjects":[{"a":[1,"]}",{}]},{}]}}`,
		"with unknown members of every type":   `{"a":1.5e+3,"b":true,"c":null,"d":"\\","e":"\"}","f":[[],{}],"kind":"ConversionReview","apiVersion":"apiextensions.k8s.io/v1","request":{"g":-0,"uid":"u","desiredAPIVersion":"example.com/v1","objects":[{"a":[1,"]}",{}]},{}],"h":{}}}`,
		"unknown members may come twice":       `{"a":1,"a":2,"kind":"ConversionReview","apiVersion":"apiextensions.k8s.io/v1","request":{"a":1,"uid":"u","desiredAPIVersion":"example.com/v1","a":2,"objects":[{"a":[1,"]}",{}]},{}]}}`,
		"the deepest skipped value":            `{"a":` + strings.Repeat("[", tree.MaxDepth) + strings.Repeat("]", tree.MaxDepth) + `,"kind":"ConversionReview","apiVersion":"apiextensions.k8s.io/v1","request":{"uid":"u","desiredAPIVersion":"example.com/v1","objects":[{"a":[1,"]}",{}]},{}]}}`,
	}
	handler := newEcho()
	for name, body := range cases {
		t.Run(name, func(t *testing.T) {
			got, err := respond(t, handler, body)
			expect.NoError(t, err)
			expect.Equal(t, "answer", want, got)
		})
	}
}

func TestReadReviewRefuses(t *testing.T) {
	const head = `{"kind":"ConversionReview","apiVersion":"apiextensions.k8s.io/v1","request":{"uid":"u","desiredAPIVersion":"example.com/v1","objects":[{"a":1}]`
	deep := strings.Repeat("[", 1<<20)
	cases := map[string]struct{ body, want string }{
		"empty body":              {``, `invalid JSON at byte 0: a value was expected`},
		"null":                    {`null`, `kind is "", not "ConversionReview"`},
		"not an object":           {`[]`, `kind is "", not "ConversionReview"`},
		"not JSON":                {`kind: x`, `invalid JSON at byte 0: a value was expected`},
		"cut in a name":           {`{"kin`, `invalid JSON at byte 5: the text does not end`},
		"cut in a value":          {`{"kind":`, `invalid JSON at byte 8: a value was expected`},
		"cut in a string":         {`{"kind":"a\"`, `invalid JSON at byte 12: the text does not end`},
		"cut in an early object":  {`{"request":{"objects":[{"a":{}`, `invalid JSON at byte 30: a comma or an end was expected`},
		"cut after objects":       {head, `invalid JSON at byte 143: a comma or an end was expected`},
		"cut after request":       {head + `}`, `invalid JSON at byte 144: a comma or an end was expected`},
		"data after it":           {`{} {}`, `invalid JSON at byte 3: the end was expected`},
		"data after a request":    {head + `}}]`, `invalid JSON at byte 145: the end was expected`},
		"name without quote":      {`{kind:"x"}`, `invalid JSON at byte 1: a name was expected`},
		"name not a string":       {"{\"a\x01\":1}", `invalid JSON at byte 3: a control character must be escaped`},
		"comma at the end":        {`{"a":1,}`, `invalid JSON at byte 7: a name was expected`},
		"comma after objects":     {head[:len(head)-1] + `,]}}`, `invalid JSON at byte 143: a value was expected`},
		"no comma between them":   {head[:len(head)-1] + `{}]}}`, `invalid JSON at byte 142: a comma or an end was expected`},
		"missing value":           {`{"a":}`, `invalid JSON at byte 5: a value was expected`},
		"missing colon":           {`{"a" 1}`, `invalid JSON at byte 5: a colon was expected`},
		"uid not a string":        {`{"request":{"uid":1}}`, `uid at byte 18 is not a string of at most 1024 bytes`},
		"request a list":          {`{"request":[]}`, `kind is "", not "ConversionReview"`},
		"objects an object":       {strings.Replace(head, "[", "{", 1), `objects at byte 134 is not a list`},
		"control character":       {"{\"kind\":\"a\x01\"}", `invalid JSON at byte 10: a control character must be escaped`},
		"kind twice":              {`{"kind":"x","kind":"ConversionReview"}`, `the member "kind" comes twice, the second time before byte 19`},
		"kind twice, escaped":     {`{"kind":"x","\u006bind":"x"}`, `the member "kind" comes twice, the second time before byte 24`},
		"apiVersion twice":        {`{"apiVersion":null,"apiVersion":"x"}`, `the member "apiVersion" comes twice, the second time before byte 32`},
		"request twice":           {`{"request":null,"request":{}}`, `the member "request" comes twice, the second time before byte 26`},
		"uid twice":               {`{"request":{"uid":"u","uid":"u"}}`, `the member "uid" comes twice, the second time before byte 28`},
		"desiredAPIVersion twice": {`{"request":{"desiredAPIVersion":"u","desiredAPIVersion":"u"}}`, `the member "desiredAPIVersion" comes twice, the second time before byte 56`},
		"objects twice, early":    {`{"request":{"objects":[],"objects":[]}}`, `the member "objects" comes twice, the second time before byte 35`},
		"objects twice":           {head + `,"objects":[{"b":1}]}}`, `the member "objects" comes twice, the second time before byte 154`},
		"uid twice, late":         {head + `,"uid":"v"}}`, `the member "uid" comes twice, the second time before byte 150`},
		"deep":                    {`{"response":` + deep, `invalid JSON at byte 10012: nested deeper than 10000`},
		"deep early objects":      {`{"request":{"objects":` + deep, `invalid JSON at byte 10022: nested deeper than 10000`},
	}
	handler := newEcho()
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			answer, err := respond(t, handler, tc.body)
			expect.Equal(t, "error", "not a usable ConversionReview: "+tc.want, text(err))
			expect.Equal(t, "another answer", "", answer)
		})
	}
}

// FuzzReadReview compares the answer with that of encoding/json if the body is JSON. Nothing else may be accepted, and
// the answer must always be valid JSON.
func FuzzReadReview(f *testing.F) {
	for _, seed := range []string{
		`{"kind":"ConversionReview","apiVersion":"apiextensions.k8s.io/v1","request":{"uid":"u","desiredAPIVersion":"example.com/v1","objects":[{"a":"\\\""},{}]}}`,
		`{"kind":"ConversionReview","apiVersion":"apiextensions.k8s.io/v1","request":{"uid":"u","uid":"v"},"response":{"uid":"","convertedObjects":null,"result":{"metadata":{}}},"kind":""}`,
		`{"request":{"objects":[{"a":{}},{}],"uid":"\u0075\ud800","desiredAPIVersion":"example.com/v1"},"kind":"ConversionReview","apiVersion":"apiextensions.k8s.io/v1"}`,
		`{"request":{"objects":[{"a":[}]}],"uid":null}}`,
		`{"request":{"uid":"u"},"request":{"objects":[{}],"objects":null}}`,
		`{"request":null,"\u006bind":"x\ud800"}`,
		`[`, `"`, `{"`, `{"\`, `nul`,
	} {
		f.Add([]byte(seed))
	}
	handler := newEcho()
	f.Fuzz(func(t *testing.T, body []byte) {
		got, err := respond(t, handler, string(body))
		if err == nil && !json.Valid(body) {
			t.Fatalf("%q is not JSON, and the answer is %s", body, got)
		}
		if err == nil && !json.Valid([]byte(got)) {
			t.Fatalf("the answer is not JSON: %s", got)
		}
		if !json.Valid(body) || !utf8.Valid(body) || nesting(body) > tree.MaxDepth {
			return
		}
		want, ok := readWithEncodingJSON(body)
		if ok != (err == nil) {
			t.Fatalf("answer %s, error %v; encoding/json says %v", got, err, ok)
		}
		expect.Equal(t, "objects", want, converted(t, got))
	})
}

// readWithEncodingJSON returns the objects of a review that can be converted, and whether the body
// is a review. It decodes into maps, because struct fields match names of any case.
func readWithEncodingJSON(body []byte) (objects []json.RawMessage, ok bool) {
	var kind, apiVersion, uid, desired string
	var request json.RawMessage
	if !decodeOnce(body, map[string]any{"kind": &kind, "apiVersion": &apiVersion, "request": &request}) ||
		!decodeOnce(request, map[string]any{"uid": &uid, "desiredAPIVersion": &desired, "objects": &objects}) {
		return nil, false
	}
	if kind != "ConversionReview" || apiVersion != reviewVersion || uid == "" {
		return nil, false
	}
	group, version, _ := strings.Cut(desired, "/")
	if group != "example.com" || version == "" || strings.Contains(version, "/") {
		return nil, true
	}
	for _, object := range objects {
		if object[0] != '{' {
			return nil, true
		}
	}
	return objects, true
}

// decodeOnce decodes members of an object. It fails if one of them occurs twice.
func decodeOnce(object []byte, into map[string]any) bool {
	if len(object) == 0 {
		return true
	}
	decoder := json.NewDecoder(bytes.NewReader(object))
	opening, err := decoder.Token()
	if err != nil || opening != json.Delim('{') {
		return opening == nil
	}
	for decoder.More() {
		var value json.RawMessage
		name, err := decoder.Token()
		if err != nil || decoder.Decode(&value) != nil {
			return false
		}
		target, known := into[name.(string)]
		if !known {
			continue
		}
		if target == nil || json.Unmarshal(value, target) != nil {
			return false
		}
		into[name.(string)] = nil
	}
	return true
}

// converted returns the objects in an answer.
func converted(t *testing.T, answer string) []json.RawMessage {
	t.Helper()
	if answer == "" {
		return nil
	}
	var review struct {
		Response struct{ ConvertedObjects []json.RawMessage }
	}
	expect.NoError(t, json.Unmarshal([]byte(answer), &review))
	if len(review.Response.ConvertedObjects) == 0 {
		return nil
	}
	return review.Response.ConvertedObjects
}

// nesting returns an upper bound of the depth.
func nesting(body []byte) int {
	return bytes.Count(body, []byte("[")) + bytes.Count(body, []byte("{"))
}

func text(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}
