// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package conversion_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/conversion-operator/conversion-operator/internal/engine/conversion"
	"github.com/conversion-operator/conversion-operator/internal/test/expect"
)

// TestCEL packs two numbers into one, joins a list, converts a map to a list, and has elements of a
// list and a label.
func TestCEL(t *testing.T) {
	c := converterOf(t, between(t,
		`packed: {type: integer}, o: {type: object, properties: {csv: {type: string}}}, env: {type: object, additionalProperties: {type: string}},
		l: {type: array, items: {type: object, properties: {x: {type: string}, percent: {type: string}}}}, zone: {type: string}`,
		`o: {type: object, properties: {high: {type: integer}, low: {type: integer}}}, names: {type: array, items: {type: string}},
		env: {type: array, items: {type: object, properties: {name: {type: string}, value: {type: string}}}},
		l: {type: array, items: {type: object, properties: {x: {type: string}, share: {type: number}}}}`,
		`{cel: {from: {packed: .packed}, to: {high: .o.high, low: .o.low},
			forward: {high: self.packed / 65536, low: self.packed % 65536}, backward: {packed: self.high * 65536 + self.low}}},
		{cel: {from: {csv: .o.csv}, to: {names: .names}, forward: {names: "self.csv.split(',')"}, backward: {csv: "self.names.join(',')"}}},
		{cel: {from: {env: .env}, to: {env: .env}, forward: {env: "self.env.transformList(k, v, {'name': k, 'value': v})"},
			backward: {env: "self.env.transformMapEntry(i, e, {e.name: e.value})"}}},
		{cel: {from: {p: ".l[*].percent"}, to: {s: ".l[*].share"}, forward: {s: "double(self.p.replace('%', '')) / 100.0"},
			backward: {p: "string(self.s * 100.0) + '%'"}}},
		{cel: {from: {zone: .zone}, to: {label: '.metadata.labels["zone"]'}, forward: {label: self.zone.lowerAscii()}, backward: {zone: self.label.upperAscii()}}}`))
	roundTrips{
		"unpacked":                {"v1", `"packed":65537`, named("v2", "", `"o":{"high":1,"low":1}`)},
		"packed":                  {"v2", `"o":{"high":1,"low":2}`, named("v1", "", `"packed":65538`)},
		"exact":                   {"v1", `"packed":9007199254740993`, named("v2", "", `"o":{"high":137438953472,"low":1}`)},
		"not packed so":           {"v2", `"o":{"high":0,"low":65537}`, named("v1", `v2 {"/o/high":0,"/o/low":65537,"@/o/high":["/packed"],"@/o/low":["/packed"]}`, `"packed":65537`)},
		"half of it":              {"v2", `"o":{"high":1}`, named("v1", `v2 {"/o/high":1}`, ``)},
		"too large":               {"v2", `"o":{"high":9223372036854775807,"low":1}`, named("v1", `v2 {"/o/high":9223372036854775807,"/o/low":1}`, ``)},
		"nothing":                 {"v1", `"o":{}`, named("v2", ``, `"o":{}`)},
		"list":                    {"v1", `"o":{"csv":"a,b"}`, named("v2", "", `"names":["a","b"]`)},
		"empty text":              {"v1", `"o":{"csv":""}`, named("v2", "", `"names":[""]`)},
		"empty list":              {"v2", `"names":[]`, named("v1", `v2 {"/names":[],"@/names":["/o/csv"]}`, `"o":{"csv":""}`)},
		"list with a comma":       {"v2", `"names":["a,b"]`, named("v1", `v2 {"/names":["a,b"],"@/names":["/o/csv"]}`, `"o":{"csv":"a,b"}`)},
		"list of a map":           {"v1", `"env":{"b":"1","a":"2"}`, named("v2", "", `"env":[{"name":"a","value":"2"},{"name":"b","value":"1"}]`)},
		"map of a list":           {"v2", `"env":[{"name":"a","value":"2"}]`, named("v1", "", `"env":{"a":"2"}`)},
		"map of an unsorted list": {"v2", `"env":[{"name":"b","value":"1"},{"name":"a","value":"2"}]`, named("v1", `v2 {"/env":[{"name":"b","value":"1"},{"name":"a","value":"2"}],"@/env":["/env"]}`, `"env":{"a":"2","b":"1"}`)},
		"list without a key":      {"v2", `"env":[{"value":"1"}]`, named("v1", `v2 {"/env":[{"value":"1"}]}`, ``)},
		"elements":                {"v1", `"l":[{"x":"1","percent":"25%"},{},{"percent":"half"}]`, named("v2", `v1 {"/l/2":{"percent":"half"},"@/l/2":`+digest(`{}`)+`}`, `"l":[{"x":"1","share":0.25},{},{}]`)},
		"label":                   {"v1", `"zone":"EU"`, strings.Replace(named("v2", "", ``), `"name":"w"`, `"name":"w","labels":{"zone":"eu"}`, 1)},
	}.check(t, c)
	misfits{
		"not an integer": {roundTripTest{"v1", `"packed":"1"`, named("v2", `v1 {"/packed":"1"}`, ``)}, named("v1", `v1 {"/packed":"1"}`, ``)},
		"null":           {roundTripTest{"v1", `"packed":null`, named("v2", `v1 {"/packed":null}`, ``)}, named("v1", `v1 {"/packed":null}`, ``)},
	}.check(t, c)
}

