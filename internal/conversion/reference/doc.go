// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package reference converts objects by a ruleset slowly, on decoded values. It is written to be read
// and to be compared with the engine of package conversion, from which it imports nothing: tests of
// that package convert the same objects with both and compare the results.
//
// A ruleset is read into directions, to the hub and to the spoke (ruleset.go, direction.go), so that
// the rest of the code does not distinguish hub and spoke. A direction implements the law of package
// conversion:
//
//   - forward (forward.go) writes y from x. It restores preserved data s of y where that converts to
//     the current data of x, or where x never had corresponding data; otherwise a client edited x, and
//     the edit wins.
//   - convert, also in forward.go, preserves the differences between x and the result of converting y
//     back.
//   - mergeUnclaimed (unclaimed.go) merges preserved data that no rule looks up into y (merge.go), and
//     keeps in the annotation what cannot be merged.
//
// Where fields in a moved object, list or map have rules of their own, objects and preserved data of the
// spoke get the names of the hub before a conversion, and their own names after it (names.go).
//
// exchange.go computes the values of one side from those of the other, elements.go pairs the elements
// of lists and maps, and object.go converts whole objects: versions, metadata and annotations, which
// annotation.go reads and writes. The page about preserved data in the API documentation is the
// specification.
package reference
