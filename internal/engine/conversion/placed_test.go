// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package conversion_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/conversion-operator/conversion-operator/internal/test/expect"
)

// TestPlacedList moves a list to another object, with rules for fields in its elements, whose key and a
// list in them get other names.
func TestPlacedList(t *testing.T) {
	c := converterOf(t, between(t,
		`ports: {type: array, x-kubernetes-list-type: map, x-kubernetes-list-map-keys: [label], items: {type: object, properties: {
		   label: {type: string}, number: {type: integer}, old: {type: string}, nested: {type: object, properties: {old: {type: string}, same: {type: string}}},
		   backends: {type: array, items: {type: object, properties: {host: {type: string}, weight: {type: integer}, old: {type: string}}}}}}}`,
		`net: {type: object, properties: {mode: {type: string}, listeners: {type: array, x-kubernetes-list-type: map, x-kubernetes-list-map-keys: [title], items: {type: object, properties: {
		   title: {type: string}, port: {type: string}, new: {type: string}, nested: {type: object, properties: {same: {type: string}}},
		   targets: {type: array, items: {type: object, properties: {address: {type: string}, weight: {type: integer}}}}}}}}}`,
		`{move: {from: .ports, to: .net.listeners}}, {move: {from: ".ports[*].label", to: ".net.listeners[*].title"}}, {cast: {from: ".ports[*].number", to: ".net.listeners[*].port", as: Integer}},
		 {move: {from: ".ports[*].backends", to: ".net.listeners[*].targets"}}, {move: {from: ".ports[*].backends[*].host", to: ".net.listeners[*].targets[*].address"}}`))
	roundTrips{
		"elements":     {"v1", `"ports":[{"label":"a","number":1},{"label":"b","number":2}]`, named("v2", "", `"net":{"listeners":[{"title":"a","port":"1"},{"title":"b","port":"2"}]}`)},
		"absent":       {"v1", ``, named("v2", "", ``)},
		"empty":        {"v1", `"ports":[]`, named("v2", "", `"net":{"listeners":[]}`)},
		"null":         {"v1", `"ports":null`, named("v2", "", `"net":{"listeners":null}`)},
		"empty object": {"v2", `"net":{}`, named("v1", `v2 {"/net":{}}`, ``)},
		"beside":       {"v2", `"net":{"mode":"m","listeners":[{"title":"a"}]}`, named("v1", `v2 {"/net/mode":"m"}`, `"ports":[{"label":"a"}]`)},
		"preserved": {"v1", `"ports":[{"label":"a"},{"label":"b","old":"o"}]`,
			named("v2", `v1 {"/ports/[label=\"b\"]/old":"o"}`, `"net":{"listeners":[{"title":"a"},{"title":"b"}]}`)},
		"preserved back": {"v2", `"net":{"listeners":[{"title":"b","new":"n"}]}`,
			named("v1", `v2 {"/net/listeners/[title=\"b\"]/new":"n"}`, `"ports":[{"label":"b"}]`)},
		"preserved in it": {"v1", `"ports":[{"label":"a","backends":[{"host":"h","old":"o"}]}]`,
			named("v2", `v1 {"/ports/[label=\"a\"]/backends/0":{"host":"h","old":"o"},"@/ports/[label=\"a\"]/backends/0":`+digest(`{"address":"h"}`)+`}`, `"net":{"listeners":[{"title":"a","targets":[{"address":"h"}]}]}`)},
		"no integer": {"v2", `"net":{"listeners":[{"title":"b","port":"http"}]}`,
			named("v1", `v2 {"/net/listeners/[title=\"b\"]/port":"http"}`, `"ports":[{"label":"b"}]`)},
	}.check(t, c)
	t.Run("edited", func(t *testing.T) {
		edited := annotated("v2", `v1 {"/ports/[label=\"b\"]/old":"o","/ports/[label=\"c\"]/old":"gone"}`, `"net":{"listeners":[{"title":"d"},{"title":"b","port":"3"},{"title":"a"}]}`)
		want := widget("v1", `"ports":[{"label":"d"},{"label":"b","number":3,"old":"o"},{"label":"a"}]`)
		wantConverted(t, c, edited, "v1", want)
	})
}

