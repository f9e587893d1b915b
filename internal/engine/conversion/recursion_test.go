// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package conversion_test

import (
	"fmt"
	"strings"
	"testing"
)

// TestRecursion: routes in routes, of which the schema says nothing, are converted as the outermost one.
func TestRecursion(t *testing.T) {
	const route = `route: {type: object, properties: {%s,
		matchers: {type: array, items: {type: object, properties: {name: {type: string}, %s}}},
		routes: {type: array, items: {x-kubernetes-preserve-unknown-fields: true}}}}`
	c := converterOf(t, betweenGroups(t,
		spaces(fmt.Sprintf(route, "receiver: {type: string}, mute: {type: string}, old: {type: string}", "regex: {type: boolean}, value: {type: string}")),
		spaces(fmt.Sprintf(route, "receiver: {type: string}, active: {type: string}", "matchType: {type: string}, text: {type: string}")),
		`{name: route, rules: [
		   {move: {from: .mute, to: .active}},
		   {use: {group: matcher, from: ".matchers[*]", to: ".matchers[*]"}},
		   {use: {group: route, from: ".routes[*]", to: ".routes[*]"}}]},
		 {name: matcher, rules: [{values: {from: .regex, to: .matchType, table: [{from: "true", to: "=~"}, {from: "false", to: "="}]}}, {move: {from: .value, to: .text}}]}`,
		`{use: {group: route, from: .route, to: .route}}`))
	nested := func(depth int, innermost string) string {
		return `"route":` + strings.Repeat(`{"routes":[`, depth) + innermost + strings.Repeat(`]}`, depth)
	}
	roundTrips{
		"none": {"v1", `"route":{"receiver":"r","mute":"m"}`, named("v2", "", `"route":{"receiver":"r","active":"m"}`)},
		"one level": {"v1", nested(1, `{"receiver":"r","mute":"m","matchers":[{"name":"n","regex":true,"value":"v"}]}`),
			named("v2", "", nested(1, `{"receiver":"r","matchers":[{"name":"n","text":"v","matchType":"=~"}],"active":"m"}`))},
		"back":              {"v2", nested(2, `{"active":"m","matchers":[{"matchType":"="}]}`), named("v1", "", nested(2, `{"matchers":[{"regex":false}],"mute":"m"}`))},
		"the deepest level": {"v1", nested(8, `{"mute":"m"}`), named("v2", "", nested(8, `{"active":"m"}`))},
		"too deep":          {"v1", nested(9, `{"mute":"m"}`), named("v2", "", nested(9, `{"mute":"m"}`))},
		"an unknown field":  {"v1", nested(1, `{"mute":"m","other":{"a":[1]}}`), named("v2", "", nested(1, `{"other":{"a":[1]},"active":"m"}`))},
		"no object":         {"v1", nested(1, `"text"`), named("v2", "", nested(1, `"text"`))},
		"no list":           {"v1", nested(1, `{"routes":"text","matchers":{"a":1}}`), named("v2", "", nested(1, `{"routes":"text","matchers":{"a":1}}`))},
		"null":              {"v1", nested(1, `null`), named("v2", "", nested(1, `null`))},
	}.check(t, c)
}

// TestRecursionInRecursion: steps in steps have conditions in conditions.
func TestRecursionInRecursion(t *testing.T) {
	const step = `step: {type: object, properties: {%s: {type: string}, if: {type: object, properties: {%s: {type: string}, all: {type: array, items: {x-kubernetes-preserve-unknown-fields: true}}}},
		steps: {type: array, items: {x-kubernetes-preserve-unknown-fields: true}}}}`
	const condition = `{name: condition, rules: [{move: {from: .is, to: .equals}}, {use: {group: condition, from: ".all[*]", to: ".all[*]"}}]}`
	for _, rules := range []string{
		`{use: {group: condition, from: .if, to: .if}}, {use: {group: step, from: ".steps[*]", to: ".steps[*]"}}`,
		`{use: {group: step, from: ".steps[*]", to: ".steps[*]"}}, {use: {group: condition, from: .if, to: .if}}`,
	} {
		c := converterOf(t, betweenGroups(t, spaces(fmt.Sprintf(step, "run", "is")), spaces(fmt.Sprintf(step, "command", "equals")),
			condition+`, {name: step, rules: [{move: {from: .run, to: .command}}, `+rules+`]}`, `{use: {group: step, from: .step, to: .step}}`))
		roundTripTest{"v1", `"step":{"if":{"all":[{"is":"a"}]},"steps":[{"run":"x","steps":[{"if":{"is":"b","all":[{"all":[{"is":"c"}]}]}}]}]}`,
			named("v2", "", `"step":{"if":{"all":[{"equals":"a"}]},"steps":[{"steps":[{"if":{"all":[{"all":[{"equals":"c"}]}],"equals":"b"}}],"command":"x"}]}`)}.check(t, c)
	}
}
