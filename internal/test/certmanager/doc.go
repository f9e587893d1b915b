// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package certmanager tests the operator against cert-manager's own controllers,
// which run in the test's process on a real API server: what the operator asks
// for is what they issue, and what they issue is what converter pods get.
package certmanager