// TestPlacedObject moves an object to another object, with rules for fields in it.
func TestPlacedObject(t *testing.T) {
	c := converterOf(t, between(t,
		"server: {type: object, properties: {host: {type: string}, port: {type: integer}, old: {type: string}, same: {type: string}, tls: {type: object, properties: {on: {type: boolean}, old: {type: string}}}}}, listeners: {type: string}",
		`net: {type: object, properties: {mode: {type: string}, listener: {type: object, properties: {address: {type: string}, port: {type: string}, same: {type: string}, new: {type: string}, level: {type: string},
		   tls: {type: object, properties: {on: {type: boolean}}}}}}}`,
		`{move: {from: .server, to: .net.listener}}, {move: {from: .server.host, to: .net.listener.address}}, {cast: {from: .server.port, to: .net.listener.port, as: Integer}}, {default: {to: .net.listener.level, value: low}}`))
	roundTrips{
		"all":                       {"v1", `"server":{"host":"h","port":80,"same":"s"}`, named("v2", "", `"net":{"listener":{"same":"s","address":"h","port":"80","level":"low"}}`)},
		"absent":                    {"v1", ``, named("v2", "", ``)},
		"empty":                     {"v1", `"server":{}`, named("v2", "", `"net":{"listener":{"level":"low"}}`)},
		"empty without the default": {"v2", `"net":{"listener":{}}`, named("v1", `v2 {"!/net/listener/level":true}`, `"server":{}`)},
		"null":                      {"v1", `"server":null`, named("v2", "", `"net":{"listener":null}`)},
		"only the object around":    {"v2", `"net":{}`, named("v1", `v2 {"/net":{}}`, ``)},
		"a field beside it":         {"v2", `"net":{"mode":"m","listener":{"level":"low"}}`, named("v1", `v2 {"/net/mode":"m"}`, `"server":{}`)},
		"a field beside none":       {"v2", `"net":{"mode":"m"}`, named("v1", `v2 {"/net/mode":"m"}`, ``)},
		"preserved":                 {"v1", `"server":{"old":"1","tls":{"old":"2","on":true}}`, named("v2", `v1 {"/server/old":"1","/server/tls/old":"2"}`, `"net":{"listener":{"tls":{"on":true},"level":"low"}}`)},
		"preserved back":            {"v2", `"net":{"listener":{"new":"1","level":"low"}}`, named("v1", `v2 {"/net/listener/new":"1"}`, `"server":{}`)},
		"a value without image":     {"v2", `"net":{"listener":{"port":"http","level":"low"}}`, named("v1", `v2 {"/net/listener/port":"http"}`, `"server":{}`)},
		"another default":           {"v2", `"net":{"listener":{"level":"high"}}`, named("v1", `v2 {"/net/listener/level":"high"}`, `"server":{}`)},
	}.check(t, c)
	t.Run("removed", func(t *testing.T) {
		want := widget("v1", ``)
		if got := convert(t, c, annotated("v2", `v1 {"/server/old":"1"}`, `"net":{"mode":"m"}`), "v1"); !strings.Contains(got, `mode`) || strings.Contains(got, "old") {
			t.Errorf("got %s, want %s with the mode preserved", got, want)
		}
	})
	t.Run("a null of server-side apply", func(t *testing.T) {
		wantAnyPreserved(t, "at v1", widget("v1", `"server":{"old":"1"}`), convert(t, c, annotated("v2", `v1 {"/server/old":"1"}`, `"net":{"listener":null}`), "v1"))
	})
	t.Run("no object", func(t *testing.T) {
		for _, value := range []string{`"text"`, `[]`, `[{"host":"h"}]`, `7`} {
			there := convert(t, c, named("v1", "", `"server":`+value), "v2")
			wantConverted(t, c, there, "v1", named("v1", "", `"server":`+value))
		}
	})
}

