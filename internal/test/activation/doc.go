// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package activation tests the manager with a real API server while converter pods, and the network
// in front of them, misbehave.
//
// Pods are servers in the test process: the manager reaches them at loopback addresses, and the API
// server through the endpoints of their Service. They serve with the handler of real converter
// pods, behind a behaviour that a test sets.
//
// The package also tests what happens to preserved data (preserved_test.go). It runs the migration
// command in place of the pods of Jobs, with their arguments and as their ServiceAccount, and the
// removal of accepted losses, and compares the bytes in etcd.
package activation
