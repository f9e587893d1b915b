// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package compile checks the rules of a policy against the schemas of a
// CustomResourceDefinition. It is pure: no client, no context, no clock.
//
// Compile (compile.go) gives every field of both versions exactly one owner: identity,
// a rule, or preservation. A rule claims fields (rules.go, and values.go, index.go,
// default.go and cel.go for the kinds of rules; package celcheck checks expressions).
// The remaining fields are copied where both versions have the same, and preserved
// where they differ (leaves.go with common.go, nulls.go and paired.go). edges.go decides
// about the objects around them, siblings.go which spokes share a field that the
// hub lacks. The result is a conversion.Ruleset, which knows no schema.
//
// Compile also says what the rules mean for people: who owns every leaf field
// (verdict.go), what works and may surprise (warnings.go with labels.go, required.go,
// preserved_size.go and stricter.go), and what preserved status needs (status.go). It says
// for API servers which objects may be too large (large.go).
package compile
