// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

// The race detector makes pools forget at random, so that memory is needed again.
//go:build !race

package webhook

import "testing"

// TestNoMemoryPerObject holds what makes the latency of a call even: an API
// server's review needs no memory but the buffers that are there already, neither
// to be converted nor to be counted.
func TestNoMemoryPerObject(t *testing.T) {
	handler := newSample(t)
	for _, count := range []int{1, 50} {
		body := sampleReview(count)
		x := handler.newExchange()
		allocations := testing.AllocsPerRun(200, func() {
			*x = exchange{handler: handler, converter: handler.converters["abc"], began: x.began, in: append(x.in[:0], body...), out: x.out[:0], stop: x.stop}
			if refused := x.respond(t.Context()); refused != nil || x.cause != nil || x.count != count {
				t.Fatalf("%d objects: %v, %v", x.count, refused, x.cause)
			}
			handler.metrics.request(x)
		})
		if allocations != 0 {
			t.Errorf("%d objects: %v allocations", count, allocations)
		}
	}
}
