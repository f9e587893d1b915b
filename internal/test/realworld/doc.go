// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package realworld holds policies for kinds of other projects against those
// projects' own conversion functions.
//
// Each of the projects wrote its conversion in Go, by hand, and has users who
// upgraded with it. Here the same is written as a ConversionPolicy, a sample
// under config/samples. A test makes random objects that the project's
// CustomResourceDefinition allows (objects_test.go), converts each of them with
// the project's functions and by the policy, and compares what a Go client of
// the project would read from either answer (compare_test.go). If the two
// differ, the difference has a name and a reason in the test of that project; a
// difference without one fails the test, and so does one that no longer occurs.
// Whatever the project's functions lose, the policy must bring every object back
// as it was.
//
// CustomResourceDefinitions are read from the projects' own modules, in the
// module cache. All of this is a Go module of its own, so that no user of
// conversion-operator gets the other projects as dependencies.
package realworld