// TestCELUnread has fields that no expression reads: whether they are there has no effect, unless the expressions are
// constants.
func TestCELUnread(t *testing.T) {
	c := converterOf(t, between(t, "a: {type: string}, c: {type: string}", "b: {type: string}, d: {type: string}, e: {type: string}",
		`{cel: {from: {a: .a}, to: {b: .b, d: .d}, forward: {b: "'x'", d: self.a}, backward: {a: "self.?d.orValue('none')"}}},
		{cel: {from: {c: .c}, to: {e: .e}, forward: {e: "'y'"}, backward: {c: self.e}}}`))
	roundTrips{
		"all":            {"v1", `"a":"1"`, named("v2", "", `"b":"x","d":"1"`)},
		"only an unread": {"v2", `"b":"z"`, named("v1", `v2 {"/b":"z"}`, ``)},
		"a constant":     {"v1", `"c":"1"`, named("v2", `v1 {"/c":"1","@/c":["/e"]}`, `"e":"y"`)},
	}.check(t, c)
}

// TestCELOutsideTheSchema has results that the schema of their field does not allow, which are no values.
func TestCELOutsideTheSchema(t *testing.T) {
	c := converterOf(t, between(t, "a: {type: string}, half: {type: integer}, l: {type: array, items: {type: string}}",
		`b: {type: string, enum: [x, y]}, m: {type: integer, maximum: 10}, o: {type: object, required: [p], properties: {p: {type: string, pattern: '^p'}, q: {type: string}}}`,
		`{cel: {from: {a: .a}, to: {b: .b}, forward: {b: self.a}, backward: {a: self.b}}},
		{cel: {from: {half: .half}, to: {all: .m}, forward: {all: self.half * 2}, backward: {half: self.all / 2}}},
		{cel: {from: {l: .l}, to: {o: .o}, forward: {o: "{'q': self.l[0], ?'p': self.l[?1]}"}, backward: {l: "[self.o.q, self.o.p]"}}}`))
	roundTrips{
		"allowed":          {"v1", `"a":"x","half":5,"l":["1","p"]`, named("v2", "", `"b":"x","m":10,"o":{"p":"p","q":"1"}`)},
		"not in the enum":  {"v1", `"a":"z"`, named("v2", `v1 {"/a":"z"}`, ``)},
		"over the maximum": {"v1", `"half":6`, named("v2", `v1 {"/half":6}`, ``)},
		"not the pattern":  {"v1", `"l":["1","2"]`, named("v2", `v1 {"/l":["1","2"]}`, ``)},
		"without a field":  {"v1", `"l":["1"]`, named("v2", `v1 {"/l":["1"]}`, ``)},
	}.check(t, c)
}

