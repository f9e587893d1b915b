// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package soak performs actions and failures on a cluster in random order, as they happen over
// years, and checks the operator's invariants after each step. `make soak` runs it on a local
// cluster whose nodes run pods as processes of the user.
//
// A seed always gives the same sequence of steps (sequence.go). One table lists the kinds of steps,
// their frequency and their preconditions (kinds.go), and testdata/variants.txt what that makes. It uses
// a small model of the expected cluster (model.go, record.go). The model never reads the cluster, so that
// the speed of the machine does not change the sequence. A step that changes a policy or a CRD applies
// the model's manifest of it.
//
// A player performs the steps (play.go, act.go). Meanwhile, clients read and write objects in every served
// version.
//
// Each version has one author. Once a policy sets a storage version, or retires a version, the
// policy is its author, and the author of the CRD adopts the operator's changes in the manifest.
// While a policy is suspended, or its migrations are suspended, the sequence has no step whose result
// the model cannot predict.
//
// Policies use one of two fleets, or pods of their own, and move. A kind of steps is gentle if it
// leaves a pod of each policy that converts. If nothing else changes meanwhile, no read may fail until
// everything has come to rest.
//
// After each step, the program observes the cluster (observe.go), if possible without the operator:
// objects as clients read them, bytes in etcd, certificates of pods. An invariant is a function
// from observations to violations (invariants.go has the table). Some invariants hold at any time:
// a read may fail while processes are killed, but must never return wrong data. The others hold
// once nothing changes any more, and the program waits for them.
//
// Another client that prunes status.storedVersions makes it incomplete, until each affected object
// is written again. Such objects, identified by the etcd revision of their last write, are the only
// ones that may be stored at a version that is not listed. Every later write must be listed, the
// operator must not claim what it did not verify, and a migration must leave every object at the
// storage version.
//
// If an invariant does not hold, the run fails, and prints the steps, the seed, and the expected and
// the observed state. How far the operator is at each step depends on the speed of the machine, so
// a rare violation may take several runs to reproduce. KEEP=1 leaves the cluster up. The flag -list
// prints the steps of a seed without a cluster.
//
// The tests of internal/operator/plan play the same steps, without failures and fleets, in the planner's world,
// whose clock is virtual.
//
// # Simulated failures
//
// A killed process gets SIGKILL. The local cluster restarts components of Kubernetes, and the nodes
// their pods. A hanging process gets SIGSTOP, and SIGCONT some seconds later. Without the nodes, API
// servers cannot connect to pods either, and killed nodes take all pods with them.
//
// A full disk is the NOSPACE alarm of etcd, raised by a request. As with an exhausted quota, etcd
// then refuses every write but deletions.
//
// The clock of the machine stays unchanged. Two steps simulate a forward jump of the clock: all timers
// of a suspended process are due when it continues, and a serving certificate is replaced by one of the
// same authority that expires in two minutes. Nothing simulates a backward jump.
package soak
