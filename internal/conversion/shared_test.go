// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package conversion_test

import "testing"

// TestNothingInSharedObject: an object without anything in it is preserved if it would
// not be there on the way back. Where the image of a restored value comes into it, it is.
func TestNothingInSharedObject(t *testing.T) {
	const label = `{move: {from: .spec.c, to: '.metadata.annotations["l"]'}}`
	const object = `{"apiVersion":"example.com/v2","kind":"Widget","metadata":{"annotations":{"conversion-operator.io/v1.widgets.example.com":` +
		`"{\"format\":2,\"fields\":{\"/f\":\"x\",\"/spec/c\":\"y\"}}"}},"spec":{}}`
	for name, test := range map[string]struct{ f, inSpec, rules, want string }{
		"without an image": {"{type: string}", "g: {type: string}", label,
			`{"apiVersion":"example.com/v1","kind":"Widget","metadata":{"annotations":{"conversion-operator.io/v2.widgets.example.com":"{\"format\":2,\"fields\":{\"/spec\":{}}}"}},"spec":{"c":"y"},"f":"x"}`},
		"the image of a table": {"{type: string}", "f: {type: string}", label + ", {values: {from: .f, to: .spec.f, table: [{from: a, to: b}]}}",
			`{"apiVersion":"example.com/v1","kind":"Widget","metadata":{},"spec":{"c":"y"},"f":"x"}`},
		"the image of a move": {"{x-kubernetes-int-or-string: true}", "f: {type: string}", label + ", {move: {from: .f, to: .spec.f}}",
			`{"apiVersion":"example.com/v1","kind":"Widget","metadata":{},"spec":{"c":"y"},"f":"x"}`},
	} {
		t.Run(name, func(t *testing.T) {
			c := converterOf(t, between(t, "f: "+test.f+", spec: {type: object, properties: {c: {type: string}}}",
				"spec: {type: object, properties: {"+test.inSpec+"}}", test.rules))
			if got := convert(t, c, object, "v1"); !sameJSON(t, test.want, got) {
				t.Errorf("got %s, want %s", got, test.want)
			}
		})
	}
}