// TestCELOpaque reads a value that its schema does not describe.
func TestCELOpaque(t *testing.T) {
	c := converterOf(t, between(t, "config: {x-kubernetes-preserve-unknown-fields: true}", "host: {type: string}, extra: {x-kubernetes-preserve-unknown-fields: true}",
		`{cel: {from: {config: .config}, to: {host: .host, extra: .extra},
			forward: {host: dyn(self.config.host), extra: "has(self.config.extra) ? optional.of(self.config.extra) : optional.none()"},
			backward: {config: "{'host': dyn(self.host), ?'extra': self.?extra}"}}}`))
	roundTrips{
		"all":                          {"v1", `"config":{"host":"h","extra":[1,{"a":null}]}`, named("v2", "", `"host":"h","extra":[1,{"a":null}]`)},
		"only one":                     {"v1", `"config":{"host":"h"}`, named("v2", "", `"host":"h"`)},
		"another type":                 {"v1", `"config":{"host":7}`, named("v2", `v1 {"/config":{"host":7}}`, ``)},
		"no object":                    {"v1", `"config":"text"`, named("v2", `v1 {"/config":"text"}`, ``)},
		"a field that is read no more": {"v1", `"config":{"host":"h","more":1}`, named("v2", `v1 {"/config/more":1}`, `"host":"h"`)},
	}.check(t, c)
}

// TestCELAround has expressions of elements, in lists in lists, that read fields of the objects around them.
func TestCELAround(t *testing.T) {
	const list = `l: {type: array, x-kubernetes-list-type: map, x-kubernetes-list-map-keys: [name], items: {type: object, required: [name], properties: {name: {type: string}, zone: {type: string}, `
	c := converterOf(t, between(t,
		`mode: {type: string}, `+list+`port: {type: integer}, m: {type: array, items: {type: object, properties: {x: {type: string}}}}}}}`,
		`mode: {type: string}, `+list+`url: {type: string}, m: {type: array, items: {type: object, properties: {w: {type: string}}}}}}}`,
		`{cel: {from: {port: ".l[*].port", mode: .mode}, to: {url: ".l[*].url"},
			forward: {url: "(self.mode == 'tls' ? 'https' : 'http') + ':' + string(self.port)"}, backward: {port: "int(self.url.split(':')[1])"}}},
		{cel: {from: {x: ".l[*].m[*].x", zone: ".l[*].zone", mode: .mode}, to: {out: ".l[*].m[*].w"},
			forward: {out: "self.x + '@' + self.?zone.orValue('none') + '/' + self.?mode.orValue('none')"}, backward: {x: "self.out.split('@')[0]"}}}`))
	roundTrips{
		"the root":     {"v1", `"mode":"tls","l":[{"name":"a","port":80},{"name":"b"}]`, named("v2", "", `"mode":"tls","l":[{"name":"a","url":"https:80"},{"name":"b"}]`)},
		"another root": {"v1", `"mode":"plain","l":[{"name":"a","port":80}]`, named("v2", "", `"mode":"plain","l":[{"name":"a","url":"http:80"}]`)},
		"both around": {"v1", `"mode":"m","l":[{"name":"a","zone":"z","m":[{"x":"1"},{"x":"2"}]},{"name":"b","m":[{"x":"3"}]}]`,
			named("v2", "", `"mode":"m","l":[{"name":"a","zone":"z","m":[{"w":"1@z/m"},{"w":"2@z/m"}]},{"name":"b","m":[{"w":"3@none/m"}]}]`)},
		"not computed": {"v2", `"mode":"tls","l":[{"name":"a","url":"http:80"}]`,
			named("v1", `v2 {"/l/[name=\"a\"]/url":"http:80","@/l/[name=\"a\"]/url":["/l"]}`, `"mode":"tls","l":[{"name":"a","port":80}]`)},
	}.check(t, c)
	t.Run("edited", func(t *testing.T) {
		// The values of both elements were preserved for another mode than the one that a client has set now.
		there := convert(t, c, named("v2", "", `"mode":"tls","l":[{"name":"a","url":"http:80"},{"name":"b","url":"https:90"}]`), "v1")
		wantAnyPreserved(t, "an element", named("v2", "", `"mode":"tls","l":[{"name":"a","url":"http:80"},{"name":"b","url":"https:91"}]`),
			convert(t, c, strings.Replace(there, `"port":90`, `"port":91`, 1), "v2"))
		wantAnyPreserved(t, "the mode", named("v2", "", `"mode":"plain","l":[{"name":"a","url":"http:80"},{"name":"b","url":"http:90"}]`),
			convert(t, c, strings.Replace(there, `"mode":"tls"`, `"mode":"plain"`, 1), "v2"))
	})
}

