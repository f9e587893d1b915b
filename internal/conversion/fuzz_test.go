// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package conversion

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
)

// rich has three versions that differ in every way that rules and preservation know.
const richHub = `spec: {type: object, properties: {
	host: {type: string}, port: {type: integer}, same: {type: string}, tz: {type: string},
	box: {type: object, properties: {image: {type: string}, size: {type: integer}, lid: {type: string}, count: {type: integer}, policy: {type: string}}},
	left: {type: string}, right: {type: string}, ip: {type: string}, time: {type: string}, nodes: {type: array, items: {type: object, properties: {a: {type: string}}}},
	kind2: {type: integer},
	moved: {type: object, properties: {a: {type: string}, b: {type: array, items: {type: string}}}},
	ports: {type: array, x-kubernetes-list-type: map, x-kubernetes-list-map-keys: [name], items: {type: object, properties: {
		name: {type: string}, title: {type: string}, weight: {type: integer}, mode: {type: string}, gone: {type: string}, w: {type: string}, n1: {type: string}, b: {type: boolean}, t: {type: string}}}},
	rows: {type: array, items: {type: object, properties: {x: {type: string}, hubOnly: {type: integer}, p: {type: string}, q: {type: string}, policy: {type: string}, gone: {type: string}, w: {type: array, items: {type: integer}}, n2: {type: integer}}}},
	grid: {type: array, items: {type: array, items: {type: object, properties: {yy: {type: string}, h: {type: string}, gone: {type: string}}}}},
	byName: {type: object, additionalProperties: {type: object, properties: {to: {type: string}, h: {type: string}}}},
	open: {type: object, properties: {o: {type: string}}},
	hi: {type: integer}, lo: {type: integer}, parts: {type: array, items: {type: string}}, pairs: {type: array, items: {type: object, properties: {k: {type: string}, v: {type: string}}}},
	cpu: {type: string}, mode: {type: string}, fresh: {type: object, properties: {level: {type: integer}, more: {type: string}}},
	quota: {type: object, additionalProperties: {type: string}}}}, top: {type: string}`

const richSpoke = `spec: {type: object, properties: {
	hostPort: {type: string}, same: {type: string}, owner: {type: string}, size: {type: string}, gone: {type: string}, node: {type: object, properties: {a: {type: string}}},
	image: {type: string}, policy: {type: string},
	box: {type: object, properties: {size: {type: integer}, shape: {type: string}, ips: {type: array, items: {type: string}}, time: {type: integer}}},
	left: {type: string}, right: {type: string},
	kind2: {type: string},
	deep: {type: object, properties: {er: {type: object, properties: {a: {type: string}, b: {type: array, items: {type: string}}}}, own: {type: string}, gone: {type: string}}},
	ports: {type: array, x-kubernetes-list-type: map, x-kubernetes-list-map-keys: [name], items: {type: object, properties: {
		name: {type: string}, label: {type: string}, note: {type: string}, prio: {type: integer}, policy: {type: string}, w: {type: array, items: {type: string}}, n1: {type: integer}, e: {type: string}}}},
	rows: {type: array, items: {type: object, properties: {x: {type: string}, only: {type: integer}, pq: {type: string}, d: {type: string}, policy: {type: string}, w: {type: integer}, n1: {type: string}}}},
	grid: {type: array, items: {type: array, items: {type: object, properties: {z: {type: string}, s: {type: string}}}}},
	byName: {type: object, additionalProperties: {type: object, properties: {from: {type: string}, s: {type: string}}}},
	open: {type: object, x-kubernetes-preserve-unknown-fields: true},
	packed: {type: integer}, joined: {type: string}, pairs: {type: object, additionalProperties: {type: string}},
	quota: {type: object, additionalProperties: {type: string}}}}, bottom: {type: string}`

const richOther = `spec: {type: object, properties: {same: {type: string}, address: {type: object, properties: {host: {type: string}, port: {type: integer}}}}}`

