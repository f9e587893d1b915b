// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package realworld compares policies for kinds of other projects with the conversion functions of
// those projects, which are written in Go by hand and have users.
//
// Each policy is a sample under config/samples/catalogue. A test generates random objects that the project's
// CustomResourceDefinition allows (objects_test.go), converts each with the project's functions and
// by the policy, and compares what a Go client of the project reads from both results
// (compare_test.go). Each difference must have a name and a reason in the test of the project. A
// difference without one fails the test, and so does one that no longer occurs. The policy must
// restore every object exactly, even if the project's functions lose data. The numbers are in the
// table of config/samples/catalogue/README.md, which the tests compare, and rewrite with -update
// (table_test.go). With -rounds they convert more objects, and print the numbers.
//
// The functions of some projects need older libraries than this package: they are in a process of a module of
// its own (older), which the tests build and ask.
//
// The CustomResourceDefinitions come from the projects' own modules in the module cache. This
// package is a Go module of its own, so that the other projects are no dependencies of
// conversion-operator.
package realworld
