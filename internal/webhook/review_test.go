// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestParseReview(t *testing.T) {
	want := review{
		apiVersion: "apiextensions.k8s.io/v1",
		kind:       "ConversionReview",
		uid:        "u",
		desired:    "example.com/v1",
		objects:    [][]byte{[]byte(`{"a":[1,"]}",{}]}`), []byte(`{}`)},
	}
	empty := want
	empty.objects = nil

	cases := map[string]struct {
		body string
		want review
		err  string
	}{
		"as an API server writes it": {
			body: `{"kind":"ConversionReview","apiVersion":"apiextensions.k8s.io/v1","request":{"uid":"u","desiredAPIVersion":"example.com/v1","objects":[{"a":[1,"]}",{}]},{}]},"response":{"uid":"","convertedObjects":null,"result":{"metadata":{}}}}`,
			want: want,
		},
		"objects first": {
			body: `{"request":{"objects":[{"a":[1,"]}",{}]},{}],"desiredAPIVersion":"example.com/v1","uid":"u"},"apiVersion":"apiextensions.k8s.io/v1","kind":"ConversionReview"}`,
			want: want,
		},
		"with space everywhere": {
			body: "\n{ \"kind\" : \"ConversionReview\" ,\r\n\t\"apiVersion\" : \"apiextensions.k8s.io/v1\" , \"request\" : { \"uid\" : \"u\" , \"desiredAPIVersion\" : \"example.com/v1\" , \"objects\" : [ {\"a\":[1,\"]}\",{}]} , {} ] } } \n",
			want: want,
		},
		"with names and values escaped": {
			body: `{"\u006bind":"Conversion\u0052eview","apiVersion":"apiextensions.k8s.io\/v1","request":{"uid":"u","desiredAPIVersion":"example.com/v1","objects":[{"a":[1,"]}",{}]},{}]}}`,
			want: want,
		},
		"with unknown members of every type": {
			body: `{"a":1.5e+3,"b":true,"c":null,"d":"\\","e":"\"}","f":[[],{}],"kind":"ConversionReview","apiVersion":"apiextensions.k8s.io/v1","request":{"g":-0,"uid":"u","desiredAPIVersion":"example.com/v1","objects":[{"a":[1,"]}",{}]},{}],"h":{}}}`,
			want: want,
		},
		"the last of two members counts": {
			body: `{"kind":"x","kind":"ConversionReview","apiVersion":"apiextensions.k8s.io/v1","request":{"objects":[{"z":1}],"uid":"u","desiredAPIVersion":"example.com/v1","objects":[{"a":[1,"]}",{}]},{}]}}`,
			want: want,
		},
		"the last of two requests counts": {
			body: `{"kind":"ConversionReview","apiVersion":"x","apiVersion":null,"request":{"uid":"u","desiredAPIVersion":"d","objects":[{}]},"request":{}}`,
			want: review{kind: "ConversionReview"},
		},
		"objects null": {
			body: `{"kind":"ConversionReview","apiVersion":"apiextensions.k8s.io/v1","request":{"uid":"u","desiredAPIVersion":"example.com/v1","objects":null}}`,
			want: empty,
		},
		"no objects": {
			body: `{"kind":"ConversionReview","apiVersion":"apiextensions.k8s.io/v1","request":{"uid":"u","desiredAPIVersion":"example.com/v1"}}`,
			want: empty,
		},
		"request null":       {body: `{"request":null}`, want: review{}},
		"null":               {body: `null`, want: review{}},
		"empty body":         {body: ``, err: `the body ends at byte 0 where '{' should be`},
		"not an object":      {body: `[]`, err: `'[' at byte 0 where '{' should be`},
		"not JSON":           {body: `kind: x`, err: `'k' at byte 0 where '{' should be`},
		"cut in a name":      {body: `{"kin`, err: `the body ends at byte 5 where the end of a string should be`},
		"cut in a value":     {body: `{"kind":`, err: `kind: the body ends at byte 8 where a string should be`},
		"cut in a string":    {body: `{"kind":"a\"`, err: `kind: the body ends at byte 12 where the end of a string should be`},
		"cut in an object":   {body: `{"request":{"objects":[{"a":{}`, err: `request: objects: the body ends at byte 30 where a closing bracket should be`},
		"cut behind objects": {body: `{"request":{"objects":[{}]`, err: `request: the body ends at byte 26 where ',' should be`},
		"something behind":   {body: `{} {}`, err: `'{' at byte 3 where the end should be`},
		"name without quote": {body: `{kind:"x"}`, err: `'k' at byte 1 where the name of a member should be`},
		"comma at the end":   {body: `{"a":1,}`, err: `'}' at byte 7 where the name of a member should be`},
		"missing value":      {body: `{"a":}`, err: `'}' at byte 5 where a value should be`},
		"missing colon":      {body: `{"a" 1}`, err: `'1' at byte 5 where ':' should be`},
		"uid not a string":   {body: `{"request":{"uid":1}}`, err: `request: uid: '1' at byte 18 where a string should be`},
		"request a list":     {body: `{"request":[]}`, err: `request: '[' at byte 11 where '{' should be`},
		"objects an object":  {body: `{"request":{"objects":{}}}`, err: `request: objects: '{' at byte 22 where '[' should be`},
		"control character":  {body: "{\"kind\":\"a\x01\"}", err: `kind: invalid character '\x01' in string literal`},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got, err := parseReview([]byte(tc.body))
			if diff := cmp.Diff(tc.err, text(err)); diff != "" {
				t.Fatalf("error (-want +got):\n%s", diff)
			}
			if tc.err != "" {
				return
			}
			if diff := cmp.Diff(tc.want, got, cmp.AllowUnexported(review{})); diff != "" {
				t.Errorf("review (-want +got):\n%s", diff)
			}
		})
	}
}

