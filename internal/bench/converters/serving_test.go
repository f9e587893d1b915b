// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package converters

import "testing"

// BenchmarkServing is what `make profile` takes the profile of: our handler, for
// the same time on each of the bodies.
func BenchmarkServing(b *testing.B) {
	all, err := subjects()
	if err != nil {
		b.Fatal(err)
	}
	reviews, err := bodies()
	if err != nil {
		b.Fatal(err)
	}
	for _, s := range all {
		if s.name != ours {
			continue
		}
		for _, r := range reviews {
			b.Run(r.name, func(b *testing.B) {
				client := newClient(s.handler, r.text)
				for b.Loop() {
					client.call()
				}
			})
		}
	}
}
