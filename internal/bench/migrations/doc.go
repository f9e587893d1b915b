// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package migrations measures how fast stored objects are rewritten in another
// version, by us and by others, one after the other in one real cluster.
//
//	widgets.go     the CustomResourceDefinitions and their objects
//	cluster.go     what is asked of the cluster
//	subjects.go    who rewrites: the migrator, Kubernetes itself, and two loops
//	foreground.go  what another client notices meanwhile
//	suite.go       what is measured, in order
//	growth.go      one migration of many objects, as it goes on
//
// Before each turn all objects are stored at the old version and the storage version
// moves to the new one, so that every object has to be rewritten; after it, the bytes
// in etcd are looked at. The loops know nothing of barriers, failures or proofs: they
// are the rest when all that costs nothing.
package migrations