func TestScannerGoesDeepWithoutRecursion(t *testing.T) {
	deep := strings.Repeat("[", 1<<20) + strings.Repeat("]", 1<<20)
	got, err := parseReview([]byte(`{"request":{"objects":[` + deep + `]}}`))
	if err != nil {
		t.Fatal(err)
	}
	if len(got.objects) != 1 || string(got.objects[0]) != deep {
		t.Errorf("got %d objects", len(got.objects))
	}
}

// FuzzParseReview holds the scanner equal to encoding/json: it finds the same
// members in all that is JSON. In what is not, it may only overlook what stands
// inside the values that it skips.
func FuzzParseReview(f *testing.F) {
	for _, seed := range []string{
		`{"kind":"ConversionReview","apiVersion":"apiextensions.k8s.io/v1","request":{"uid":"u","desiredAPIVersion":"example.com/v1","objects":[{"a":"\\\""},[],1]}}`,
		`{"request":{"objects":[{"a":[}]}],"uid":null}}`,
		`{"request":{"uid":"u"},"request":{"objects":[{}],"objects":null}}`,
		`{"request":null,"\u006bind":"x\ud800"}`,
		`[`, `"`, `{"`, `{"\`, `nul`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		got, err := parseReview(body)
		for _, object := range got.objects {
			if !bytes.Contains(body, object) {
				t.Fatalf("object %q is not a part of the body", object)
			}
		}
		if !json.Valid(body) {
			return
		}
		want, wantErr := decodeReview(body)
		if (err == nil) != (wantErr == nil) {
			t.Fatalf("error %v, encoding/json says %v", err, wantErr)
		}
		if err != nil {
			return
		}
		if diff := cmp.Diff(want, got, cmp.AllowUnexported(review{})); diff != "" {
			t.Errorf("review (-encoding/json +scanner):\n%s", diff)
		}
	})
}

// decodeReview is parseReview, slowly. Maps stand for structs because names of
// struct members match whatever their case.
func decodeReview(body []byte) (review, error) {
	var r review
	var envelope, request map[string]json.RawMessage
	if err := json.Unmarshal(body, &envelope); err != nil {
		return r, err
	}
	if err := decodeMembers(envelope, map[string]any{"apiVersion": &r.apiVersion, "kind": &r.kind, "request": &request}); err != nil {
		return r, err
	}
	var objects []json.RawMessage
	err := decodeMembers(request, map[string]any{"uid": &r.uid, "desiredAPIVersion": &r.desired, "objects": &objects})
	for _, object := range objects {
		r.objects = append(r.objects, object)
	}
	return r, err
}

func decodeMembers(members map[string]json.RawMessage, into map[string]any) error {
	for name, target := range into {
		if raw, ok := members[name]; ok {
			if err := json.Unmarshal(raw, target); err != nil {
				return err
			}
		}
	}
	return nil
}

func text(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}
