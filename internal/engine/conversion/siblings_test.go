// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package conversion_test

import (
	"maps"
	"testing"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
	"github.com/conversion-operator/conversion-operator/internal/engine/conversion"
	"github.com/conversion-operator/conversion-operator/internal/engine/conversion/compile"
	"github.com/conversion-operator/conversion-operator/internal/test/expect"
)

// TestSiblings has a field that two spokes share and the hub lacks: it is one field.
func TestSiblings(t *testing.T) {
	list := "a: {type: string}, l: {type: array, x-kubernetes-list-type: map, x-kubernetes-list-map-keys: [name], items: {type: object, properties: {name: {type: string}"
	own, hub := list+", own: {type: string}}}}, own: {type: string}", list+"}}}"
	c := converterOf(t, compile.Compile(widgets(t, map[string]string{"v1": own, "v2": hub, "v3": own}),
		from[v1alpha1.DeclarativeConverter](t, "{hub: v2, spokes: [{version: v1}, {version: v3}]}")))
	for name, steps := range map[string][]string{
		"read directly":     {widget("v1", `"own":"1"`), widget("v3", `"own":"1"`)},
		"read from the hub": {widget("v1", `"own":"1"`), annotated("v2", `v1 {"/own":"1"}`, ""), widget("v3", `"own":"1"`), widget("v1", `"own":"1"`)},
		"in an element":     {widget("v3", `"l":[{"name":"x","own":"1"}]`), annotated("v2", `v3 {"/l/[name=\"x\"]/own":"1"}`, `"l":[{"name":"x"}]`), widget("v1", `"l":[{"name":"x","own":"1"}]`)},
		"written elsewhere since": {annotated("v3", `v1 {"/own":"old"}`, `"own":"new"`), annotated("v2", `v3 {"/own":"new"}`, ""),
			widget("v1", `"own":"new"`)},
	} {
		t.Run(name, func(t *testing.T) { wantSteps(t, c, steps) })
	}
}

// wantSteps converts each object to the next one.
func wantSteps(t *testing.T, c *conversion.Converter, steps []string) {
	t.Helper()
	for i, want := range steps[1:] {
		version := decode(t, want)["apiVersion"].(string)[len("example.com/"):]
		wantConverted(t, c, steps[i], version, want)
	}
}

// TestPreservedMovesToSibling: preserved data of a removed version moves to a version with the
// same field, unless that one holds a value already.
func TestPreservedMovesToSibling(t *testing.T) {
	const fields, hub = "own: {type: string}, only: {type: string}", "b: {type: string}"
	c := converterOf(t, compile.Compile(widgets(t, map[string]string{"v1": fields, "v2": hub, "v3": "own: {type: string}", "v4": "own: {type: string}"}),
		from[v1alpha1.DeclarativeConverter](t, "{hub: v2, spokes: [{version: v1}, {version: v3}, {version: v4}]}")))
	name := func(version string) string { return conversion.AnnotationName("widgets.example.com", version) }
	const going = `{"format":3,"rules":"","hidden":{"/only":"1","/own":"2"}}`
	for what, test := range map[string]struct {
		others map[string]string
		want   map[string]string
	}{
		"nothing is there": {nil, map[string]string{name("v3"): `{"format":3,"rules":"","hidden":{"/own":"2"}}`}},
		"something else":   {map[string]string{name("v3"): `{"format":3,"rules":"","hidden":{"/x":1}}`}, map[string]string{name("v3"): `{"format":3,"rules":"","hidden":{"/own":"2","/x":1}}`}},
		"its own":          {map[string]string{name("v3"): `{"format":3,"rules":"","hidden":{"/own":"3"}}`}, map[string]string{}},
		"that of a third":  {map[string]string{name("v4"): `{"format":3,"rules":"","hidden":{"/own":"4"}}`}, map[string]string{}},
		"text":             {map[string]string{name("v3"): "text"}, map[string]string{name("v3"): `{"format":3,"rules":"","hidden":{"/own":"2"},"unreadable":"text"}`}},
	} {
		t.Run(what, func(t *testing.T) {
			annotations := map[string]string{name("v1"): going}
			maps.Copy(annotations, test.others)
			changes, err := c.WithoutPreserved(annotations, "v1", []string{".own", ".only"})
			expect.NoError(t, err)
			got := map[string]string{}
			for name, value := range changes {
				got[name] = "(removed)"
				if value != nil {
					got[name] = *value
				}
			}
			test.want[name("v1")] = "(removed)"
			expect.Equal(t, "changes", test.want, got)
		})
	}
}