// TestPlacedAround moves an object while a list in it, or in the object where it goes, keeps its path.
func TestPlacedAround(t *testing.T) {
	c := converterOf(t, between(t,
		"spec: {type: object, properties: {port: {type: integer}, mode: {type: string}, net: {type: object, properties: {ip: {type: string}}}}}",
		"spec: {type: object, properties: {port: {type: array, items: {type: integer}}, net: {type: object, properties: {mode: {type: string}, net: {type: object, properties: {ip: {type: string}}}}}}}",
		`{move: {from: .spec, to: .spec.net}}, {each: {from: .spec.port, to: .spec.port}}`))
	roundTrips{
		"both":          {"v1", `"spec":{"port":80,"mode":"m"}`, named("v2", "", `"spec":{"net":{"mode":"m"},"port":[80]}`)},
		"back":          {"v2", `"spec":{"port":[80],"net":{"net":{"ip":"i"}}}`, named("v1", "", `"spec":{"net":{"ip":"i"},"port":80}`)},
		"more than one": {"v2", `"spec":{"port":[80,90],"net":{}}`, named("v1", `v2 {"/spec/port/1":90}`, `"spec":{"port":80}`)},
	}.check(t, c)
}

// TestPlacedOutOfPlaced moves an object out of one that moves, in an object that moves.
func TestPlacedOutOfPlaced(t *testing.T) {
	c := converterOf(t, between(t,
		"a: {type: string}, b: {type: object, properties: {a: {type: object, properties: {f: {type: integer}}}, d: {type: object, properties: {g: {type: string}, e: {type: object, properties: {h: {type: string}}}}}}}",
		"a: {type: integer}, spec: {type: object, properties: {c: {type: object, properties: {g: {type: string}}}, e: {type: object, properties: {h: {type: string}, e: {type: object, properties: {i: {type: integer}}}}}}}",
		`{move: {from: .b, to: .spec}}, {move: {from: .b.d, to: .spec.c}}, {move: {from: .b.d.e, to: .spec.e}}, {move: {from: .b.a, to: .spec.e.e}}, {move: {from: .b.a.f, to: .spec.e.e.i}}`))
	roundTrips{
		"all":    {"v1", `"b":{"a":{"f":1},"d":{"g":"2","e":{"h":"3"}}}`, named("v2", "", `"spec":{"c":{"g":"2"},"e":{"h":"3","e":{"i":1}}}`)},
		"back":   {"v2", `"spec":{"e":{"e":{"i":1}}}`, named("v1", "", `"b":{"a":{"f":1}}`)},
		"beside": {"v1", `"a":"x","b":{"a":{"f":1}}`, named("v2", `v1 {"/a":"x"}`, `"spec":{"e":{"e":{"i":1}}}`)},
	}.check(t, c)
}

// TestPlacedInElements moves a map and an object to other objects of the elements of a list, whose key has
// another name.
func TestPlacedInElements(t *testing.T) {
	c := converterOf(t, between(t,
		`spec: {type: object, properties: {pools: {type: array, x-kubernetes-list-type: map, x-kubernetes-list-map-keys: [id], items: {type: object, required: [id], properties: {
		   id: {type: string}, taints: {type: object, additionalProperties: {type: object, properties: {effect: {type: string}, old: {type: string}}}}, check: {type: object, properties: {timeout: {type: string}, old: {type: string}}}}}}}}`,
		`spec: {type: object, properties: {pools: {type: array, x-kubernetes-list-type: map, x-kubernetes-list-map-keys: [name], items: {type: object, required: [name], properties: {
		   name: {type: string}, node: {type: object, properties: {marks: {type: object, additionalProperties: {type: object, properties: {action: {type: string}}}}, health: {type: object, properties: {check: {type: object, properties: {timeoutSeconds: {type: integer}}}}}}}}}}}}`,
		`{move: {from: ".spec.pools[*].id", to: ".spec.pools[*].name"}},
		 {move: {from: ".spec.pools[*].taints", to: ".spec.pools[*].node.marks"}}, {move: {from: ".spec.pools[*].taints[*].effect", to: ".spec.pools[*].node.marks[*].action"}},
		 {move: {from: ".spec.pools[*].check", to: ".spec.pools[*].node.health.check"}}, {cast: {from: ".spec.pools[*].check.timeout", to: ".spec.pools[*].node.health.check.timeoutSeconds", as: Seconds}}`))
	roundTrips{
		"all": {"v1", `"spec":{"pools":[{"id":"a","taints":{"x":{"effect":"e"}},"check":{"timeout":"1m0s"}},{"id":"b"}]}`,
			named("v2", "", `"spec":{"pools":[{"name":"a","node":{"marks":{"x":{"action":"e"}},"health":{"check":{"timeoutSeconds":60}}}},{"name":"b"}]}`)},
		"preserved": {"v1", `"spec":{"pools":[{"id":"a","taints":{"x/y":{"old":"1"}},"check":{"timeout":"60s","old":"2"}}]}`,
			named("v2", `v1 {"/spec/pools/[id=\"a\"]/check/old":"2","/spec/pools/[id=\"a\"]/check/timeout":"60s","/spec/pools/[id=\"a\"]/taints/x~1y/old":"1","@/spec/pools/[id=\"a\"]/check/timeout":["/timeoutSeconds"]}`,
				`"spec":{"pools":[{"name":"a","node":{"marks":{"x/y":{}},"health":{"check":{"timeoutSeconds":60}}}}]}`)},
		"empty around": {"v2", `"spec":{"pools":[{"name":"a","node":{"health":{}}}]}`, named("v1", `v2 {"/spec/pools/[name=\"a\"]/node/health":{}}`, `"spec":{"pools":[{"id":"a"}]}`)},
	}.check(t, c)
}

