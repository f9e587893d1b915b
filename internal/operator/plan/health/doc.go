// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package health reports problems that appear after the activation: conversions that
// fail in production (live_failures.go), sampled objects that change in a round trip
// (resample.go), objects that are truncated at a version (oversized.go), and pods that may
// need what they convert (bootstrap.go). Each problem has a condition that exists only as
// long as the problem does. None of them stops a gate.
package health
