// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package generate makes random input for tests of conversion: the schemas of two different versions
// (schemas.go), rules between them (rules.go, nested.go), objects and fragments that fit a schema (objects.go),
// and JSON in unusual notation (text.go).
//
// All input comes from Choices (choices.go), which a fuzzer controls, so that failures can be repeated.
package generate
