// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package scenarios plays the life of a CustomResourceDefinition on a real cluster
// and tells it in the commands that a person would type, with what they answer.
// Everything that it claims it checks: a claim that does not hold ends the story
// with an error. `make demo` plays it for people, the end-to-end tests for CI.
package scenarios
