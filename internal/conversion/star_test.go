// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package conversion_test

import "testing"

// FuzzStar: there is no other way between two spokes than through the hub.
func FuzzStar(f *testing.F) {
	fuzzWorlds(f, func(t *testing.T, w *world) {
		for _, pair := range [][2]string{{"v1", "v3"}, {"v3", "v1"}} {
			object := w.object(pair[0])
			atHub := convert(t, w.converter, object, "v2")
			want, got := convert(t, w.converter, atHub, pair[1]), convert(t, w.converter, object, pair[1])
			wantEqual(t, legible(t, want), legible(t, got), "%s\nis at the hub\n%s", object, atHub)
		}
	})
}
