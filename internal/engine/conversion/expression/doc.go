// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package expression computes the fields of one version from those of another
// by expressions of the Common Expression Language (CEL), with the libraries and
// semantics of the API server's validation rules. It is pure, and its values are trees.
//
// Both sides of a rule are Fields, each with its types (schema.go): those of the stripped schemas that
// a ruleset has anyway. New compiles the expressions of
// one direction over the fields of the other side (env.go, guard.go).
// Program.Evaluate (expression.go) reads the values (value.go), evaluates, and writes
// the results (result.go), within a Budget (budget.go).
//
// Converter pods link this package, and no schema library. The compiler checks types and
// costs of expressions: internal/engine/conversion/compile/celcheck compiles them in a Scope of
// this package as well.
//
// An expression never fails a conversion. If it has no result, because it reads
// a missing field, overflows, costs too much, or returns what the field does not allow,
// its field has no value, and the source fields are preserved. Expressions must be
// deterministic: the same values give the same results in every process. The
// environment has no clock and no randomness. Two other sources are removed: the
// order of maps (order.go), and time zones by name (env.go), which depend on the machine.
package expression
