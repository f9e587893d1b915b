// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package conversion converts objects between the versions of one kind by
// two-way rules. It is pure: no client, no context, no clock.
//
// Package compile checks the rules of a policy against the schemas of a
// CustomResourceDefinition. The result is a Ruleset (ruleset.go): a tree of scopes. A scope
// is the root of an object, or the elements of a list or map, with the rules and the
// one-sided fields of that object. A converter pod links this package and not the
// compiler, so this package imports no schema library.
//
// If rules give an object, list or map another name and change fields in it, objects of the spoke get
// the names of the hub for the conversion (names.go). If rules also move it to another object, rules and pointers
// name it by its place (place.go). Elements that the other version cannot have leave lists before the
// conversion, and are put back after it (exclude.go).
//
// A Converter (convert.go) converts objects by a ruleset. It prepares each scope as two
// directions, to the hub and from it (direction.go, prepare.go), with fast lookups of
// names (name.go). It parses only the parts of an object that the ruleset uses (parse.go,
// scan.go); everything else stays bytes. Then each scope moves values and preserves
// what the other version cannot express (step.go, parents.go, exchange.go with
// values.go, index.go, cel.go with missing.go, and default.go; elements.go for lists and maps).
// All memory is reused for the next object (arena.go): the usual conversion allocates
// nothing.
//
// One law makes a conversion lossless and preserved data fresh. Converting x writes
// y = forward(x). If backward(y) differs from x, x is preserved in an annotation
// (preserved.go, preserved_write.go). On the way back from y' with the preserved s
// (preserved_read.go, merge.go): if forward(s) equals y', s is restored. Otherwise
// a client has edited the other version, s is stale, and backward(y') wins.
// Users can write annotations, so preserved data is only used where the ruleset allows it.
package conversion