// TestPlacedSwapped moves two lists to each other's place, with rules for fields in both.
func TestPlacedSwapped(t *testing.T) {
	const list = "{type: array, items: {type: object, properties: {%s: {type: string}, own%s: {type: string}}}}"
	c := converterOf(t, between(t,
		"a: {type: object, properties: {l: "+fmt.Sprintf(list, "x", "1")+"}}, b: {type: object, properties: {m: "+fmt.Sprintf(list, "z", "2")+"}}",
		"a: {type: object, properties: {l: "+fmt.Sprintf(list, "zz", "3")+"}}, b: {type: object, properties: {m: "+fmt.Sprintf(list, "xx", "4")+"}}",
		`{move: {from: .a.l, to: .b.m}}, {move: {from: ".a.l[*].x", to: ".b.m[*].xx"}}, {move: {from: .b.m, to: .a.l}}, {move: {from: ".b.m[*].z", to: ".a.l[*].zz"}}`))
	roundTrips{
		"both":                     {"v1", `"a":{"l":[{"x":"1"}]},"b":{"m":[{"z":"2"}]}`, named("v2", "", `"a":{"l":[{"zz":"2"}]},"b":{"m":[{"xx":"1"}]}`)},
		"one":                      {"v1", `"a":{"l":[{"x":"1"}]}`, named("v2", "", `"b":{"m":[{"xx":"1"}]}`)},
		"one, and an empty object": {"v1", `"a":{"l":[{"x":"1"}]},"b":{}`, named("v2", `v1 {"/b":{}}`, `"b":{"m":[{"xx":"1"}]}`)},
		"preserved": {"v1", `"a":{"l":[{"x":"1","own1":"o"}]}`,
			named("v2", `v1 {"/a/l/0":{"x":"1","own1":"o"},"@/a/l/0":`+digest(`{"xx":"1"}`)+`}`, `"b":{"m":[{"xx":"1"}]}`)},
	}.check(t, c)
}

