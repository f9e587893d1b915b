// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package conversion_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
	"github.com/conversion-operator/conversion-operator/internal/engine/conversion"
	"github.com/conversion-operator/conversion-operator/internal/engine/conversion/compile"
	"github.com/conversion-operator/conversion-operator/internal/test/expect"
)

// TestMovedRefused has moves beside rules for fields in them that do not compile.
func TestMovedRefused(t *testing.T) {
	const port = "{type: object, properties: {label: {type: string}, num: {type: integer}}}"
	const title = "{type: object, properties: {title: {type: string}, num: {type: integer}}}"
	const v1 = "ports: {type: array, items: " + port + "}, net: {type: object, properties: {ports: {type: array, items: " + port + "}}}, server: {type: object, properties: {a: {type: string}, b: {type: string}, tls: {type: object, properties: {x: {type: string}}}}}, " +
		"bag: {type: object, x-kubernetes-preserve-unknown-fields: true, properties: {server: {type: object, properties: {a: {type: string}, old: {type: string}}}}}, both: {type: object, properties: {x: {type: string}}}, m: {type: object, additionalProperties: " + port + "}, status: {type: object, properties: {a: {type: string}, b: {type: string}}}"
	const v2 = "listeners: {type: array, items: " + title + "}, lm: {type: object, additionalProperties: " + title + "}, listener: {type: object, properties: {a: {type: string}, c: {type: string}, security: {type: object, properties: {z: {type: string}}}}}, both: {type: object, properties: {x: {type: string}}}, " +
		"bag: {type: object, x-kubernetes-preserve-unknown-fields: true, properties: {listener: {type: object, properties: {a: {type: string}}}}}, deep: {type: object, properties: {listener: {type: object, properties: {a: {type: string}, c: {type: string}}}}}, s: {type: string}, state: {type: object, properties: {a: {type: string}}}"
	for name, test := range map[string]refusal{
		"no move of the list":    {`{move: {from: ".ports[*].label", to: ".listeners[*].title"}}`, "rules[0].move.to", "must go through the same lists and maps as .ports[*].label: [*] pairs elements one by one: add a move of .ports to .listeners"},
		"lists of other objects": {`{move: {from: ".net.ports[*].label", to: ".listeners[*].title"}}`, "rules[0].move.to", "[*] pairs elements one by one: add a move of .net.ports to .listeners"},
		"a list and a map":       {`{move: {from: .ports, to: .lm}}, {move: {from: ".ports[*].label", to: ".lm[*].title"}}`, "rules[0].move.to", "while a rule is for .ports[*].label in it: the value is array on one side and object on the other: their elements cannot be paired"},
		"an object and a text":   {`{move: {from: .server, to: .s}}, {drop: {from: .server.a}}`, "rules[0].move.to", "the value is object on one side and string on the other"},
		"a name that is taken":   {`{move: {from: .server, to: .both}}, {move: {from: .server.b, to: .s}}`, "rules[0].move.to", "collides with the field .both that version v1 has, for which there is no rule: say by a rule what becomes of it"},
		"the same field again":   {`{move: {from: .server, to: .listener}}, {move: {from: .server, to: .both}}`, "rules[1].move.from", ".server already belongs to spec.converter.declarative.spokes[0].rules[0].move.from: give every field to one rule"},
		"above the field":        {`{move: {from: .server, to: .listener}}, {move: {from: .server.tls, to: .listener.security}}, {drop: {from: .server}}`, "rules[2].drop.from", ".server already belongs to"},
		"the same target again":  {`{move: {from: .server, to: .listener}}, {move: {from: .both, to: .listener}}, {move: {from: .both.x, to: .s}}`, "rules[1].move.to", ".listener already belongs to spec.converter.declarative.spokes[0].rules[0].move.to: give every field to one rule"},
		"one field twice":        {`{move: {from: .server, to: .listener}}, {move: {from: .server.b, to: .listener.c}}, {move: {from: .server.a, to: .listener.c}}`, "rules[2].move.to", ".listener.c already belongs to"},
		"the type of a field":    {`{move: {from: .server, to: .listener}}, {cast: {from: .server.b, to: .listener.c, as: Integer}}`, "rules[1].cast.to", ".server.b of type string: this cast is between a string and a field of type integer"},
		"a misspelled field":     {`{move: {from: .server, to: .listener}}, {drop: {from: .server.c}}`, "rules[1].drop.from", "version v1: .server has no field c in the schema"},
		"one key of a map":       {`{move: {from: .m, to: .lm}}, {move: {from: '.m["k"].label', to: '.lm["k"].title'}}`, "rules[1].move.from", "names one element of .m, whose elements are paired: write .m[*]"},
		"the status":             {`{move: {from: .status, to: .state}}, {drop: {from: .status.b}}`, "rules[0].move.to", ".status has the same name in every version: move the fields in it one by one"},
	} {
		t.Run(name, func(t *testing.T) { test.check(t, v1, v2) })
	}
}

