// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package expression computes the fields of one version from those of another
// by expressions of the Common Expression Language, with the libraries and the
// rules that the API server has for validation rules. It is pure, and knows
// values as JSON text only.
//
// Both sides of a rule are Fields. Check (check.go) says what is wrong with
// their expressions, before anybody relies on them: it compiles them (env.go),
// holds the type of the result against the field's schema (types.go), and
// estimates the cost (cost.go, size.go; guard.go for what costs do not cover). New makes a Program of one direction, and
// Program.Evaluate (expression.go) reads the values (value.go), evaluates, and
// writes the results (result.go). Shape (schema.go) makes a schema small enough
// to travel in a plan.
//
// An expression never fails an object. Where it has no result, because it reads
// a field that is missing, overflows, costs too much, or gives what the field
// cannot hold, its field has no value, and whoever asked keeps the source. So it
// matters more that it is deterministic: the same values give the same results
// in every process. The environment has neither clock nor chance; two things
// remain, and are taken away here: the order of maps (order.go), and time zones
// by name (env.go), of which a computer has many or none.
package expression
