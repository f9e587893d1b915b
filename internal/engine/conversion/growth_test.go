// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package conversion_test

import (
	"maps"
	"math"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/conversion-operator/conversion-operator/internal/engine/conversion"
	"github.com/conversion-operator/conversion-operator/internal/engine/conversion/internal/generate"
	"github.com/conversion-operator/conversion-operator/internal/test/expect"
	"github.com/conversion-operator/conversion-operator/internal/test/rulecases"
)

// FuzzNoGrowth converts an object back and forth repeatedly: the object and its preserved data do
// not change.
func FuzzNoGrowth(f *testing.F) {
	fuzzWorlds(f, func(t *testing.T, w *world) {
		path := []string{"v1", "v2", "v3"}
		path = append(generate.Shuffled(w.Choices, path), path...)
		version := path[len(path)-1]
		object := w.surviving(t, w.object(version), version, path[0])
		around := func() string {
			for _, next := range path {
				object = convert(t, w.converter, object, next)
			}
			return object
		}
		around() // the first time, rules drop values
		first := around()
		for range 2 {
			wantEqual(t, withDecodedAnnotations(t, first), withDecodedAnnotations(t, around()), "through %v", path)
		}
	})
}

// growing is a ruleset between v1 and v2, and an object of v1 of variable size.
type growing struct {
	v1, v2, rules string
	// object returns the fields of an object with n elements.
	object func(n int) string
}

// repeated returns n elements, with the number of each in the place of %d.
func repeated(begin, element, end string) func(int) string {
	return func(n int) string {
		var text strings.Builder
		text.WriteString(begin)
		for i := range n {
			if i > 0 {
				text.WriteByte(',')
			}
			text.WriteString(strings.ReplaceAll(element, "%d", strconv.Itoa(n-i)))
		}
		return text.String() + end
	}
}

// inList returns rules for the objects of a list.
func inList(v1, v2, rules, element string) growing {
	return growing{"l: " + listOf(v1), "l: " + listOf(v2), rules, repeated(`"l":[`, element, `]`)}
}

const open = `x-kubernetes-preserve-unknown-fields: true`

// Parts of schemas.
const (
	ofA      = "a: {type: string}"
	ofB      = "b: {type: string}"
	textList = "{type: array, items: {type: string}}"
	// keyValue is a key, a value, and a field that what it becomes has not.
	keyValue = "k: {type: string}, v: {type: string}, w: {type: string}"
)

// ofKinds returns the rules of each kind for the elements of a list.
func ofKinds(t *testing.T) map[string]growing {
	t.Helper()
	all := map[string]growing{}
	for _, kind := range rulecases.All(t) {
		if len(kind.Conversions) > 0 {
			of := kind.Conversions[0]
			all[kind.Name] = growing{"l: " + listOf(string(of.V1)), "l: " + listOf(string(of.V2)), string(of.Rules), repeated(`"l":[`, "{"+of.Objects[0].V1+"}", "]")}
		}
	}
	return all
}

