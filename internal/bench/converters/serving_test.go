// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package converters

import "testing"

// BenchmarkServing is profiled by `make profile`: our handler on each of the bodies, for the same
// time.
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
