// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package conversion converts objects between the versions of one kind by
// two-way rules. It is pure: no client, no context, no clock.
//
// Package compile holds the rules of a policy against the schemas of a
// CustomResourceDefinition. The result is a Plan (plan.go), which knows no schema any
// more: a tree of scopes, the root of an object and the elements of lists and maps,
// each with the rules and the one-sided fields that are local to it. A converter pod
// links this package and not the compiler, so this package imports no schema library.
//
// A Converter (convert.go) answers for a plan. It prepares the plan as ways
// (way.go, prepare.go), one for each direction of each scope, and the names in it
// for being found (name.go, byname.go). It parses an object as far as the plan
// looks into it (look.go, parse.go, scan.go); everything else stays the bytes that
// it was. Then each scope moves values and sets them aside (hop.go, parents.go,
// exchange.go with format.go, values.go, wrap.go, cast.go, index.go and cel.go,
// default.go, elements.go, shared.go). All of it happens in memory that is used
// again for the next object (arena.go): the usual conversion allocates nothing.
//
// One law makes a conversion lossless and keeps it fresh. Converting x writes
// y = forward(x). If backward(y) is not x, then x is kept aside in an
// annotation (kept.go). Coming back from y' with s kept aside: if forward(s) is
// y', s is restored; otherwise somebody has edited the other version, s is
// stale, and backward(y') wins. Kept data is input that users can write, so it
// is looked up only where the plan says that it may be.
package conversion