const richRules = `{hub: v2, spokes: [{version: v1, rules: [
	{format: {from: .spec.hostPort, template: "{h}:{p}", to: {h: .spec.host, p: .spec.port}}},
	{move: {from: .spec.image, to: .spec.box.image}},
	{move: {from: .spec.left, to: .spec.right}}, {move: {from: .spec.right, to: .spec.left}},
	{move: {from: .spec.deep.er, to: .spec.moved}},
	{move: {from: ".spec.ports[*].label", to: ".spec.ports[*].title"}},
	{format: {from: ".spec.rows[*].pq", template: "<{p}-{q}>", to: {p: ".spec.rows[*].p", q: ".spec.rows[*].q"}}},
	{move: {from: ".spec.grid[*][*].z", to: ".spec.grid[*][*].yy"}},
	{move: {from: ".spec.byName[*].from", to: ".spec.byName[*].to"}},
	{move: {from: '.spec.quota["cpu"]', to: .spec.cpu}},
	{values: {from: .spec.policy, to: .spec.box.policy, table: [{from: a, to: b}, {from: b, to: a}, {from: "", to: ":"}, {from: ":", to: ":"}]}},
	{values: {from: ".spec.ports[*].policy", to: ".spec.ports[*].mode", table: [{from: a, to: b}, {from: x, to: b}]}},
	{values: {from: ".spec.rows[*].policy", to: ".spec.rows[*].policy", table: [{from: a, to: b}, {from: b, to: c}]}},
	{wrap: {from: .spec.node, to: .spec.nodes}}, {wrap: {from: .spec.box.ips, to: .spec.ip}}, {wrap: {from: ".spec.rows[*].w", to: ".spec.rows[*].w"}},
	{wrap: {from: ".spec.ports[*].w", to: ".spec.ports[*].w"}},
	{cast: {from: .spec.size, to: .spec.box.count, as: Integer}}, {cast: {from: .spec.box.time, to: .spec.time, as: Seconds}}, {cast: {from: ".spec.rows[*].n1", to: ".spec.rows[*].n2", as: Seconds}},
	{cast: {from: ".spec.ports[*].n1", to: ".spec.ports[*].n1", as: Integer}},
	{drop: {from: .spec.gone}}, {drop: {from: .spec.deep.gone}}, {drop: {to: ".spec.ports[*].gone"}}, {drop: {to: ".spec.grid[*][*].gone"}}, {drop: {to: ".spec.rows[*].gone"}},
	{default: {to: .spec.mode, value: a}}, {default: {to: .spec.box.lid, value: b}}, {default: {to: .spec.fresh.level, value: 80}},
	{default: {from: ".spec.ports[*].prio", value: 1}}, {default: {from: ".spec.rows[*].d", value: a}},
	{cel: {from: {p: .spec.packed}, to: {hi: .spec.hi, lo: .spec.lo}, forward: {hi: self.p / 100, lo: self.p % 100}, backward: {p: "self.?hi.orValue(0) * 100 + self.lo"}}},
	{cel: {from: {j: .spec.joined}, to: {p: .spec.parts, l: '.metadata.labels["other"]'}, forward: {p: "self.j.split(':')", l: "self.j.startsWith('a') ? optional.of('l') : optional.none()"},
		backward: {j: "has(self.l) && !has(self.p) ? 'a' : self.p.join(':')"}}},
	{cel: {from: {m: .spec.pairs}, to: {l: .spec.pairs}, forward: {l: "self.m.transformList(k, v, {'k': k, 'v': v})"}, backward: {m: "self.l.transformMapEntry(i, e, {e.k: e.v})"}}},
	{cel: {from: {e: ".spec.ports[*].e"}, to: {b: ".spec.ports[*].b", t: ".spec.ports[*].t"}, forward: {b: "self.e.startsWith('a')", t: "self.e.upperAscii()"}, backward: {e: "self.?t.orValue(string(self.b)).lowerAscii()"}}},
	{move: {from: .bottom, to: '.metadata.labels["bottom"]'}}
	]}, {version: v3, rules: [{move: {from: .spec.address.host, to: .spec.host}}, {move: {from: .spec.address.port, to: .spec.port}}]}]}`

func rich(t testing.TB) (*Converter, map[string]*schema.Structural) {
	crd := widgets(t, map[string]string{"v1": strings.ReplaceAll(richSpoke, "\t", " "), "v2": strings.ReplaceAll(richHub, "\t", " "), "v3": richOther})
	schemas, errs := structuralSchemas(crd)
	if len(errs) > 0 {
		t.Fatal(errs)
	}
	return converterOf(t, Compile(crd, from[v1alpha1.DeclarativeConverter](t, strings.ReplaceAll(richRules, "\t", " ")))), schemas
}

