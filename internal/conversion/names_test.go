// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package conversion_test

import "testing"

// TestMovedObject moves an object to another name, with rules for fields in it, and fields that only one
// version has.
func TestMovedObject(t *testing.T) {
	c := converterOf(t, between(t,
		"server: {type: object, properties: {host: {type: string}, port: {type: integer}, level: {type: string}, old: {type: string}, same: {type: string}}}, top: {type: string}",
		"listener: {type: object, properties: {address: {type: string}, port: {type: string}, same: {type: string}, new: {type: string}, top: {type: string}}}, level: {type: string}",
		`{move: {from: .server, to: .listener}}, {move: {from: .server.host, to: .listener.address}}, {cast: {from: .server.port, to: .listener.port, as: Integer}},
		 {move: {from: .server.level, to: .level}}, {move: {from: .top, to: .listener.top}}`))
	for name, test := range map[string]roundTripTest{
		"all":                    {"v1", `"server":{"host":"h","port":80,"same":"s"}`, named("v2", "", `"listener":{"same":"s","address":"h","port":"80"}`)},
		"back":                   {"v2", `"listener":{"same":"s","address":"h","port":"80"}`, named("v1", "", `"server":{"same":"s","host":"h","port":80}`)},
		"absent":                 {"v1", ``, named("v2", "", ``)},
		"empty":                  {"v1", `"server":{}`, named("v2", "", `"listener":{}`)},
		"null":                   {"v1", `"server":null`, named("v2", "", `"listener":null`)},
		"only a preserved field": {"v1", `"server":{"old":"1"}`, named("v2", `v1 {"/server/old":"1"}`, `"listener":{}`)},
		"preserved back":         {"v2", `"listener":{"new":"1","same":"s"}`, named("v1", `v2 {"/listener/new":"1"}`, `"server":{"same":"s"}`)},
		"a value without image":  {"v2", `"listener":{"port":"http"}`, named("v1", `v2 {"/listener/port":"http"}`, `"server":{}`)},
		"moved out":              {"v1", `"server":{"level":"l"}`, named("v2", "", `"level":"l"`)},
		"moved out, with others": {"v1", `"server":{"level":"l","same":"s"}`, named("v2", "", `"listener":{"same":"s"},"level":"l"`)},
		"moved in":               {"v1", `"top":"t"`, named("v2", "", `"listener":{"top":"t"}`)},
		"moved in, beside":       {"v1", `"server":{},"top":"t"`, named("v2", `v1 {"/server":{}}`, `"listener":{"top":"t"}`)},
		"a large number":         {"v1", `"server":{"port":9007199254740993}`, named("v2", "", `"listener":{"port":"9007199254740993"}`)},
		"escaped":                {"v1", `"s\u0065rver":{"same":"s"}`, named("v2", "", `"listener":{"same":"s"}`)},
	} {
		t.Run(name, func(t *testing.T) { test.check(t, c) })
	}
}

// TestMovedList moves lists with keys to other names, one in the elements of the other, whose key has
// another name too.
func TestMovedList(t *testing.T) {
	c := converterOf(t, between(t,
		`ports: {type: array, x-kubernetes-list-type: map, x-kubernetes-list-map-keys: [label], items: {type: object, properties: {
		   label: {type: string}, number: {type: integer}, old: {type: string},
		   backends: {type: array, items: {type: object, properties: {host: {type: string}, weight: {type: integer}, old: {type: string}}}}}}}`,
		`listeners: {type: array, x-kubernetes-list-type: map, x-kubernetes-list-map-keys: [title], items: {type: object, properties: {
		   title: {type: string}, port: {type: integer}, new: {type: string},
		   targets: {type: array, items: {type: object, properties: {address: {type: string}, weight: {type: integer}}}}}}}`,
		`{move: {from: .ports, to: .listeners}}, {move: {from: ".ports[*].label", to: ".listeners[*].title"}}, {move: {from: ".ports[*].number", to: ".listeners[*].port"}},
		 {move: {from: ".ports[*].backends", to: ".listeners[*].targets"}}, {move: {from: ".ports[*].backends[*].host", to: ".listeners[*].targets[*].address"}}`))
	for name, test := range map[string]roundTripTest{
		"elements": {"v1", `"ports":[{"label":"a","number":1},{"label":"b","number":2}]`, named("v2", "", `"listeners":[{"title":"a","port":1},{"title":"b","port":2}]`)},
		"absent":   {"v1", ``, named("v2", "", ``)},
		"empty":    {"v1", `"ports":[]`, named("v2", "", `"listeners":[]`)},
		"null":     {"v1", `"ports":null`, named("v2", "", `"listeners":null`)},
		"preserved": {"v1", `"ports":[{"label":"a"},{"label":"b","old":"o"}]`,
			named("v2", `v1 {"/ports/[label=\"b\"]/old":"o"}`, `"listeners":[{"title":"a"},{"title":"b"}]`)},
		"preserved back": {"v2", `"listeners":[{"title":"b","new":"n"}]`,
			named("v1", `v2 {"/listeners/[title=\"b\"]/new":"n"}`, `"ports":[{"label":"b"}]`)},
		"a list in it": {"v1", `"ports":[{"label":"a","backends":[{"host":"h","weight":1}]}]`,
			named("v2", "", `"listeners":[{"title":"a","targets":[{"weight":1,"address":"h"}]}]`)},
		"preserved in it": {"v1", `"ports":[{"label":"a","backends":[{"host":"h","old":"o"}]}]`,
			named("v2", `v1 {"/ports/[label=\"a\"]/backends/0":{"host":"h","old":"o"},"@/ports/[label=\"a\"]/backends/0":`+digest(`{"address":"h"}`)+`}`, `"listeners":[{"title":"a","targets":[{"address":"h"}]}]`)},
	} {
		t.Run(name, func(t *testing.T) { test.check(t, c) })
	}
	t.Run("edited", func(t *testing.T) {
		edited := annotated("v2", `v1 {"/ports/[label=\"b\"]/old":"o","/ports/[label=\"c\"]/old":"gone"}`, `"listeners":[{"title":"d"},{"title":"b","port":3},{"title":"a"}]`)
		want := widget("v1", `"ports":[{"label":"d"},{"label":"b","number":3,"old":"o"},{"label":"a"}]`)
		if got := convert(t, c, edited, "v1"); !sameJSON(t, got, want) {
			t.Errorf("got %s, want %s", got, want)
		}
	})
}
