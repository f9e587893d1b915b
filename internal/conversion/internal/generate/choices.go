// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package generate

import (
	"math/rand/v2"
	"slices"
)

// Choices are made by a fuzzer's bytes, one byte each, and at random behind them.
// The same seed and bytes give the same choices.
type Choices struct {
	seed  uint64
	bytes []byte
	rest  *rand.Rand
}

// Choose begins with the bytes and goes on with the seed.
func Choose(seed uint64, bytes []byte) *Choices {
	return &Choices{seed, bytes, rand.New(rand.NewPCG(seed, 0))}
}

// Restart makes the choices behind it depend on nothing but the seed and a number.
func (c *Choices) Restart(number uint64) {
	c.bytes, c.rest = nil, rand.New(rand.NewPCG(c.seed, number))
}

// IntN returns a number from 0 up to n, without n. It is 0 where the byte is.
func (c *Choices) IntN(n int) int {
	if len(c.bytes) == 0 {
		return c.rest.IntN(n)
	}
	choice := int(c.bytes[0])
	c.bytes = c.bytes[1:]
	return choice % n
}

// Rarely reports true once in that many times.
func (c *Choices) Rarely(times int) bool { return c.IntN(times) == times-1 }

// Often reports true but for once in that many times.
func (c *Choices) Often(times int) bool { return !c.Rarely(times) }

// One returns one of some values.
func One[T any](c *Choices, values ...T) T { return values[c.IntN(len(values))] }

// Shuffled returns values in any order.
func Shuffled[T any](c *Choices, values []T) []T {
	values = slices.Clone(values)
	for i := len(values) - 1; i > 0; i-- {
		j := c.IntN(i + 1)
		values[i], values[j] = values[j], values[i]
	}
	return values
}
