// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package live reads dependents of a version from a cluster, and repairs those that belong to no
// other author.
//
// The metadata of all objects is read page by page (scan.go), at a limited rate, and nothing but
// dependents stays in memory. Only the objects of a few configuration kinds are read completely
// (configuration.go), and records of Helm only on request (helm.go). What may not be read is
// reported. Repairs (owners.go, helm.go) have preconditions: each is one write to an object that
// has not changed since it was read, so that a run which was interrupted can be repeated.
package live
