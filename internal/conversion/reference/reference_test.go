// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package reference

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

// policy has a rule of each sort, as conversion.Plan.Marshal writes it: a move, a
// table, a list without an order, and a field that only the spoke has.
const policy = `{"format": 2, "crd": "widgets.example.com", "group": "example.com", "kind": "Widget", "hub": "v2", "versions": ["v1", "v2"],
	"spokes": [{"version": "v1", "root": {
		"moves": [{"spoke": ["a"], "hub": ["b"]}],
		"exchanges": [
			{"spoke": [{"path": ["p"]}], "hub": [{"path": ["p"]}], "table": [["Never", "Serial"], ["Forbid", "Serial"]]},
			{"spoke": [{"path": ["l"]}], "hub": [{"path": ["m"]}], "index": {"key": "name"}}],
		"onlySpoke": [{"path": ["o", "own"], "anchor": 1}]}}]}`

// TestConvert has the law in small: what is kept, and what becomes of it.
func TestConvert(t *testing.T) {
	c, err := New([]byte(policy))
	if err != nil {
		t.Fatal(err)
	}
	widget := func(version, kept, fields string) string {
		metadata := `{}`
		if kept != "" {
			metadata = `{"annotations":{"conversion-operator.io/v1":` + marshal(kept) + `}}`
		}
		return `{"apiVersion":"example.com/` + version + `","kind":"Widget","metadata":` + metadata + fields + `}`
	}
	for name, test := range map[string]struct{ object, to, want string }{
		"a move":                        {widget("v1", "", `,"a":1`), "v2", widget("v2", "", `,"b":1`)},
		"what would not come back":      {widget("v1", "", `,"p":"Forbid"`), "v2", widget("v2", `{"/p":"Forbid"}`, `,"p":"Serial"`)},
		"what comes back by itself":     {widget("v1", "", `,"p":"Never"`), "v2", widget("v2", "", `,"p":"Serial"`)},
		"restored":                      {widget("v2", `{"/p":"Forbid"}`, `,"p":"Serial"`), "v1", widget("v1", "", `,"p":"Forbid"`)},
		"an edit wins":                  {widget("v2", `{"/p":"Forbid"}`, `,"p":"Parallel"`), "v1", widget("v1", "", `,"p":"Parallel"`)},
		"what the hub lacks":            {widget("v1", "", `,"o":{"own":1}`), "v2", widget("v2", `{"/o/own":1}`, `,"o":{}`)},
		"in its place":                  {widget("v2", `{"/o/own":1}`, `,"o":{}`), "v1", widget("v1", "", `,"o":{"own":1}`)},
		"its place is gone":             {widget("v2", `{"/o/own":1}`, ``), "v1", widget("v1", "", ``)},
		"an order":                      {widget("v1", "", `,"l":[{"name":"b"},{"name":"a"}]`), "v2", widget("v2", `{"/l":{"order":["b","a"]}}`, `,"m":{"a":{},"b":{}}`)},
		"an order, and a new element":   {widget("v2", `{"/l":{"order":["b","a"]}}`, `,"m":{"a":{},"b":{},"c":{}}`), "v1", widget("v1", "", `,"l":[{"name":"b"},{"name":"a"},{"name":"c"}]`)},
		"what is no list of such":       {widget("v1", "", `,"l":[{}]`), "v2", widget("v2", `{"/l":[{}]}`, ``)},
		"a place that no rule has":      {widget("v2", `{"/a":7,"/kind":"x"}`, ``), "v1", widget("v1", "", ``)},
		"the same version, and no more": {widget("v1", `{"/a":7}`, ``), "v1", widget("v1", `{"/a":7}`, ``)},
	} {
		t.Run(name, func(t *testing.T) {
			object, err := Decode([]byte(test.object))
			if err != nil {
				t.Fatal(err)
			}
			want, err := Decode([]byte(test.want))
			if err != nil {
				t.Fatal(err)
			}
			got, err := c.Convert(object, test.to)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestNewRefuses(t *testing.T) {
	if _, err := New([]byte(`{"spokes":[{"root":{"unheardOf":[]}}]}`)); err == nil {
		t.Error("a plan that says more than the reference knows is not refused")
	}
}
