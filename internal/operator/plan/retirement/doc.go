// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package retirement decides about the versions of a CustomResourceDefinition: which one
// is the storage version (the gate Promoted in promoted.go), and when a version is
// deprecated, unserved and removed (the gate Retired in retired.go).
//
// versions.go computes what prevents each of these steps: clients that still request the
// version (requests.go), what clients would lose that name none (features.go), preserved data
// that only this version can express (preserved.go), managedFields of objects that name it
// (clear.go), and on request anything else that names it (dependents.go). The status remembers the steps that are
// done (retirement.go). drift.go counts how often other clients revert them.
package retirement