// TestCELAroundBothWays reads a field around elements in both directions, and one that the other version lacks.
func TestCELAroundBothWays(t *testing.T) {
	const list = "l: {type: array, x-kubernetes-list-type: map, x-kubernetes-list-map-keys: [name], items: {type: object, required: [name], properties: {name: {type: string}, "
	c := converterOf(t, between(t,
		"mode: {type: string}, own: {type: string}, "+list+"a: {type: string}, c: {type: string}}}}",
		"mode: {type: string}, "+list+"b: {type: string}, d: {type: string}}}}",
		`{cel: {from: {a: ".l[*].a", mode: .mode}, to: {b: ".l[*].b", mode: .mode},
			forward: {b: "self.a + '/' + self.mode"}, backward: {a: "self.b.endsWith('/' + self.?mode.orValue('n')) ? self.b.split('/')[0] : 'other'"}}},
		{cel: {from: {c: ".l[*].c", own: .own}, to: {d: ".l[*].d"}, forward: {d: "self.c + '+' + self.?own.orValue('n')"}, backward: {c: "self.d == '' ? '' : 'k'"}}}`))
	const both = `"mode":"m","l":[{"name":"x","b":"1/m"},{"name":"y","b":"1/n"}]`
	there := convert(t, c, named("v2", "", both), "v1")
	wantAnyPreserved(t, "there", named("v1", "", `"mode":"m","l":[{"name":"x","a":"1"},{"name":"y","a":"other"}]`), there)
	wantAnyPreserved(t, "back", named("v2", "", both), convert(t, c, there, "v2"))
	edited := strings.Replace(there, `"a":"other"`, `"a":"2"`, 1)
	wantAnyPreserved(t, "edited", named("v2", "", `"mode":"m","l":[{"name":"x","b":"1/m"},{"name":"y","b":"2/m"}]`), convert(t, c, edited, "v2"))

	const own = `"own":"o","l":[{"name":"x","c":"1"}]`
	there = convert(t, c, named("v1", "", own), "v2")
	wantAnyPreserved(t, "there", named("v2", "", `"l":[{"name":"x","d":"1+o"}]`), there)
	wantAnyPreserved(t, "back", named("v1", "", own), convert(t, c, there, "v1"))
	edited = strings.Replace(there, `"d":"1+o"`, `"d":"1+p"`, 1)
	wantAnyPreserved(t, "what the element says no more", named("v1", "", `"l":[{"name":"x","c":"k"}]`), convert(t, c, edited, "v1"))
}

