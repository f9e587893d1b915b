// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package expression computes the fields of one version from those of another
// by expressions of the Common Expression Language, with the libraries and the
// rules that the API server has for validation rules. It is pure, and knows
// values as JSON text only.
//
// Both sides of a rule are Fields, each with a Schema (schema.go): the small form
// that a ruleset has of a definition's schema. New compiles the expressions of
// one direction over the fields of the other side (env.go, guard.go), and
// Program.Evaluate (expression.go) reads the values (value.go), evaluates, and writes
// the results (result.go), within a Budget (budget.go).
//
// Converter pods link this package, and no library of schemas with it. What is wrong
// with an expression, its type or its cost, says the compiler:
// internal/conversion/compile/celcheck, which compiles it in a Scope of this package
// too.
//
// An expression never fails an object. If it has no result, because it reads
// a field that is missing, overflows, costs too much, or gives what the field
// cannot hold, its field has no value, and the client that asked keeps the source. So it
// matters more that it is deterministic: the same values give the same results
// in every process. The environment has neither clock nor chance; two things
// remain, and are taken away here: the order of maps (order.go), and time zones
// by name (env.go), of which a computer has many or none.
package expression
