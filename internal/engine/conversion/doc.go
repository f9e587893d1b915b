// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package conversion converts objects between the versions of one kind by
// two-way rules. It is pure: no client, no context, no clock.
//
// Package compile checks the rules of a policy against the schemas of a
// CustomResourceDefinition. The result is a Ruleset (ruleset.go, stored.go): a tree of scopes. A scope
// is the root of an object, or the elements of a list or map, with the rules and the
// one-sided fields of that object. A converter pod links this package and not the
// compiler, so this package imports no schema library.
//
// A Converter (convert.go) converts objects by a ruleset. It prepares each scope as two functions (function.go), to the
// hub and from it, which compute values by the rules in it (exchange.go with cast.go, common.go and values.go; cel.go; reads.go
// says what they read; sided.go, what the target version lacks; emptied.go, which objects are left without anything; reverse.go,
// what the other direction gives again).
// Objects are immutable trees (package tree), of which only the parts are read that rules look into.
//
// Values that rules move while other rules are for fields in them are collections of a scope, too: what is in them is a scope
// of its own (each.go), which may have another form in each version. Elements that the other version cannot have are left out.
//
// The functions know nothing of preserved data. What they lose is preserved in annotations (preserved.go), and restored when
// the object comes back, by package preserve, for which they are bound to one object (bound.go): it writes an entry for each
// difference between an object and what comes back of it, and restores the entries that contradict nothing at the other
// version. Spokes may share fields that the hub lacks (siblings.go).
// Users can write annotations, so preserved data is only used where the schema allows it.
//
// # A new kind of rule
//
// Cast is one of the smallest kinds; follow it. Nine files are written by hand, three of them new:
//
//  1. Its type, with a comment for users, and its member of Rule: api/v1alpha1/rules_types.go. The
//     CEL rule above Rule counts the members, and its message lists them in their order. Then run
//     "make generate manifests api-reference bundle chart".
//  2. What the compiler does, in a file of its own (compile/cast.go): the check against schemas, with a message for each
//     mistake that says what to do; and whether a rule cannot express some values, which users read in verdicts. The table of
//     kinds in compile/rules.go names these functions.
//  3. Its form in the compiled ruleset, a member of Exchange with a case in Exchange.single: ruleset.go. RulesetFormat stays the
//     same, because an older converter refuses a member that it does not know.
//  4. What the engine does, in a file of its own (cast.go): image, the conversion of a value in both directions, and sample, a
//     value of the spoke for the canary object of probes.
//  5. Random rules of this kind for the laws: internal/generate/rules.go. "make fuzz FUZZTIME=5m"
//     finds losses. If the conversion of recorded objects has changed on purpose, rewrite them with
//     "go test ./internal/engine/conversion -run TestRecorded -update".
//  6. Cases, in a file of internal/test/rulecases: objects, refused rules with the messages of the compiler and of the API
//     server, and the fields of the examples in the documentation. The tests of all packages try them. "go test
//     ./internal/cli/explain -update" explains one.
//  7. The documentation: a section and a row of the table in api/docs/writing-rules.md. What reports and explanations say:
//     cli/rulekinds.
//
// TestEveryKindOfRule reports which of these are missing: run it in ./api/v1alpha1, ./internal/engine/conversion/...,
// ./internal/cli/explain and ./internal/cli/rulekinds.
//
// Some kinds need more: compile/limits.go, if the rule copies values, so that stricter limits on
// one side cause a warning; compile/nulls.go, if a null of one side is something else on the other; cli/draft, if a schema or samples show that a rule fits.
package conversion
