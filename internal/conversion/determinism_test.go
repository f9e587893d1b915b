// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package conversion_test

import (
	"sync"
	"testing"

	"github.com/conversion-operator/conversion-operator/internal/conversion"
)

// FuzzDeterminism: the same object gives the same bytes, whoever converts it,
// whatever was converted before, and however many do it at once.
func FuzzDeterminism(f *testing.F) {
	fuzzWorlds(f, func(t *testing.T, w *world) {
		from, to := w.pair()
		object := w.object(from)
		want := convert(t, w.converter, object, to)
		another, err := conversion.NewConverter(w.plan)
		if err != nil {
			t.Fatal(err)
		}
		convert(t, another, w.object(to), from)
		var all sync.WaitGroup
		for range 4 {
			all.Go(func() {
				got, err := another.Convert([]byte("before"), []byte(object), to)
				if err != nil || string(got) != "before"+want {
					t.Errorf("%s is\n%s, and again\n%s, %v", object, want, got, err)
				}
			})
		}
		all.Wait()
	})
}