// TestPlacedRefused has moves to another object, with rules for fields in the value, that do not compile.
func TestPlacedRefused(t *testing.T) {
	const port = "{type: object, properties: {label: {type: string}, num: {type: integer}}}"
	const title = "{type: object, properties: {title: {type: string}, num: {type: integer}}}"
	const lists = "lists: {type: object, additionalProperties: {type: array, items: {type: object, properties: "
	const v1 = lists + "{old: {type: array, items: {type: string}}}}}}, ports: {type: array, items: " + port + "}, maybe: {type: array, nullable: true, items: " + port + "}, server: {type: object, properties: {a: {type: string}, b: {type: string}}}, m: {type: object, additionalProperties: " + port + "}, " +
		"status: {type: object, properties: {a: {type: string}}}, odd: {type: object, properties: {.x: {type: string}, ports: {type: array, items: " + port + "}}}, outer: {type: array, items: {type: object, properties: {ports: {type: array, items: " + port + "}}}}"
	const v2 = lists + "{new: {type: array, items: {type: string}}}}}}, net: {type: object, properties: {listeners: {type: array, items: " + title + "}, listener: {type: object, properties: {a: {type: string}, c: {type: string}}}, one: " + title + "}}, s: {type: string}, state: {type: object, properties: {now: {type: object, properties: {z: {type: string}}}}}, " +
		"outer: {type: array, items: {type: object, properties: {deep: {type: object, properties: {listeners: {type: array, items: " + title + "}}}}}}"
	for name, test := range map[string]refusal{
		"out of elements":     {`{move: {from: ".outer[*].ports", to: .net.listeners}}, {move: {from: ".outer[*].ports[*].label", to: ".net.listeners[*].title"}}`, "rules[0].move.to", "they are not in elements of the same lists and maps"},
		"twice to one place":  {`{move: {from: .ports, to: .net.listeners}}, {move: {from: ".ports[*].label", to: ".net.listeners[*].title"}}, {move: {from: .odd.ports, to: .net.listeners}}`, "rules[2].move.to", ".net.listeners already belongs to"},
		"one key of a map":    {`{move: {from: '.m["k"]', to: .net.one}}, {move: {from: '.m["k"].label', to: .net.one.title}}`, "rules[0].move.to", "a rule for one key of a map moves all of its value"},
		"the status":          {`{move: {from: .status, to: .state.now}}, {move: {from: .status.a, to: .state.now.z}}`, "rules[0].move.to", ".status has the same name in every version"},
		"the list again":      {`{move: {from: .ports, to: .net.listeners}}, {move: {from: ".ports[*].label", to: ".net.listeners[*].title"}}, {drop: {from: .ports}}`, "rules[2].drop.from", ".ports already belongs to"},
		"a misspelled field":  {`{move: {from: .ports, to: .net.listeners}}, {drop: {to: ".net.listeners[*].tilte"}}`, "rules[1].drop.to", "version v2: .net.listeners[*] has no field tilte"},
		"one element":         {`{move: {from: .ports, to: .net.listeners}}, {cast: {from: ".ports[*].label", to: ".net.listeners[*].num", as: Integer}}, {cast: {from: ".ports[*].label", to: ".net.listeners[*].num", as: Integer}}`, "rules[2].cast.from", ".ports[*].label already belongs to"},
		"in a key of a map":   {`{each: {from: ".lists.k[*].old", to: ".lists.k[*].new"}}`, "rules[0].each.from", "names one element of .lists, whose elements differ between the versions"},
		"no move in elements": {`{move: {from: ".outer[*].ports[*].label", to: ".outer[*].deep.listeners[*].title"}}`, "rules[0].move.to", "add a move of .outer[*].ports to .outer[*].deep.listeners"},
	} {
		t.Run(name, func(t *testing.T) { test.check(t, v1, v2) })
	}
}

