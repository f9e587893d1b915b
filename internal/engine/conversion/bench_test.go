// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package conversion_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/conversion-operator/conversion-operator/internal/engine/conversion"
)

// BenchmarkConvert converts objects of two sizes. Most of a large one is managedFields, which no
// rule reads.
func BenchmarkConvert(b *testing.B) {
	c := sample(b, "crontab-cronspec")
	for _, size := range []int{2 << 10, 10 << 10} {
		const entry = `{"manager":"kubectl","operation":"Apply","fieldsV1":{"f:spec":{"f:cronSpec":{},"f:image":{},"f:replicas":{}}}}`
		managed := strings.Repeat(entry+",", (size-300)/(len(entry)+1)) + entry
		object := []byte(`{"apiVersion":"stable.example.com/v1","kind":"CronTab","metadata":{"name":"a","namespace":"b","managedFields":[` +
			managed + `]},"spec":{"cronSpec":"*/5 9 * * 1","image":"i","replicas":1,"owner":"data team"}}`)
		b.Run(fmt.Sprintf("%dKB", size>>10), func(b *testing.B) { convertOften(b, c, string(object), "v2") })
	}
}

// BenchmarkGrowth converts a thousand elements by each kind of rule and of preserved data, in both
// directions.
func BenchmarkGrowth(b *testing.B) {
	for _, name := range slices.Sorted(maps.Keys(growths)) {
		g := growths[name]
		c := converterOf(b, between(b, g.v1, g.v2, g.rules))
		for _, to := range []string{"v2", "v1"} {
			b.Run(name+"/"+map[string]string{"v2": "to the hub", "v1": "back"}[to], func(b *testing.B) {
				convertOften(b, c, string(g.at(b, c, 1000, to)), to)
			})
		}
	}
}

func convertOften(b *testing.B, c *conversion.Converter, object, to string) {
	b.SetBytes(int64(len(object)))
	b.ReportAllocs()
	var dst []byte
	text := []byte(object)
	for b.Loop() {
		var err error
		if dst, err = c.Convert(dst[:0], text, to); err != nil {
			b.Fatal(err)
		}
	}
}
