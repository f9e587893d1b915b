// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package generate makes random input for tests of conversion: the schemas of two
// versions that differ (schemas.go), rules between them (rules.go), objects that
// fit a schema, in whole and in part (objects.go), and JSON that writes an object
// in an unusual way (text.go).
//
// All of it comes from Choices (choices.go), which a fuzzer makes, so that what
// fails can be repeated.
package generate