// verdictsOf returns a text for the verdict on each leaf field: its owner, its rule and its root.
func verdictsOf(result compile.Result) (texts []string) {
	for _, leaf := range result.Leaves {
		texts = append(texts, fmt.Sprintf("%s %s %s %s", leaf, leaf.Owner, strings.TrimPrefix(leaf.Rule, "spec.converter.declarative.spokes[0]."), leaf.Root))
	}
	return texts
}

// TestMovedVerdicts checks that verdicts have the names of their version, and the innermost move.
func TestMovedVerdicts(t *testing.T) {
	result := between(t,
		"ports: {type: array, items: {type: object, properties: {num: {type: integer}, old: {type: string}, tls: {type: object, properties: {x: {type: string}}}}}}",
		"listeners: {type: array, items: {type: object, properties: {num: {type: integer}, security: {type: object, properties: {x: {type: string}, new: {type: string}}}}}}",
		`{move: {from: .ports, to: .listeners}}, {move: {from: ".ports[*].tls", to: ".listeners[*].security"}}`)
	got := verdictsOf(result)
	want := []string{
		"v1:.ports[*].num Exact rules[0] .ports", "v1:.ports[*].old Preserved  .ports[*].old", "v1:.ports[*].tls.x Exact rules[1] .ports[*].tls",
		"v2:.listeners[*].num Exact rules[0] .listeners", "v2:.listeners[*].security.new Preserved  .listeners[*].security.new", "v2:.listeners[*].security.x Exact rules[1] .listeners[*].security",
	}
	expect.Equal(t, "verdicts", want, got)
	keys := "the elements of .listeners have no keys: what is preserved of one (v1:.ports[*].old, v2:.listeners[*].security.new) is lost"
	expect.Contains(t, "warnings", strings.Join(result.Warnings, "\n"), keys)
}

// TestMovedNamesTaken moves to names that other fields have, which rules move elsewhere.
func TestMovedNamesTaken(t *testing.T) {
	const o = "{type: object, properties: {x: {type: string}, own: {type: string}}}"
	const p = "{type: object, properties: {x: {type: string}, new: {type: string}}}"
	c := converterOf(t, between(t, "a: "+o+", b: "+o+", c: "+o+", d: {type: string}", "b: "+p+", c: "+p+", a: "+p+", e: "+p+", f: {type: string}",
		`{move: {from: .a, to: .b}}, {move: {from: .b, to: .c}}, {move: {from: .c, to: .e}}, {move: {from: .d, to: .f}}`))
	roundTrips{
		"all":  {"v1", `"a":{"x":"1"},"b":{"x":"2"},"c":{"x":"3"},"d":"4"`, named("v2", "", `"b":{"x":"1"},"c":{"x":"2"},"e":{"x":"3"},"f":"4"`)},
		"back": {"v2", `"a":{"x":"1"},"b":{"x":"2"},"e":{}`, named("v1", `v2 {"/a":{"x":"1"}}`, `"a":{"x":"2"},"c":{}`)},
		"own":  {"v1", `"a":{"own":"1"},"c":{"own":"2"}`, named("v2", `v1 {"/a/own":"1","/c/own":"2"}`, `"b":{},"e":{}`)},
	}.check(t, c)
}

