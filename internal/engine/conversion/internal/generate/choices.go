// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package generate

import (
	"math/rand/v2"
	"slices"
)

// Choices are determined by a fuzzer's bytes, one byte each, and are random after these. The same
// seed and bytes give the same choices.
type Choices struct {
	seed  uint64
	bytes []byte
	rest  *rand.Rand
	// WithoutExpressions makes no rules with expressions, whatever the seed says.
	WithoutExpressions bool
}

// Choose starts with the bytes and continues with the seed.
func Choose(seed uint64, bytes []byte) *Choices {
	return &Choices{seed: seed, bytes: bytes, rest: rand.New(rand.NewPCG(seed, 0))}
}

// Restart makes all later choices depend only on the seed and a number.
func (c *Choices) Restart(number uint64) {
	c.bytes, c.rest = nil, rand.New(rand.NewPCG(c.seed, number))
}

// IntN returns a number in [0, n). It is 0 if the byte is 0.
func (c *Choices) IntN(n int) int {
	if len(c.bytes) == 0 {
		return c.rest.IntN(n)
	}
	choice := int(c.bytes[0])
	c.bytes = c.bytes[1:]
	return choice % n
}

// Rarely reports true once in the given number of times.
func (c *Choices) Rarely(times int) bool { return c.IntN(times) == times-1 }

// Often reports false once in the given number of times.
func (c *Choices) Often(times int) bool { return !c.Rarely(times) }

// One returns one of the values.
func One[T any](c *Choices, values ...T) T { return values[c.IntN(len(values))] }

// Shuffled returns the values in random order.
func Shuffled[T any](c *Choices, values []T) []T {
	values = slices.Clone(values)
	for i := len(values) - 1; i > 0; i-- {
		j := c.IntN(i + 1)
		values[i], values[j] = values[j], values[i]
	}
	return values
}
