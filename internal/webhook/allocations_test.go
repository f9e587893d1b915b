// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

// The race detector makes pools forget at random, so that memory is needed again.
//go:build !race

package webhook

import (
	"testing"
)

// mostAllocations is the number of allocations for an object, of which most are for its annotation.
const mostAllocations = 10

// TestMemoryPerObject checks that the review of an API server is converted and counted in memory that is used again, which
// keeps latency even.
func TestMemoryPerObject(t *testing.T) {
	handler := newSample(t)
	for _, count := range []int{1, 50} {
		body := sampleReview(count)
		x := begin(t, handler)
		allocations := testing.AllocsPerRun(200, func() {
			handler.limiters.bodies.release(&x.claim)
			*x = exchange{claim: x.claim, handler: handler, served: x.served, kind: x.kind, ruleset: x.ruleset, converter: x.ruleset.Converter, began: x.began, in: append(x.in[:0], body...), out: x.out[:0], stop: x.stop}
			if refused := x.respond(t.Context()); refused != nil || x.cause != nil || x.converted != count {
				t.Fatalf("%d objects: %v, %v", x.converted, refused, x.cause)
			}
			x.kind.metrics.request(x)
		})
		if most := float64(mostAllocations * count); allocations > most {
			t.Errorf("%d objects: %v allocations, at most %v are wanted", count, allocations, most)
		}
	}
}
