// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package conversion_test

import (
	"testing"

	"github.com/conversion-operator/conversion-operator/internal/conversion/internal/generate"
)

// FuzzSpelling: white space, the order of members, and characters that are escaped
// and need not be, mean nothing.
func FuzzSpelling(f *testing.F) {
	fuzzWorlds(f, func(t *testing.T, w *world) {
		from, to := w.pair()
		value := decode(t, convert(t, w.converter, w.object(to), from))
		plain, odd := generate.Plain(value), string(w.Text(value))
		want, got := convert(t, w.converter, plain, to), convert(t, w.converter, odd, to)
		wantEqual(t, legible(t, want), legible(t, got), "%s\nis, written otherwise,\n%s", plain, odd)
	})
}
