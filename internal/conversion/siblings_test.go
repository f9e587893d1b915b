// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package conversion

import (
	"testing"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
)

// TestSiblings has a field that two spokes share and the hub lacks: it is one field.
func TestSiblings(t *testing.T) {
	list := "a: {type: string}, l: {type: array, x-kubernetes-list-type: map, x-kubernetes-list-map-keys: [name], items: {type: object, properties: {name: {type: string}"
	own, hub := list+", own: {type: string}}}}, own: {type: string}", list+"}}}"
	c := converterOf(t, Compile(widgets(t, map[string]string{"v1": own, "v2": hub, "v3": own}),
		from[v1alpha1.DeclarativeConverter](t, "{hub: v2, spokes: [{version: v1}, {version: v3}]}")))
	for name, steps := range map[string][]string{
		"read directly":     {widget("v1", `"own":"1"`), widget("v3", `"own":"1"`)},
		"read from the hub": {widget("v1", `"own":"1"`), annotated("v2", `v1 {"/own":"1"}`, ""), widget("v3", `"own":"1"`), widget("v1", `"own":"1"`)},
		"in an element":     {widget("v3", `"l":[{"name":"x","own":"1"}]`), annotated("v2", `v3 {"/l/[name=\"x\"]/own":"1"}`, `"l":[{"name":"x"}]`), widget("v1", `"l":[{"name":"x","own":"1"}]`)},
		"written elsewhere since": {annotated("v3", `v1 {"/own":"old"}`, `"own":"new"`), annotated("v2", `v3 {"/own":"new"}`, ""),
			widget("v1", `"own":"new"`)},
	} {
		t.Run(name, func(t *testing.T) {
			for i, want := range steps[1:] {
				version := decode(t, want)["apiVersion"].(string)[len("example.com/"):]
				if got := convert(t, c, steps[i], version); !sameJSON(t, want, got) {
					t.Fatalf("%s is at %s\n%s, want\n%s", steps[i], version, got, want)
				}
			}
		})
	}
}