// TestCELAroundInElements has a value of an element that only one version has, and that the elements in it are computed with.
func TestCELAroundInElements(t *testing.T) {
	const keyed = "{type: array, x-kubernetes-list-type: map, x-kubernetes-list-map-keys: [name], items: {type: object, required: [name], properties: {name: {type: string}, "
	c := converterOf(t, between(t,
		"l: "+keyed+"zone: {type: string}, m: "+keyed+"a: {type: string}}}}}}}",
		"l: "+keyed+"m: "+keyed+"b: {type: string}}}}}}}",
		`{cel: {from: {a: ".l[*].m[*].a", zone: ".l[*].zone"}, to: {b: ".l[*].m[*].b"},
			forward: {b: "self.a + '@' + self.?zone.orValue('n')"}, backward: {a: "self.b == '' ? '' : 'k'"}}}`))
	const object = `"l":[{"name":"x","zone":"z","m":[{"name":"1","a":"p"},{"name":"2","a":"q"}]},{"name":"y","m":[{"name":"3","a":"r"}]}]`
	there := convert(t, c, named("v1", "", object), "v2")
	wantAnyPreserved(t, "there", named("v2", "", `"l":[{"name":"x","m":[{"name":"1","b":"p@z"},{"name":"2","b":"q@z"}]},{"name":"y","m":[{"name":"3","b":"r@n"}]}]`), there)
	wantAnyPreserved(t, "back", named("v1", "", object), convert(t, c, there, "v1"))
	edited := strings.Replace(there, `"b":"r@n"`, `"b":"s@n"`, 1)
	wantAnyPreserved(t, "another element is edited", named("v1", "", strings.Replace(object, `"r"`, `"k"`, 1)), convert(t, c, edited, "v1"))
}

// TestCELDerivedAround derives a field of elements of one around them only.
func TestCELDerivedAround(t *testing.T) {
	c := converterOf(t, between(t,
		`mode: {type: string}, l: {type: array, items: {type: object, properties: {a: {type: string}}}}`,
		`l: {type: array, items: {type: object, properties: {a: {type: string}, mode: {type: string}}}}`,
		`{cel: {from: {mode: .mode}, to: {mode: ".l[*].mode"}, forward: {mode: self.mode}}}`))
	roundTrips{
		"each":    {"v1", `"mode":"m","l":[{"a":"1"},{}]`, named("v2", `v1 {"/mode":"m","@/mode":["/l"]}`, `"l":[{"a":"1","mode":"m"},{"mode":"m"}]`)},
		"no mode": {"v1", `"l":[{"a":"1"}]`, named("v2", "", `"l":[{"a":"1"}]`)},
	}.check(t, c)
}

// A ruleset whose expressions do not compile is refused before any object is converted.
func TestCELOfADamagedRuleset(t *testing.T) {
	ruleset := between(t, "a: {type: integer}", "b: {type: integer}",
		`{cel: {from: {a: .a}, to: {b: .b}, forward: {b: self.a + 1}, backward: {a: self.b - 1}}}`).Ruleset
	for damage, want := range map[string]string{
		"self.":  "Syntax error",
		"self.c": "undefined field 'c'",
	} {
		ruleset.Spokes[0].Root.Exchanges[0].CEL.Hub[0].Expression = damage
		_, err := conversion.NewConverter(ruleset)
		expect.Contains(t, damage, fmt.Sprint(err), want)
	}
}

// The ruleset has the schemas of versions, and none of fields.
func TestCELInTheRuleset(t *testing.T) {
	ruleset := between(t, "a: {type: string, maxLength: 7, description: text}", "b: {type: string, format: date-time}",
		`{cel: {from: {a: .a}, to: {b: .b}, forward: {b: self.a}, backward: {a: string(self.b)}}}`).Ruleset
	want := &conversion.CEL{
		Spoke: []conversion.CELField{{Name: "a", Expression: "string(self.b)"}},
		Hub:   []conversion.CELField{{Name: "b", Expression: "self.a"}},
	}
	expect.Equal(t, "ruleset", want, ruleset.Spokes[0].Root.Exchanges[0].CEL)
}
