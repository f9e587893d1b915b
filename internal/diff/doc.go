// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package diff says what a change of a policy, or of its CustomResourceDefinition,
// does to conversions: which fields have another owner or another rule, and
// whether something gets worse. It is pure: both sides are its input.
//
// Compare (compare.go) compiles both sides like the operator, and compares their
// fields with each other (leaf.go). A Report is written as text (text.go), or
// as JSON.
package diff
