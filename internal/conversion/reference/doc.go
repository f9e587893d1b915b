// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package reference converts objects by a ruleset slowly, on decoded values. It is
// there to be read, and to be held against the engine of package conversion,
// which it imports nothing of: tests of that package convert the same objects by
// both and compare the results.
//
// A ruleset is read into ways, one for each direction (ruleset.go, direction.go), so that all
// the rest knows no hub and no spoke. A way states the law of package conversion:
//
//   - forward (forward.go) writes y, which has what was taken from x at its new
//     place. Coming back with something preserved, s is restored where it
//     converts to what is there now, or had nothing there; otherwise a client
//     has edited that, and the edit wins.
//   - convert, also there, preserves what is not the same in x and in what y
//     converts back to.
//   - carry (carry.go) merges into y what is preserved and no rule looks up
//     (merge.go), and carries on what cannot be merged.
//
// exchange.go has the functions that compute the values of one side from those of
// the other, elements.go pairs the elements of lists and maps, and object.go has
// what makes a conversion of a whole object: versions, metadata and annotations,
// which annotation.go reads and writes. The page about preserved data in the
// documentation of the API is the specification of all of that.
package reference
