// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package activation holds the manager against a real API server while converter
// pods, and the network in front of them, misbehave in each way that there is.
//
// Pods are servers in the test's own process: the manager reaches them at loopback
// addresses, and the API server through the endpoints of their Service. What
// answers is the handler of real converter pods, with what a test puts in front.
//
// What becomes of preserved data is proven here, too (preserved_test.go): runs of the
// migration command in place of its Jobs' pods, by their arguments and as their
// ServiceAccount, and the removal of accepted losses, look at the bytes in etcd.
package activation