// growths has kinds of lists and of preserved data.
var growths = map[string]growing{
	"cel around elements": {"m: {type: string}, l: " + listOf(ofA), "m: {type: string}, l: " + listOf(ofB),
		`{cel: {from: {a: ".l[*].a", m: .m}, to: {b: ".l[*].b"}, forward: {b: self.a + self.m}, backward: {a: self.b}}}`, repeated(`"m":"x","l":[`, `{"a":"%d"}`, `]`)},
	"exclude back": inList(ofA+", "+ofB, ofB, `{each: {from: .l, to: .l, where: [{to: .b}]}}`, `{"a":"%d"},{"b":"%d"}`),
	"cel over a list": {"l: " + textList, "s: {type: string}",
		`{cel: {from: {l: .l}, to: {s: .s}, forward: {s: "self.l.join(',')"}, backward: {l: "self.s.split(',')"}}}`, repeated(`"l":[`, `"%d"`, `]`)},

	"index":               {"l: " + listOf("k: {type: string}"), "m: {type: object, additionalProperties: {type: object}}", `{each: {from: .l, to: .m, key: k}}`, repeated(`"l":[`, `{"k":"\u00e4%d"}`, `]`)},
	"index of integers":   {"l: " + listOf("k: {type: integer}"), "m: {type: object, additionalProperties: {type: object}}", `{each: {from: .l, to: .m, key: k}}`, repeated(`"l":[`, `{"k":%d}`, `]`)},
	"index of plain keys": {"l: " + listOf("k: {type: string}"), "m: {type: object, additionalProperties: {type: object}}", `{each: {from: .l, to: .m, key: k}}`, repeated(`"l":[`, `{"k":"%d"}`, `]`)},
	"index of a map":      {"m: {type: object, additionalProperties: {type: object}}", "l: " + listOf("k: {type: string}"), `{each: {from: .m, to: .l, key: k}}`, repeated(`"m":{`, `"\u00e4%d":{}`, `}`)},
	"index of values":     {"l: " + listOf(keyValue), "m: {type: object, additionalProperties: {type: string}}", `{each: {from: .l, to: .m, key: k}}, {move: {from: ".l[*].v", to: ".m[*]"}}`, repeated(`"l":[`, `{"k":"\u00e4%d","v":"%[1]d","w":"x"}`, `]`)},

	"wrap of values":          {"l: " + listOf(keyValue), "names: " + textList, `{each: {from: .l, to: .names}}, {move: {from: ".l[*].k", to: ".names[*]"}}`, repeated(`"l":[`, `{"k":"\u00e4%d","w":"x"}`, `]`)},
	"wrap of the same values": {"l: " + listOf(keyValue), "names: " + textList, `{each: {from: .l, to: .names}}, {move: {from: ".l[*].k", to: ".names[*]"}}`, repeated(`"l":[`, `{"k":"a","w":"%d"}`, `]`)},
	"wrap of values of a map": {"m: " + mapOf(keyValue), "names: {type: object, additionalProperties: {type: string}}", `{each: {from: .m, to: .names}}, {move: {from: ".m[*].k", to: ".names[*]"}}`, repeated(`"m":{`, `"\u00e4%d":{"k":"a","w":"x"}`, `}`)},
	"escapes in a text": {ofA, "b: " + textList, `{each: {from: .a, to: .b}}`,
		func(n int) string { return `"a":"` + strings.Repeat(`\u00e4\n`, n) + `"` }},

	"cast of a list": {"l: " + textList, "s: {type: string}", `{cast: {from: .l, to: .s, as: List, separator: ","}}`, repeated(`"l":[`, `"\u00e4%d"`, `]`)},
	"cast to a list": {"s: {type: string}", "l: " + textList, `{cast: {from: .s, to: .l, as: List, separator: ","}}`,
		func(n int) string { return `"s":"` + strings.Repeat(`\u00e4,`, n) + `"` }},
	"cast of YAML": {"s: {type: string}", "l: " + listOf(ofA), `{cast: {from: .s, to: .l, as: YAML}}`,
		func(n int) string { return `"s":"- &x {a: x}\n` + strings.Repeat(`- {<<: *x, b: \u00e4}\n`, n) + `"` }},
	"cast to YAML": {"l: " + listOf(ofA), "s: {type: string}", `{cast: {from: .l, to: .s, as: YAML}}`, repeated(`"l":[`, `{"a":"\u00e4%d"}`, `]`)},
	"cast of JSON": {"s: {type: string}", "l: " + textList, `{cast: {from: .s, to: .l, as: JSON}}`,
		func(n int) string { return `"s":"[` + strings.Repeat(`\"\u00e4\", `, n) + `\"\"]"` }},

	"map": {"m: " + mapOf(ofA), "m: " + mapOf(ofB), `{move: {from: ".m[*].a", to: ".m[*].b"}}`, repeated(`"m":{`, `"\u00e4%d":{"a":"x"}`, `}`)},
	"nested list": {"l: {type: array, items: " + listOf(ofA) + "}", "l: {type: array, items: " + listOf(ofB) + "}",
		`{move: {from: ".l[*][*].a", to: ".l[*][*].b"}}`, repeated(`"l":[`, `[{"a":"1"},{"a":"2"}]`, `]`)},
	"list with keys": {"l: " + keyedBy("name", ", "+ofA), "l: " + keyedBy("name", ", "+ofB), `{move: {from: ".l[*].a", to: ".l[*].b"}}`, repeated(`"l":[`, `{"name":"%d","a":"x"}`, `]`)},
	"moved list":     {"l: " + listOf(ofA), "k: " + listOf(ofB), `{move: {from: .l, to: .k}}, {move: {from: ".l[*].a", to: ".k[*].b"}}`, repeated(`"l":[`, `{"a":"%d"}`, `]`)},
	"list in another object": {"l: " + keyedBy("id", ", "+ofA), "o: " + objectOf("m: "+keyedBy("id", ", "+ofB)),
		`{move: {from: .l, to: .o.m}}, {move: {from: ".l[*].a", to: ".o.m[*].b"}}`, repeated(`"l":[`, `{"id":"%d","a":"x"}`, `]`)},

	"preserved leaf field of a moved list with keys": {"l: " + keyedBy("id", ", "+ofA), "k: " + keyedBy("name", ""),
		`{move: {from: .l, to: .k}}, {move: {from: ".l[*].id", to: ".k[*].name"}}`, repeated(`"l":[`, `{"id":"%d","a":"x"}`, `]`)},
	"preserved leaf field of a list in another object": {"l: " + keyedBy("id", ", "+ofA), "o: " + objectOf("m: "+keyedBy("id", "")),
		`{move: {from: .l, to: .o.m}}`, repeated(`"l":[`, `{"id":"%d","a":"x"}`, `]`)},
	"preserved objects in another object of an element": {
		"l: " + keyedBy("id", ", c: "+objectOf(ofA+", old: {type: string}")), "l: " + keyedBy("id", ", o: "+objectOf("d: "+objectOf(ofB))),
		`{move: {from: ".l[*].c", to: ".l[*].o.d"}}, {move: {from: ".l[*].c.a", to: ".l[*].o.d.b"}}`, repeated(`"l":[`, `{"id":"%d","c":{"a":"x","old":"y"}}`, `]`)},
	"preserved moved objects in a list": {"l: " + listOf("o: "+objectOf(ofA+", old: {type: string}")), "l: " + listOf("p: "+objectOf(ofA+", new: {type: string}")),
		`{move: {from: ".l[*].o", to: ".l[*].p"}}`, repeated(`"l":[`, `{"o":{"a":"%d","old":"x"}}`, `]`)},
	"preserved leaf field of a map":            {"m: " + mapOf(ofA), "m: " + mapOf(ofB), ``, repeated(`"m":{`, `"%d":{"a":"x"}`, `}`)},
	"preserved leaf field of a list with keys": {"l: " + keyedBy("name", ", "+ofA), "l: " + keyedBy("name", ""), ``, repeated(`"l":[`, `{"name":"%d","a":"x"}`, `]`)},
	"preserved leaf field of a list":           inList(ofA+", "+ofB, ofA, ``, `{"a":"%d","b":"x"}`),
	"preserved leaf field of alike":            inList(ofA+", "+ofB, ofA, ``, `{"a":"a","b":"%d"}`),
	"preserved leaf field of some alike": {"l: " + listOf(ofA+", "+ofB), "l: " + listOf(ofA), ``,
		func(n int) string { return repeated(`"l":[`, `{"a":"a"},{"a":"a","b":"x"}`, `]`)(n * 2) }},
	"preserved leaf field of nested lists": {"l: {type: array, items: " + listOf(ofA) + "}", "l: {type: array, items: " + listOf(ofB) + "}", ``,
		repeated(`"l":[`, `[{"a":"1"},{"a":"%d"}]`, `]`)},
	"preserved values of cel": inList(ofA, ofB,
		`{cel: {from: {a: ".l[*].a"}, to: {b: ".l[*].b"}, forward: {b: self.a}, backward: {a: "'x'"}}}`, `{"a":"%d"}`),
	"preserved values of a cast": inList(ofA, "b: {type: integer}", `{cast: {from: ".l[*].a", to: ".l[*].b", as: Integer}}`, `{"a":"0%d"}`),

	"unknown fields": {"o: {type: object, " + open + ", properties: {" + ofA + "}}", "o: " + objectOf(ofA), ``, repeated(`"o":{"a":"x",`, `"u%d":1`, `}`)},
	"unknown fields of a map": {"m: {type: object, additionalProperties: {type: object, " + open + ", properties: {" + ofA + "}}}", "m: " + mapOf(ofA), ``,
		repeated(`"m":{`, `"k%d":{"u":1}`, `}`)},
	"empty objects": {"m: " + mapOf("o: "+objectOf(ofA)+", c: {type: string}"), "m: " + mapOf("o: "+objectOf(ofB)+", "+ofA),
		`{move: {from: ".m[*].o.a", to: ".m[*].a"}}`, repeated(`"m":{`, `"%d":{"o":{"a":"x"},"c":"x"}`, `}`)},
}

