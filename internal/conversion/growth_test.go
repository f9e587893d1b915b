// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package conversion_test

import (
	"math"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/conversion-operator/conversion-operator/internal/conversion"
	"github.com/conversion-operator/conversion-operator/internal/conversion/internal/generate"
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
	const list = `l: {type: array, items: {type: object, properties: {%s}}}`
	return growing{strings.Replace(list, "%s", v1, 1), strings.Replace(list, "%s", v2, 1), rules, repeated(`"l":[`, element, `]`)}
}

const (
	open    = `x-kubernetes-preserve-unknown-fields: true`
	byNames = `x-kubernetes-list-type: map, x-kubernetes-list-map-keys: [name]`
)

// growths has each kind of rule and of preserved data.
var growths = map[string]growing{
	"move":   inList("a: {type: string}", "b: {type: string}", `{move: {from: ".l[*].a", to: ".l[*].b"}}`, `{"a":"%d"}`),
	"values": inList("a: {type: string}", "b: {type: string}", `{values: {from: ".l[*].a", to: ".l[*].b", table: [{from: a, to: b}]}}`, `{"a":"a"}`),
	"format": inList("a: {type: string}", "p: {type: string}, q: {type: integer}",
		`{format: {from: ".l[*].a", template: "{p}:{q}", to: {p: ".l[*].p", q: ".l[*].q"}}}`, `{"a":"h:%d"}`),
	"wrap":    inList("a: {type: string}", "b: {type: array, items: {type: string}}", `{wrap: {from: ".l[*].a", to: ".l[*].b"}}`, `{"a":"%d"}`),
	"cast":    inList("a: {type: string}", "b: {type: integer}", `{cast: {from: ".l[*].a", to: ".l[*].b", as: Integer}}`, `{"a":"%d"}`),
	"default": inList("a: {type: string}", "a: {type: string}, b: {type: string}", `{default: {to: ".l[*].b", value: x}}`, `{"a":"%d"}`),
	"exclude": inList("a: {type: string}", "a: {type: string}, b: {type: string}", `{exclude: {from: ".l[*]", without: .a, values: [x]}}`, `{"a":"%d"}`),
	"exclude back": {
		v1: `l: {type: array, items: {type: object, properties: {a: {type: string}, b: {type: string}}}}`, v2: `l: {type: array, items: {type: object, properties: {b: {type: string}}}}`,
		rules: `{exclude: {to: ".l[*]", without: .b}}`, object: repeated(`"l":[`, `{"a":"%d"},{"b":"%d"}`, `]`),
	},
	"drop": inList("a: {type: string}, b: {type: string}", "a: {type: string}", `{drop: {from: ".l[*].b"}}`, `{"a":"%d","b":"x"}`),
	"cel": inList("a: {type: string}", "b: {type: string}",
		`{cel: {from: {a: ".l[*].a"}, to: {b: ".l[*].b"}, forward: {b: self.a}, backward: {a: self.b}}}`, `{"a":"%d"}`),
	"cel over a list": {
		v1: `l: {type: array, items: {type: string}}`, v2: `s: {type: string}`,
		rules:  `{cel: {from: {l: .l}, to: {s: .s}, forward: {s: "self.l.join(',')"}, backward: {l: "self.s.split(',')"}}}`,
		object: repeated(`"l":[`, `"%d"`, `]`),
	},
	"index": {
		v1: `l: {type: array, items: {type: object, properties: {k: {type: string}}}}`, v2: `m: {type: object, additionalProperties: {type: object}}`,
		rules: `{index: {from: .l, to: .m, key: k}}`, object: repeated(`"l":[`, `{"k":"\u00e4%d"}`, `]`),
	},
	"index of integers": {
		v1: `l: {type: array, items: {type: object, properties: {k: {type: integer}}}}`, v2: `m: {type: object, additionalProperties: {type: object}}`,
		rules: `{index: {from: .l, to: .m, key: k}}`, object: repeated(`"l":[`, `{"k":%d}`, `]`),
	},
	"index of plain keys": {
		v1: `l: {type: array, items: {type: object, properties: {k: {type: string}}}}`, v2: `m: {type: object, additionalProperties: {type: object}}`,
		rules: `{index: {from: .l, to: .m, key: k}}`, object: repeated(`"l":[`, `{"k":"%d"}`, `]`),
	},
	"index of a map": {
		v1: `m: {type: object, additionalProperties: {type: object}}`, v2: `l: {type: array, items: {type: object, properties: {k: {type: string}}}}`,
		rules: `{index: {from: .m, to: .l, key: k}}`, object: repeated(`"m":{`, `"\u00e4%d":{}`, `}`),
	},
	"cast of a list": {
		v1: `l: {type: array, items: {type: string}}`, v2: `s: {type: string}`,
		rules: `{cast: {from: .l, to: .s, as: List, separator: ","}}`, object: repeated(`"l":[`, `"\u00e4%d"`, `]`),
	},
	"cast to a list": {
		v1: `s: {type: string}`, v2: `l: {type: array, items: {type: string}}`, rules: `{cast: {from: .s, to: .l, as: List, separator: ","}}`,
		object: func(n int) string { return `"s":"` + strings.Repeat(`\u00e4,`, n) + `"` },
	},
	"cast of YAML": {
		v1: `s: {type: string}`, v2: `l: {type: array, items: {type: object, properties: {a: {type: string}}}}`, rules: `{cast: {from: .s, to: .l, as: YAML}}`,
		object: func(n int) string { return `"s":"- &x {a: x}\n` + strings.Repeat(`- {<<: *x, b: \u00e4}\n`, n) + `"` },
	},
	"cast to YAML": {
		v1: `l: {type: array, items: {type: object, properties: {a: {type: string}}}}`, v2: `s: {type: string}`, rules: `{cast: {from: .l, to: .s, as: YAML}}`,
		object: repeated(`"l":[`, `{"a":"\u00e4%d"}`, `]`),
	},
	"cast of JSON": {
		v1: `s: {type: string}`, v2: `l: {type: array, items: {type: string}}`, rules: `{cast: {from: .s, to: .l, as: JSON}}`,
		object: func(n int) string { return `"s":"[` + strings.Repeat(`\"\u00e4\", `, n) + `\"\"]"` },
	},
	"index of values": {
		v1: `l: {type: array, items: {type: object, properties: {k: {type: string}, v: {type: string}, w: {type: string}}}}`, v2: `m: {type: object, additionalProperties: {type: string}}`,
		rules: `{index: {from: .l, to: .m, key: k, value: v}}`, object: repeated(`"l":[`, `{"k":"\u00e4%d","v":"%[1]d","w":"x"}`, `]`),
	},
	"wrap of values": {
		v1: `l: {type: array, items: {type: object, properties: {k: {type: string}, w: {type: string}}}}`, v2: `names: {type: array, items: {type: string}}`,
		rules: `{wrap: {from: .l, to: .names, field: k}}`, object: repeated(`"l":[`, `{"k":"\u00e4%d","w":"x"}`, `]`),
	},
	"wrap of the same values": {
		v1: `l: {type: array, items: {type: object, properties: {k: {type: string}, w: {type: string}}}}`, v2: `names: {type: array, items: {type: string}}`,
		rules: `{wrap: {from: .l, to: .names, field: k}}`, object: repeated(`"l":[`, `{"k":"a","w":"%d"}`, `]`),
	},
	"wrap of values of a map": {
		v1: `m: {type: object, additionalProperties: {type: object, properties: {k: {type: string}, w: {type: string}}}}`, v2: `names: {type: object, additionalProperties: {type: string}}`,
		rules: `{wrap: {from: .m, to: .names, field: k}}`, object: repeated(`"m":{`, `"\u00e4%d":{"k":"a","w":"x"}`, `}`),
	},
	"escapes in a text": {
		v1: `a: {type: string}`, v2: `b: {type: array, items: {type: string}}`, rules: `{wrap: {from: .a, to: .b}}`,
		object: func(n int) string { return `"a":"` + strings.Repeat(`\u00e4\n`, n) + `"` },
	},
	"map": {
		v1: `m: {type: object, additionalProperties: {type: object, properties: {a: {type: string}}}}`,
		v2: `m: {type: object, additionalProperties: {type: object, properties: {b: {type: string}}}}`, rules: `{move: {from: ".m[*].a", to: ".m[*].b"}}`,
		object: repeated(`"m":{`, `"\u00e4%d":{"a":"x"}`, `}`),
	},
	"nested list": {
		v1:    `l: {type: array, items: {type: array, items: {type: object, properties: {a: {type: string}}}}}`,
		v2:    `l: {type: array, items: {type: array, items: {type: object, properties: {b: {type: string}}}}}`,
		rules: `{move: {from: ".l[*][*].a", to: ".l[*][*].b"}}`, object: repeated(`"l":[`, `[{"a":"1"},{"a":"2"}]`, `]`),
	},
	"list with keys": {
		v1:    `l: {type: array, ` + byNames + `, items: {type: object, required: [name], properties: {name: {type: string}, a: {type: string}}}}`,
		v2:    `l: {type: array, ` + byNames + `, items: {type: object, required: [name], properties: {name: {type: string}, b: {type: string}}}}`,
		rules: `{move: {from: ".l[*].a", to: ".l[*].b"}}`, object: repeated(`"l":[`, `{"name":"%d","a":"x"}`, `]`),
	},
	"moved list": {
		v1:    `l: {type: array, items: {type: object, properties: {a: {type: string}}}}`,
		v2:    `k: {type: array, items: {type: object, properties: {b: {type: string}}}}`,
		rules: `{move: {from: .l, to: .k}}, {move: {from: ".l[*].a", to: ".k[*].b"}}`, object: repeated(`"l":[`, `{"a":"%d"}`, `]`),
	},
	"preserved leaf field of a moved list with keys": {
		v1:    `l: {type: array, x-kubernetes-list-type: map, x-kubernetes-list-map-keys: [id], items: {type: object, required: [id], properties: {id: {type: string}, a: {type: string}}}}`,
		v2:    `k: {type: array, ` + byNames + `, items: {type: object, required: [name], properties: {name: {type: string}}}}`,
		rules: `{move: {from: .l, to: .k}}, {move: {from: ".l[*].id", to: ".k[*].name"}}`, object: repeated(`"l":[`, `{"id":"%d","a":"x"}`, `]`),
	},
	"list in another object": {
		v1:    "l: {type: array, x-kubernetes-list-type: map, x-kubernetes-list-map-keys: [id], items: {type: object, properties: {id: {type: string}, a: {type: string}}}}",
		v2:    "o: {type: object, properties: {m: {type: array, x-kubernetes-list-type: map, x-kubernetes-list-map-keys: [id], items: {type: object, properties: {id: {type: string}, b: {type: string}}}}}}",
		rules: `{move: {from: .l, to: .o.m}}, {move: {from: ".l[*].a", to: ".o.m[*].b"}}`, object: repeated(`"l":[`, `{"id":"%d","a":"x"}`, `]`),
	},
	"preserved leaf field of a list in another object": {
		v1:    "l: {type: array, x-kubernetes-list-type: map, x-kubernetes-list-map-keys: [id], items: {type: object, properties: {id: {type: string}, a: {type: string}}}}",
		v2:    "o: {type: object, properties: {m: {type: array, x-kubernetes-list-type: map, x-kubernetes-list-map-keys: [id], items: {type: object, properties: {id: {type: string}}}}}}",
		rules: `{move: {from: .l, to: .o.m}}`, object: repeated(`"l":[`, `{"id":"%d","a":"x"}`, `]`),
	},
	"preserved objects in another object of an element": {
		v1:    "l: {type: array, x-kubernetes-list-type: map, x-kubernetes-list-map-keys: [id], items: {type: object, properties: {id: {type: string}, c: {type: object, properties: {a: {type: string}, old: {type: string}}}}}}",
		v2:    "l: {type: array, x-kubernetes-list-type: map, x-kubernetes-list-map-keys: [id], items: {type: object, properties: {id: {type: string}, o: {type: object, properties: {d: {type: object, properties: {b: {type: string}}}}}}}}",
		rules: `{move: {from: ".l[*].c", to: ".l[*].o.d"}}, {move: {from: ".l[*].c.a", to: ".l[*].o.d.b"}}`, object: repeated(`"l":[`, `{"id":"%d","c":{"a":"x","old":"y"}}`, `]`),
	},
	"preserved moved objects in a list": {
		v1:    `l: {type: array, items: {type: object, properties: {o: {type: object, properties: {a: {type: string}, old: {type: string}}}}}}`,
		v2:    `l: {type: array, items: {type: object, properties: {p: {type: object, properties: {a: {type: string}, new: {type: string}}}}}}`,
		rules: `{move: {from: ".l[*].o", to: ".l[*].p"}}`, object: repeated(`"l":[`, `{"o":{"a":"%d","old":"x"}}`, `]`),
	},
	"preserved leaf field of a map": {
		v1:     `m: {type: object, additionalProperties: {type: object, properties: {a: {type: string}}}}`,
		v2:     `m: {type: object, additionalProperties: {type: object, properties: {b: {type: string}}}}`,
		object: repeated(`"m":{`, `"%d":{"a":"x"}`, `}`),
	},
	"preserved leaf field of a list with keys": {
		v1:     `l: {type: array, ` + byNames + `, items: {type: object, required: [name], properties: {name: {type: string}, a: {type: string}}}}`,
		v2:     `l: {type: array, ` + byNames + `, items: {type: object, required: [name], properties: {name: {type: string}}}}`,
		object: repeated(`"l":[`, `{"name":"%d","a":"x"}`, `]`),
	},
	"preserved leaf field of a list": inList("a: {type: string}, b: {type: string}", "a: {type: string}", ``, `{"a":"%d","b":"x"}`),
	"preserved leaf field of alike":  inList("a: {type: string}, b: {type: string}", "a: {type: string}", ``, `{"a":"a","b":"%d"}`),
	"preserved leaf field of some alike": {
		v1:     `l: {type: array, items: {type: object, properties: {a: {type: string}, b: {type: string}}}}`,
		v2:     `l: {type: array, items: {type: object, properties: {a: {type: string}}}}`,
		object: func(n int) string { return repeated(`"l":[`, `{"a":"a"},{"a":"a","b":"x"}`, `]`)(n * 2) },
	},
	"preserved values of cel": inList("a: {type: string}", "b: {type: string}",
		`{cel: {from: {a: ".l[*].a"}, to: {b: ".l[*].b"}, forward: {b: self.a}, backward: {a: "'x'"}}}`, `{"a":"%d"}`),
	"preserved values of a cast": inList("a: {type: string}", "b: {type: integer}", `{cast: {from: ".l[*].a", to: ".l[*].b", as: Integer}}`, `{"a":"0%d"}`),
	"preserved leaf field of nested lists": {
		v1:     `l: {type: array, items: {type: array, items: {type: object, properties: {a: {type: string}}}}}`,
		v2:     `l: {type: array, items: {type: array, items: {type: object, properties: {b: {type: string}}}}}`,
		object: repeated(`"l":[`, `[{"a":"1"},{"a":"%d"}]`, `]`),
	},
	"unknown fields": {
		v1: `o: {type: object, ` + open + `, properties: {a: {type: string}}}`, v2: `o: {type: object, properties: {a: {type: string}}}`,
		object: repeated(`"o":{"a":"x",`, `"u%d":1`, `}`),
	},
	"unknown fields of a map": {
		v1:     `m: {type: object, additionalProperties: {type: object, ` + open + `, properties: {a: {type: string}}}}`,
		v2:     `m: {type: object, additionalProperties: {type: object, properties: {a: {type: string}}}}`,
		object: repeated(`"m":{`, `"k%d":{"u":1}`, `}`),
	},
	"empty objects": {
		v1:    `m: {type: object, additionalProperties: {type: object, properties: {o: {type: object, properties: {a: {type: string}}}, c: {type: string}}}}`,
		v2:    `m: {type: object, additionalProperties: {type: object, properties: {o: {type: object, properties: {b: {type: string}}}, a: {type: string}}}}`,
		rules: `{move: {from: ".m[*].o.a", to: ".m[*].a"}}`, object: repeated(`"m":{`, `"%d":{"o":{"a":"x"},"c":"x"}`, `}`),
	},
}

// TestGrowth checks that an object which is eight times as large takes little more than eight times
// as long, in both directions; quadratic growth would take sixty-four times as long. It compares
// the CPU time of this process, the minimum of several runs, without the garbage collector, which
// would only run during the longer conversions.
func TestGrowth(t *testing.T) {
	const size, factor, most, tries = 500, 8, 30.0, 20
	defer debug.SetGCPercent(debug.SetGCPercent(-1))
	for name, g := range growths {
		c := converterOf(t, between(t, g.v1, g.v2, g.rules))
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
	if err != nil {
		t.Fatal(err)
	}
	return used
}

func processorUsed() (time.Duration, error) {
	var used syscall.Rusage
	err := syscall.Getrusage(syscall.RUSAGE_SELF, &used)
	return time.Duration(used.Utime.Nano() + used.Stime.Nano()), err
}
