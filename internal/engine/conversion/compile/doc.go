// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package compile checks the rules of a policy against the schemas of a CustomResourceDefinition.
// It is pure: no client, no context, no clock.
//
// The rules of groups come first into the places where they are used (groups.go), and types that contain themselves
// are repeated (recursion.go): all that follows knows no groups and no recursion.
// Compile (compile.go) gives every field of both versions exactly one owner: identity, a rule, or
// preservation. What moves with rules inside, and what an each rule pairs, is a frame with schemas and paths of its own, as
// the whole object is (frame.go, each.go). A rule claims fields (rules.go with the table of kinds; values.go, cast.go, default.go,
// each.go and cel.go have all of a kind; package celcheck checks expressions). Of the remaining fields, those that both
// versions have are copied, and those that differ are preserved (leaves.go with common.go
// and nulls.go). edges.go handles the objects around these fields, and siblings.go the fields that
// several spokes have and the hub lacks. The result is a conversion.Ruleset, which needs no schema
// library.
//
// Compile also explains the rules to users: the owner of every leaf field (verdict.go), warnings
// (warnings.go, and limits.go for what one version requires or allows less), and the requirements
// of preserved status (status.go). large.go tells API servers which objects may be too large.
package compile
