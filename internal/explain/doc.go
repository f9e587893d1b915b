// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package explain says how an object becomes one of another version: which rule
// made each of its fields, of what, and what is preserved and why. It is pure:
// the rules, the schemas and the object go in.
//
// An Object is really converted (explain.go), by the engine that converter pods
// run. Between a spoke and the hub there is one step, between two spokes there are
// two. Each field of the result (fields.go) has a leaf field of the ruleset
// (leaf.go, path.go), and that a rule (rule.go); what the annotation holds has a
// reason (kept.go).
package explain
