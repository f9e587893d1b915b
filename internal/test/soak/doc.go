// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package soak performs actions and failures on a cluster in random order, as they happen over
// years, and checks the operator's invariants after each step. `make soak` runs it on a local
// cluster whose nodes run pods as processes of the user.
//
// One table has the actions, with their targets, variants and effects (actions.go; testdata/variants.txt
// has what that makes). A seed always gives the same sequence of steps (sequence.go): it depends on the
// expected state alone (state.go), which never comes from the cluster. A player performs the steps while
// clients read and write objects in every served version (play.go), and observes the cluster, if possible
// without the operator: objects as clients read them, bytes in etcd, certificates of pods (observe.go).
//
// Two tables have the invariants (invariants.go; testdata/violations.txt has what violates them). Those of
// the first hold at any time: a read may fail while processes are killed, but must never return wrong data.
// The player waits for the others. After a gentle action, no read may fail either, if nothing else changed
// meanwhile.
//
// Each version has one author. Once a policy sets a storage version, or retires a version, the
// policy is its author, and the author of the CRD adopts the operator's changes in the manifest.
//
// Another client that prunes status.storedVersions makes it incomplete, until each affected object
// is written again. Such objects, identified by the etcd revision of their last write, are the only
// ones that may be stored at a version that is not listed.
//
// If an invariant does not hold, the run fails, and prints the seed, and the expected and the observed
// state. How far the operator is at each step depends on the speed of the machine, so a rare violation may
// take several runs to reproduce. KEEP=1 leaves the cluster up.
//
// The tests of internal/operator/plan play the actions that are not marked as real in the planner's world,
// whose clock is virtual.
//
// # Simulated failures
//
// A killed process gets SIGKILL, and the cluster restarts it. A hanging process gets SIGSTOP, and SIGCONT
// some seconds later. Without the nodes, API servers cannot connect to pods either, and killed nodes take all
// pods with them. A full disk is the NOSPACE alarm of etcd, which then refuses every write but deletions.
//
// The clock of the machine stays unchanged. Two actions simulate a forward jump: all timers of a hanging
// process are due when it continues, and a serving certificate is replaced by one of the same authority that
// expires in two minutes.
package soak