// generator makes random values that fit a schema, more or less: fields are
// absent at will, as in the fragments that server-side apply sends.
type generator struct{ *rand.Rand }

// words collide, and have the templates' texts in them.
var words = []string{"", "a", "b", "a:1", ":", "h:007", "x:80", "<p-q>", "<-q>", "p-q", "é/~", "9223372036854775807", `"q"\`, "7", "90s", "1m30s"}

func (g generator) value(s *schema.Structural) any {
	if g.IntN(40) == 0 {
		return nil
	}
	switch {
	case s.Type == "string":
		return words[g.IntN(len(words))]
	case s.Type == "boolean":
		return g.IntN(2) == 0
	case s.Type == "integer":
		return json.Number([]string{"0", "1", "80", "-5", "9223372036854775807", "12345678901234567890", "1e400"}[g.IntN(7)])
	case s.Items != nil:
		list := []any{}
		for i := range g.IntN(4) {
			list = append(list, g.element(s, i))
		}
		return list
	}
	return g.object(s)
}

func (g generator) element(s *schema.Structural, index int) any {
	value := g.value(s.Items)
	if object, ok := value.(map[string]any); ok && isListMap(s) {
		object["name"] = fmt.Sprint("n/", index)
	}
	return value
}

func (g generator) object(s *schema.Structural) map[string]any {
	object := map[string]any{}
	for _, name := range slices.Sorted(maps.Keys(s.Properties)) {
		if property := s.Properties[name]; g.IntN(3) > 0 {
			object[name] = g.value(&property)
		}
	}
	for _, key := range []string{"cpu", "k/~", "o", "x"} {
		switch values := valuesOf(s); {
		case values != nil && g.IntN(2) == 0:
			object[key] = g.value(values)
		case s.XPreserveUnknownFields && g.IntN(3) == 0:
			object[key] = words[g.IntN(len(words))]
		}
	}
	return object
}

func (g generator) widget(version string, s *schema.Structural) string {
	object := g.object(s)
	metadata := map[string]any{}
	if g.IntN(2) == 0 {
		metadata["name"] = "w"
	}
	if g.IntN(3) == 0 {
		metadata["labels"] = map[string]any{[]string{"bottom", "other"}[g.IntN(2)]: "l"}
	}
	if g.IntN(4) == 0 {
		metadata["annotations"] = map[string]any{"other": "text"}
	}
	object["apiVersion"], object["kind"], object["metadata"] = "example.com/"+version, "Widget", metadata
	text, err := json.Marshal(object)
	if err != nil {
		panic(err)
	}
	return string(text)
}

// gone is a member that the drop rules of v1 give up, wherever it is.
var gone = regexp.MustCompile(`"gone":("(\\.|[^"\\])*"|null),?`)

func withoutDropped(object string) string {
	return strings.ReplaceAll(gone.ReplaceAllString(object, ""), ",}", "}")
}

// roundTrip checks that an object comes back as it was, and nothing grows.
func roundTrip(t *testing.T, c *Converter, object, version, other string) {
	t.Helper()
	first, want := convert(t, c, object, other), object
	if slices.Contains([]string{version, other}, "v1") {
		want = withoutDropped(object)
	}
	there := first
	for range 3 {
		back := convert(t, c, there, version)
		if !sameJSON(t, want, back) {
			t.Fatalf("%s is\n%s at %s, and comes back as\n%s", object, there, other, back)
		}
		if there = convert(t, c, back, other); !sameJSON(t, first, there) {
			t.Fatalf("%s is\n%s at %s, and after a round trip\n%s", object, first, other, there)
		}
	}
}

func FuzzRoundTrip(f *testing.F) {
	c, schemas := rich(f)
	for seed := range uint64(64) {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, seed uint64) {
		g := generator{rand.New(rand.NewPCG(seed, 1))}
		for range 20 {
			for _, pair := range c.plan.Pairs() {
				roundTrip(t, c, g.widget(pair[0], schemas[pair[0]]), pair[0], pair[1])
			}
		}
	})
}