// TestMovedBesideUnknown moves in an object that may hold anything, also fields with the old or the new
// name that are not the moved one.
func TestMovedBesideUnknown(t *testing.T) {
	const spoke, hub = "server: {type: object, properties: {a: {type: string}, old: {type: string}}}", "listener: {type: object, properties: {a: {type: string}, new: {type: string}}}"
	object := func(fields, more string) string {
		return "o: {type: object, " + more + "properties: {" + fields + "}}"
	}
	const rules = `{move: {from: .o.server, to: .o.listener}}`
	both := converterOf(t, between(t, object(spoke, open+", "), object(hub, open+", "), rules))
	ofSpoke := converterOf(t, between(t, object(spoke, open+", "), object(hub, ""), rules))
	ofHub := converterOf(t, between(t, object(spoke, ""), object(hub+", server: {type: string}", open+", "), rules))
	for name, test := range map[string]struct {
		roundTripTest
		c *conversion.Converter
	}{
		"both":                 {roundTripTest{"v1", `"o":{"server":{"a":"1"},"x":1}`, named("v2", "", `"o":{"listener":{"a":"1"},"x":1}`)}, both},
		"the new name":         {roundTripTest{"v1", `"o":{"server":{"a":"1"},"listener":2}`, named("v2", `v1 {"/o/listener":2}`, `"o":{"listener":{"a":"1"}}`)}, both},
		"the old name":         {roundTripTest{"v2", `"o":{"server":[1],"listener":{"a":"1","new":"2"}}`, named("v1", `v2 {"/o/listener/new":"2","/o/server":[1]}`, `"o":{"server":{"a":"1"}}`)}, both},
		"unknown in the spoke": {roundTripTest{"v1", `"o":{"server":{"old":"1"},"listener":2,"x":3}`, named("v2", `v1 {"/o/listener":2,"/o/server/old":"1","/o/x":3}`, `"o":{"listener":{}}`)}, ofSpoke},
		"unknown in the hub":   {roundTripTest{"v2", `"o":{"server":"1","listener":{},"x":3}`, named("v1", `v2 {"/o/server":"1","/o/x":3}`, `"o":{"server":{}}`)}, ofHub},
	} {
		t.Run(name, func(t *testing.T) { test.check(t, test.c) })
	}
}

// TestOpenStackMachine has a part of the versions v1alpha7 (here v1) and v1beta1 (v2) of a kind of Cluster
// API Provider OpenStack: filters of security groups become groups, in the elements of the list of ports.
func TestOpenStackMachine(t *testing.T) {
	const filter = `{type: object, properties: {id: {type: string}, name: {type: string}, description: {type: string}, projectId: {type: string}, tags: {type: string}}}`
	const param = `{type: object, properties: {id: {type: string, format: uuid}, filter: {type: object, minProperties: 1, properties: {name: {type: string}, description: {type: string}, projectID: {type: string}, tags: {type: array, x-kubernetes-list-type: set, items: {type: string}}}}}}`
	c := converterOf(t, between(t,
		`spec: {type: object, required: [flavor], properties: {flavor: {type: string}, image: {type: string}, imageUUID: {type: string}, serverGroupID: {type: string},
		   rootVolume: {type: object, properties: {diskSize: {type: integer}, volumeType: {type: string}, availabilityZone: {type: string}}},
		   ports: {type: array, items: {type: object, properties: {description: {type: string}, network: `+filter+`, securityGroupFilters: {type: array, items: `+filter+`}}}}}}`,
		`spec: {type: object, required: [flavor, image], properties: {flavor: {type: string}, serverGroup: {type: object, properties: {id: {type: string}}},
		   image: {type: object, properties: {id: {type: string}, filter: {type: object, properties: {name: {type: string}}}}},
		   rootVolume: {type: object, required: [sizeGiB], properties: {sizeGiB: {type: integer, minimum: 1}, type: {type: string}, availabilityZone: {type: object, properties: {name: {type: string}}}}},
		   ports: {type: array, x-kubernetes-list-type: atomic, items: {type: object, properties: {description: {type: string}, network: `+param+`, securityGroups: {type: array, x-kubernetes-list-type: atomic, items: `+param+`}}}}}}`,
		`{move: {from: .spec.image, to: .spec.image.filter.name}}, {move: {from: .spec.imageUUID, to: .spec.image.id}}, {move: {from: .spec.serverGroupID, to: .spec.serverGroup.id}},
		 {move: {from: .spec.rootVolume.diskSize, to: .spec.rootVolume.sizeGiB}}, {move: {from: .spec.rootVolume.volumeType, to: .spec.rootVolume.type}}, {move: {from: .spec.rootVolume.availabilityZone, to: .spec.rootVolume.availabilityZone.name}},
		 {move: {from: '.spec.ports[*].network.name', to: '.spec.ports[*].network.filter.name'}},
		 {move: {from: '.spec.ports[*].securityGroupFilters', to: '.spec.ports[*].securityGroups'}},
		 {move: {from: '.spec.ports[*].securityGroupFilters[*].name', to: '.spec.ports[*].securityGroups[*].filter.name'}},
		 {move: {from: '.spec.ports[*].securityGroupFilters[*].description', to: '.spec.ports[*].securityGroups[*].filter.description'}},
		 {move: {from: '.spec.ports[*].securityGroupFilters[*].projectId', to: '.spec.ports[*].securityGroups[*].filter.projectID'}}`))
	for name, test := range map[string]roundTripTest{
		"a machine": {
			"v1", `"spec":{"flavor":"m1","image":"ubuntu","rootVolume":{"diskSize":25,"volumeType":"ssd","availabilityZone":"nova"},"ports":[{"description":"a","network":{"name":"n"},"securityGroupFilters":[{"name":"default"},{"id":"5c0a2d4e-0000-4000-8000-000000000001"}]},{}]}`,
			named("v2", "", `"spec":{"flavor":"m1","image":{"filter":{"name":"ubuntu"}},"rootVolume":{"sizeGiB":25,"type":"ssd","availabilityZone":{"name":"nova"}},"ports":[{"description":"a","network":{"filter":{"name":"n"}},"securityGroups":[{"filter":{"name":"default"}},{"id":"5c0a2d4e-0000-4000-8000-000000000001"}]},{}]}`),
		},
		"back": {
			"v2", `"spec":{"flavor":"m1","image":{"id":"i"},"ports":[{"securityGroups":[{"filter":{"projectID":"p"}}]},{"securityGroups":[]}]}`,
			named("v1", "", `"spec":{"flavor":"m1","ports":[{"securityGroupFilters":[{"projectId":"p"}]},{"securityGroupFilters":[]}],"imageUUID":"i"}`),
		},
	} {
		t.Run(name, func(t *testing.T) {
			object := named(test.from, "", test.object)
			wantConverted(t, c, object, other(test.from), test.want)
			wantConverted(t, c, test.want, test.from, object)
		})
	}
}

