// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package diff compares conversions before and after a change of a policy or of its
// CustomResourceDefinition: which fields get another owner or another rule, and whether
// data is lost that was not lost before. It is pure: both sides are its input.
//
// Compare (compare.go) compiles both sides like the operator, and compares their leaf fields
// (leaf.go) and what happens to preserved data (preserved.go). If schemas change, it says which rules
// still fit, and drafts the missing ones (spokes.go). A Report is written as text (text.go), or as
// JSON.
package diff