// TestGrowth checks that an object which is eight times as large takes little more than eight times
// as long, in both directions; quadratic growth would take sixty-four times as long. It compares
// the CPU time of this process, the minimum of several runs, without the garbage collector, which
// would only run during the longer conversions.
func TestGrowth(t *testing.T) {
	const size, factor, most, tries = 500, 8, 30.0, 20
	defer debug.SetGCPercent(debug.SetGCPercent(-1))
	kinds := ofKinds(t)
	all := maps.Clone(growths)
	maps.Copy(all, kinds)
	for name, g := range all {
		result := between(t, g.v1, g.v2, g.rules)
		if _, ofElements := kinds[name]; ofElements {
			result = betweenGroups(t, g.v1, g.v2, "{name: kind, rules: ["+g.rules+"]}", `{use: {group: kind, from: ".l[*]", to: ".l[*]"}}`)
		}
		c := converterOf(t, result)
		for direction, to := range map[string]string{" to the hub": "v2", " back": "v1"} {
			t.Run(name+direction, func(t *testing.T) {
				small, large := g.at(t, c, size, to), g.at(t, c, factor*size, to)
				ratio := math.Inf(1)
				for try := 0; try < tries && ratio > most; try++ {
					ratio = min(ratio, work(t, c, large, to)/work(t, c, small, to))
				}
				if ratio > most {
					t.Errorf("%d times as much takes %.1f times the work", factor, ratio)
				}
			})
		}
	}
}

