// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package conversion

// Valid reports what is wrong with a JSON text, nil where nothing is. It reads
// every byte once, as Convert does, and looks into nothing: the least that a
// converter can do, and so the mark that benchmarks hold Convert against.
func Valid(text []byte) error {
	p := parser{arena: new(arena), src: text}
	end, err := p.skip(skipSpace(text, 0))
	if err != nil {
		return err
	}
	return onlySpace(text, end)
}