// TestPlacedAcross has rules that lead out of objects that move, into them, and out of one that moves within another, and one
// that may be null in one version only.
func TestPlacedAcross(t *testing.T) {
	c := converterOf(t, between(t,
		`server: {type: object, nullable: true, properties: {host: {type: string}, level: {type: string}, tls: {type: object, properties: {on: {type: boolean}, key: {type: string}, old: {type: string}}}}}, top: {type: string}`,
		`net: {type: object, properties: {listener: {type: object, properties: {address: {type: string}, top: {type: string}, new: {type: string}}}, tls: {type: object, properties: {on: {type: boolean}}}}}, level: {type: string}, key: {type: string}`,
		`{move: {from: .server, to: .net.listener}}, {move: {from: .server.host, to: .net.listener.address}}, {move: {from: .server.level, to: .level}}, {move: {from: .top, to: .net.listener.top}},
		 {move: {from: .server.tls, to: .net.tls}}, {move: {from: .server.tls.key, to: .key}}`))
	roundTrips{
		"all": {"v1", `"server":{"host":"h","level":"l","tls":{"on":true,"key":"k"}},"top":"t"`,
			named("v2", "", `"net":{"listener":{"address":"h","top":"t"},"tls":{"on":true}},"level":"l","key":"k"`)},
		"absent":            {"v1", ``, named("v2", "", ``)},
		"only out":          {"v1", `"server":{"level":"l"}`, named("v2", "", `"level":"l"`)},
		"only out of both":  {"v1", `"server":{"tls":{"key":"k"}}`, named("v2", "", `"key":"k"`)},
		"only in":           {"v1", `"top":"t"`, named("v2", "", `"net":{"listener":{"top":"t"}}`)},
		"in one in another": {"v2", `"net":{"tls":{"on":true}}`, named("v1", "", `"server":{"tls":{"on":true}}`)},
		"preserved":         {"v1", `"server":{"host":"h","tls":{"old":"o","key":"k"}}`, named("v2", `v1 {"/server/tls/old":"o"}`, `"net":{"listener":{"address":"h"},"tls":{}},"key":"k"`)},
		"preserved back":    {"v2", `"net":{"listener":{"new":"n","top":"t"}}`, named("v1", `v2 {"/net/listener/new":"n"}`, `"server":{},"top":"t"`)},
		"a null":            {"v1", `"server":null,"top":"t"`, named("v2", `v1 {"/server":null}`, `"net":{"listener":{"top":"t"}}`)},
		"a null, alone":     {"v1", `"server":null`, named("v2", `v1 {"/server":null}`, ``)},
	}.check(t, c)
}

// TestPlacedVerdicts checks that verdicts and warnings have the paths of their version.
func TestPlacedVerdicts(t *testing.T) {
	result := between(t,
		"ports: {type: array, items: {type: object, properties: {num: {type: integer}, old: {type: string}}}}, server: {type: object, properties: {a: {type: string}, b: {type: string, maxLength: 9}}}",
		"net: {type: object, required: [listeners], properties: {listeners: {type: array, items: {type: object, required: [must], properties: {num: {type: integer}, must: {type: string}}}}, listener: {type: object, properties: {a: {type: string}, b: {type: string, maxLength: 5}, c: {type: string}}}}}",
		`{move: {from: .ports, to: .net.listeners}}, {move: {from: .server, to: .net.listener}}, {drop: {to: .net.listener.c}}`)
	got := verdictsOf(result)
	want := []string{
		"v1:.ports[*].num Exact rules[0] .ports", "v1:.ports[*].old Preserved  .ports[*].old", "v1:.server.a Exact rules[1] .server", "v1:.server.b Exact rules[1] .server",
		"v2:.net.listener.a Exact rules[1] .net.listener", "v2:.net.listener.b Exact rules[1] .net.listener", "v2:.net.listener.c Dropped rules[2] .net.listener.c",
		"v2:.net.listeners[*].must Preserved  .net.listeners[*].must", "v2:.net.listeners[*].num Exact rules[0] .net.listeners",
	}
	expect.Equal(t, "verdicts", want, got)
	warnings := strings.Join(result.Warnings, "\n")
	expect.Contains(t, "warnings", warnings, ".net.listeners[*].must (v1 does not have it)", ".net.listener.b has maxLength 5 (v1: 9)")
}

// TestPlacedBesideOddNames moves a list beside a field whose name looks like a path.
func TestPlacedBesideOddNames(t *testing.T) {
	const list = "ports: {type: array, items: {type: object, properties: {%s: {type: string}}}}"
	c := converterOf(t, between(t, `odd: {type: object, properties: {".listeners": {type: string}, `+fmt.Sprintf(list, "label")+`}}`, `listeners: {type: array, items: {type: object, properties: {title: {type: string}}}}`,
		`{move: {from: .odd.ports, to: .listeners}}, {move: {from: ".odd.ports[*].label", to: ".listeners[*].title"}}`))
	roundTrips{
		"both": {"v1", `"odd":{".listeners":"x","ports":[{"label":"l"}]}`, named("v2", `v1 {"/odd/.listeners":"x"}`, `"listeners":[{"title":"l"}]`)},
	}.check(t, c)
}
