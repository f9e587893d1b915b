// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package conversion_test

import (
	"testing"

	"github.com/conversion-operator/conversion-operator/internal/engine/conversion"
	"github.com/conversion-operator/conversion-operator/internal/test/expect"
)

// TestLiveDataOfAnotherShape has live data at v2 that v1 cannot have, and a value for the same
// field of v1 that was preserved by earlier rules. The value must not be restored while the live
// data exists, because the live data would be lost on the way back.
func TestLiveDataOfAnotherShape(t *testing.T) {
	const (
		text     = "{type: string}"
		anything = "{x-kubernetes-preserve-unknown-fields: true}"
		object   = "o: {type: object, properties: {c: "
		list     = "l: {type: array, items: {type: object, properties: {name: {type: string}, c: "
		keyed    = "l: {type: array, x-kubernetes-list-type: map, x-kubernetes-list-map-keys: [name], items: {type: object, required: [name], properties: {name: {type: string}, c: "
		cast     = "{cast: {from: .o.c, to: .d, as: Integer}}"
	)
	for name, test := range map[string]struct {
		v1, v2, rules string
		// preserved is of v1. It is at v2 with live, and carried is at v1 with at.
		preserved, live, carried, at string
	}{
		"a field of another type": {
			v1: "c: " + text, v2: "c: " + anything,
			preserved: `{"/c":"stale"}`, live: `"c":false`, carried: `{"/c":"stale"}`,
		},
		"a null": {
			v1: "c: " + text, v2: "c: {type: string, nullable: true}",
			preserved: `{"/c":"stale"}`, live: `"c":null`, carried: `{"/c":"stale"}`,
		},
		"a field of an object": {
			v1: object + text + "}}", v2: object + anything + "}}",
			preserved: `{"/o":{"c":"stale"}}`, live: `"o":{"c":false}`, carried: `{"/o/c":"stale"}`, at: `"o":{}`,
		},
		"an element that has keys now": {
			v1: keyed + text + "}}}", v2: keyed + anything + "}}}",
			preserved: `{"/l/1":{"name":"a","c":"stale"},"@/l/1":` + digest(`{"name":"a"}`) + `}`, live: `"l":[{"name":"a","c":false}]`,
			carried: `{"/l/1/c":"stale","@/l/1/c":` + digest(`{"name":"a"}`) + `}`, at: `"l":[{"name":"a"}]`,
		},
		"an element without keys": {
			v1: list + text + "}}}", v2: list + anything + "}}}",
			preserved: `{"/l/1":{"name":"a","c":"stale"},"@/l/1":` + digest(`{"c":false,"name":"a"}`) + `}`, live: `"l":[{"name":"a","c":false}]`,
			carried: `{"/l/0/c":"stale","@/l/0/c":` + digest(`{"c":false,"name":"a"}`) + `}`, at: `"l":[{"name":"a"}]`,
		},
		"a field of a rule, in an object that is not there": {
			v1: object + "{type: integer}}}", v2: "d: {type: string}", rules: cast,
			preserved: `{"/o":{"c":7}}`, live: `"d":"seven"`, carried: `{"/o":{"c":7}}`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			c := converterOf(t, between(t, test.v1, test.v2, test.rules))
			there := convert(t, c, named("v2", "v1 "+test.preserved, test.live), "v1")
			object := decode(t, there)
			annotations := annotationsOf(object)
			ofLive := conversion.AnnotationName("widgets.example.com", "v2")
			if annotations[ofLive] == nil {
				t.Fatalf("the live data is not preserved: %s", there)
			}
			delete(annotations, ofLive)
			expect.Equal(t, "at v1", decode(t, named("v1", "v1 "+test.carried, test.at)), object)
			wantConverted(t, c, there, "v2", named("v2", "v1 "+test.carried, test.live))
		})
	}
}
