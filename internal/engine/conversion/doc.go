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
//
// The lossless conversion (lossless.go) takes its place: rules are functions (function.go, function_values.go) of trees
// (package tree), and package preserve keeps what they lose. Tests convert by both.
//
// # A new kind of rule
//
// Cast is one of the smallest kinds; follow it.
//
//  1. Its type, with a comment for users, and its member of Rule: api/v1alpha1/rules_types.go. The
//     CEL rule above Rule counts the members, and its message lists them in their order. Then run
//     "make generate manifests api-reference bundle".
//  2. The check against schemas, with a message for each mistake that says what to do:
//     compile/values.go, called in compile/rules.go. Its form in the compiled ruleset, usually a
//     member of Exchange: ruleset.go. RulesetFormat stays the same, because an older converter
//     refuses a member that it does not know.
//  3. Which values it cannot express: notRoundTrippable in compile/roundtrip.go. A kind that is not
//     there counts as one that may preserve values of each field; users read that in verdicts.
//     mayLeaveOut there, which values may be missing on the other side, follows from it.
//  4. The conversion of a value in both directions: values.go, called in exchange.go. It returns nil
//     for a value that has no image on the other side; the caller then preserves the value, and
//     handles missing values and nulls. A value of the spoke for the canary object of probes:
//     canary.go.
//  5. Random rules of this kind for the laws: internal/generate/rules.go. "make fuzz FUZZTIME=5m"
//     finds losses. If the conversion of recorded objects has changed on purpose, rewrite them with
//     "go test ./internal/engine/conversion -run TestRecorded -update".
//  6. Cases: rules_test.go, rule_kinds_test.go, compile_test.go, growth_test.go,
//     compile/roundtrip_test.go, cli/explain/testdata/rules/policy.yaml and cli/explain/testdata/rules/crd.yaml,
//     and an accepted and a refused one in internal/test/manager/validation_test.go, which "make integration"
//     runs.
//  7. The documentation and the explanations: api/docs/writing-rules.md and the table in it, the
//     list in the README of the project, cli/explain/rule.go, cli/report/rules.go. docs_test.go converts the
//     examples of the page: its two schemas need the fields of the new example.
//
// TestEveryKindOfRule reports which of these are missing: run it in ./api/v1alpha1,
// ./internal/engine/conversion/..., ./internal/cli/explain and ./internal/cli/report.
//
// Some kinds need more: compile/labels.go, if every result is a valid label (otherwise a rule to a
// label causes a warning); compile/paired.go, if the rule copies values, so that stricter limits on
// one side cause a warning; compile/stricter.go, for other such warnings; compile/nulls.go, if a
// null of one side is something else on the other. isFaithful in prepare.go is an optimization: it
// skips the conversion back, by which the engine finds out what to preserve.
package conversion
