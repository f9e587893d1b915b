// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package conversion

import (
	"testing"

	"github.com/conversion-operator/conversion-operator/internal/conversion/internal/generate"
)

// FuzzNoGrowth: an object that is converted back and forth again and again is the
// same every time, and so is what is kept aside.
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
		around() // drops what the rules give up, on every way
		first := around()
		for range 2 {
			wantEqual(t, legible(t, first), legible(t, around()), "by way of %v", path)
		}
	})
}
