// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package install applies config/ with kubectl to a real API server: with every documented command, and the
// policies that protect spec.conversion.
package install
