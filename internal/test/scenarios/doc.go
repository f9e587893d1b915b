// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package scenarios plays the life of a CustomResourceDefinition on a real cluster, and prints the
// commands that a person would type with their output. It checks every claim that it prints: a
// false one ends the story with an error. `make demo` plays it for people, the end-to-end tests for
// CI.
package scenarios