// TestMovedSiblings has a field that the hub lacks, in a list that has another name in each version.
func TestMovedSiblings(t *testing.T) {
	list := func(name, key, own string) string {
		return name + ": {type: array, x-kubernetes-list-type: map, x-kubernetes-list-map-keys: [" + key + "], items: {type: object, properties: {" + key + ": {type: string}" + own + "}}}"
	}
	crd := widgets(t, map[string]string{"v1": list("ports", "label", ", own: {type: string}"), "v2": list("listeners", "title", ""), "v3": list("doors", "title", ", own: {type: string}")})
	result := compile.Compile(crd, from[v1alpha1.DeclarativeConverter](t, `{hub: v2, spokes: [
		{version: v1, rules: [{move: {from: .ports, to: .listeners}}, {move: {from: ".ports[*].label", to: ".listeners[*].title"}}]},
		{version: v3, rules: [{move: {from: .doors, to: .listeners}}]}]}`))
	c := converterOf(t, result)
	atHub := annotated("v2", `v1 {"/ports/[label=\"x\"]/own":"1"}`, `"listeners":[{"title":"x"}]`)
	steps := []string{
		widget("v1", `"ports":[{"label":"x","own":"1"}]`), atHub, widget("v3", `"doors":[{"title":"x","own":"1"}]`),
		annotated("v2", `v3 {"/doors/[title=\"x\"]/own":"1"}`, `"listeners":[{"title":"x"}]`), widget("v1", `"ports":[{"label":"x","own":"1"}]`), widget("v3", `"doors":[{"title":"x","own":"1"}]`),
	}
	wantSteps(t, c, steps)

	name := func(version string) string { return conversion.AnnotationName("widgets.example.com", version) }
	annotations := map[string]string{name("v1"): `{"format":3,"rules":"","hidden":{"/ports/[label=\"x\"]/own":"1"}}`}
	if held := c.PreservedIn(annotations); len(held) != 1 || !slices.Equal(held[0].Fields, []string{".ports[*].own"}) {
		t.Errorf("preserved: %+v", held)
	}
	changes, err := c.WithoutPreserved(annotations, "v1", []string{".ports[*].own"})
	expect.NoError(t, err)
	expect.Equal(t, "change of v3", new(`{"format":3,"rules":"","hidden":{"/doors/[title=\"x\"]/own":"1"}}`), changes[name("v3")])
	places, err := conversion.NewPlaces(result.Ruleset, "v2")
	expect.NoError(t, err)
	for field, want := range map[string]conversion.Place{".ports[*].own": conversion.NoPlace, ".ports[*].label": conversion.WholePlace, ".listeners[*].title": conversion.NoPlace} {
		expect.Equal(t, "place of "+field, want, places.Of("v1", field))
	}
}
