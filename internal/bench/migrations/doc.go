// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package migrations measures how fast the operator and other tools rewrite stored objects in
// another version, one after the other in one real cluster.
//
//	widgets.go     the CustomResourceDefinitions and their objects
//	cluster.go     requests to the cluster
//	subjects.go    the migrator, Kubernetes itself, and two loops
//	foreground.go  the effect on another client
//	suite.go       the order of measurements
//	growth.go      one migration of many objects, over time
//
// Before each measurement all objects are stored at the old version and the storage version changes
// to the new one, so that every object has to be rewritten. Afterwards the bytes in etcd are
// checked. The loops have no barriers, no handling of failures and no proofs: they show the cost of
// the writes alone.
package migrations