// at returns an object to convert to a version: of v1, or the same at v2.
func (g *growing) at(t testing.TB, c *conversion.Converter, n int, to string) []byte {
	t.Helper()
	object := `{"apiVersion":"example.com/v1","kind":"Widget","metadata":{"name":"w","uid":"u"},` + g.object(n) + `}`
	if to == "v1" {
		object = convert(t, c, object, "v2")
	}
	return []byte(object)
}

// work returns the minimum CPU time of a conversion, in seconds. It repeats short conversions.
func work(t testing.TB, c *conversion.Converter, object []byte, to string) float64 {
	t.Helper()
	const enough, long, runs = 2 * time.Millisecond, 0.5, 3
	runtime.GC()
	least := math.Inf(1)
	for run := 0; run < runs && (run == 0 || least < long); run++ {
		count, before := 0, processorTime(t)
		for count == 0 || processorTime(t)-before < enough {
			if _, err := c.Convert(nil, object, to); err != nil {
				t.Fatal(err)
			}
			count++
		}
		least = min(least, (processorTime(t)-before).Seconds()/float64(count))
	}
	return least
}

// processorTime returns the CPU time of this process.
func processorTime(t testing.TB) time.Duration {
	t.Helper()
	used, err := processorUsed()
	expect.NoError(t, err)
	return used
}

func processorUsed() (time.Duration, error) {
	var used syscall.Rusage
	err := syscall.Getrusage(syscall.RUSAGE_SELF, &used)
	return time.Duration(used.Utime.Nano() + used.Stime.Nano()), err
}
