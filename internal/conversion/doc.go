// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package conversion converts objects between the versions of one kind by
// two-way rules. It is pure: no client, no context, no clock.
//
// Package compile checks the rules of a policy against the schemas of a
// CustomResourceDefinition. The result is a Ruleset (ruleset.go): a tree of scopes, the root
// of an object and the elements of lists and maps, each with its rules and with the
// fields that one side only has. A converter pod links this package and not the
// compiler, so this package imports no schema library.
//
// A Converter (convert.go) converts objects by a ruleset. It prepares the ruleset as
// ways, one for each direction of each scope (direction.go, prepare.go), with a lookup of
// names (name.go). It parses an object as far as the ruleset looks into it (parse.go,
// scan.go); everything else stays bytes. Then each scope moves values and preserves
// what the other version cannot express (step.go, parents.go, exchange.go with
// values.go, index.go, cel.go and default.go, and elements.go for lists and maps).
// All of it uses memory that is reused for the next object (arena.go): the usual
// conversion allocates nothing.
//
// One law makes a conversion lossless and keeps it fresh. Converting x writes
// y = forward(x). If backward(y) is not x, x is preserved in an annotation
// (preserved.go, preserved_write.go). Coming back from y' with s preserved
// (preserved_read.go, merge.go): if forward(s) is y', s is restored; otherwise
// a client has edited the other version, s is stale, and backward(y') wins.
// Users can write preserved data, so it is looked up only where the ruleset allows it.
package conversion