// FuzzEditWins edits a converted object, as a client of the other version does:
// what was kept aside must not win over the edit.
func FuzzEditWins(f *testing.F) {
	c, schemas := rich(f)
	for seed := range uint64(64) {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, seed uint64) {
		g := generator{rand.New(rand.NewPCG(seed, 2))}
		for range 20 {
			pair := [][2]string{{"v1", "v2"}, {"v2", "v1"}}[g.IntN(2)]
			there := convert(t, c, g.widget(pair[0], schemas[pair[0]]), pair[1])
			edited := replaceFields(t, there, g.widget(pair[1], schemas[pair[1]]))
			again := convert(t, c, convert(t, c, edited, pair[0]), pair[1])
			if got, want := withoutKept(t, again), withoutKept(t, withoutDropped(edited)); got != want {
				t.Fatalf("the edit\n%s\nbecame\n%s", want, got)
			}
		}
	})
}

// replaceFields gives an object the fields of another one, but for the metadata.
func replaceFields(t *testing.T, object, edit string) string {
	t.Helper()
	root, err := parse([]byte(object), one)
	if err != nil {
		t.Fatal(err)
	}
	edited, err := parse([]byte(edit), one)
	if err != nil {
		t.Fatal(err)
	}
	edited.set("metadata", root.get("metadata"))
	return string(edited.append(nil))
}

func withoutKept(t *testing.T, object string) string {
	t.Helper()
	root, err := parse([]byte(object), everything)
	if err != nil {
		t.Fatal(err)
	}
	for _, version := range []string{"v1", "v2", "v3"} {
		new(arena).dropKept(root.get("metadata"), KeptPrefix+version)
	}
	return canonical(root)
}

// FuzzArbitraryBytes compares the parser with encoding/json, which allows a name
// twice, deeper nesting and invalid UTF-8; and converts whatever was read.
func FuzzArbitraryBytes(f *testing.F) {
	c, _ := rich(f)
	for _, seed := range []string{
		`{}`, `[]`, ` {"a":[1,-0,1e+5,0.10,true,false,null,"\u0041é"]} `, `{"a":1,"a":2}`, `{"a":1}x`, `01`, `1.`, `"\x"`, "\"\xff\"", "\"\x01\"",
		widget("v1", `"spec":{"hostPort":"a:1","rows":[{"only":1}],"ports":[{"name":"a"}]}`),
		annotated("v2", `v1 {"/spec/rows/0":{"x":"a","only":1},"/spec/rows/00":1,"/spec/deep":{}}`, `"spec":{"rows":[{"x":"a"}]}`),
		`{"\u0061piVersion":"example.com/v1","kind":"Widget","spec":null}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		read, err := parse(text, nil)
		valid := json.Valid(text)
		if err == nil && (!valid || !bytes.Equal(read.text, bytes.Trim(text, " \t\r\n"))) {
			t.Fatalf("read %q, which is not JSON", text)
		}
		if err != nil && valid && utf8.Valid(text) && !strings.Contains(err.Error(), "nested deeper") {
			t.Fatalf("did not read %q: %v", text, err)
		}
		if _, err := parse(text, everything); err != nil && valid && utf8.Valid(text) &&
			!strings.Contains(err.Error(), "nested deeper") && !strings.Contains(err.Error(), "is there twice") {
			t.Fatalf("did not look into %q: %v", text, err)
		}
		for _, version := range []string{"v1", "v2", "v3"} {
			converted, err := c.Convert(nil, text, version)
			if err == nil && !json.Valid(converted) {
				t.Fatalf("%q was converted to %q", text, converted)
			}
		}
	})
}

// FuzzPlanLoad loads whatever is there instead of a plan, and converts by it.
func FuzzPlanLoad(f *testing.F) {
	c, _ := rich(f)
	text, err := c.plan.Marshal()
	if err != nil {
		f.Fatal(err)
	}
	f.Add(text)
	f.Add([]byte(`{"format":2,"group":"example.com","kind":"Widget","hub":"v2","versions":["v1","v2"],"spokes":[{"version":"v1","root":{"moves":[{"spoke":[],"hub":["a"]}]}}]}`))
	f.Add([]byte(`{"format":2} {}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		plan, err := Load(text)
		if err != nil {
			return
		}
		if again, err := Load(must(plan.Marshal())); err != nil || again.Hash() != plan.Hash() {
			t.Fatalf("the plan %s is not loaded again: %v", text, err)
		}
		converter, err := NewConverter(plan)
		if err != nil {
			return
		}
		for _, pair := range plan.Pairs() {
			if _, err := converter.Convert(nil, converter.Canary(pair[0]), pair[1]); err != nil {
				continue
			}
		}
	})
}

func must(text []byte, err error) []byte {
	if err != nil {
		panic(err)
	}
	return text
}
