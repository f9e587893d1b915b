// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package workload renders the pods that convert: a Deployment with its Service and its
// PodDisruptionBudget. reassert.go applies the patches of a user, and then restores the fields
// by which the operator finds, calls, verifies and replaces the pods.
package workload
