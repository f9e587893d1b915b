// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package draft drafts a policy from what exists: the schemas of two versions, objects that were read at
// both, or a converter that can be asked. It is pure: the caller reads files, and sends requests.
//
// Make (draft.go) reads both schemas as trees of fields (fields.go) and pairs the fields with the same path. What
// has no partner is open. From names, descriptions, types and enums (names.go, guess.go) come the first hypotheses:
// rules that may be right (rules.go). Objects, lists and maps with another name come first, because the fields in them
// correspond then. A list of values and one of objects correspond by their elements (elements.go).
//
// Pairs of objects and answers of a converter are observations (observe.go). A converter is asked about objects that
// differ in one field, and in which each value is different (probe.go, objects.go). Equal values, and fields that change
// together, give more hypotheses (learn.go, propose.go). The engine decides (confirm.go): rules that do not exclude each
// other are compiled, and convert all observed objects (compare.go). A difference counts against the rule that owns the field,
// and another hypothesis takes its place. Either object of a pair may have been converted from the other one: a rule has
// to be right in one direction.
//
// The result (finish.go, text.go) has the evidence for each rule, and what is open: ambiguous and unpaired fields, which have
// no rule and so are preserved, and fields that the policy converts in another way than was observed. It never drops data.
package draft
