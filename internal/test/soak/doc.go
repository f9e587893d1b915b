// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Command soak does to the operator, in random order, what happens to it in the
// course of years, and looks after each step whether its promises still hold.
// `make soak` runs it on a local cluster.
//
// A seed gives a sequence of steps (sequence.go), always the same one: what the
// steps can be, how often each comes and when it is possible is one table
// (kinds.go), over a small model of what the cluster should look like (world.go).
// The model never looks at the cluster, so that how fast a machine is changes
// nothing.
//
// A player carries the steps out (player.go), and the files act_*.go say how:
// what authors of CustomResourceDefinitions do, what users of policies do, what
// fails. Meanwhile clients write objects in every served version (clients.go), and
// a ledger keeps what they wrote (ledger.go). What objects are, and what one
// written in a version is in the others, is told in record.go, without any of the
// operator's code.
//
// A version has one author. Once a policy wants a storage version, or names a version
// in its retirement, that is the policy's to say, and the author of the definition has
// in the manifest what the operator has made of it. While a policy is suspended, or
// its migrations are paused, nothing happens to it whose end the model could not tell.
//
// After each step the cluster is observed (observe.go), past the operator where
// that is possible: objects as clients read them, bytes as etcd has them,
// certificates as pods serve them. Invariants (invariants.go, one table) are
// functions from what was observed to what is wrong. Some hold at any time: a read
// may fail while everything is being killed, but never gives anything else than
// what was written. The others hold once the cluster has come to rest, and are
// waited for.
//
// Another client who prunes status.storedVersions makes it untrue by that, and no one
// but the next write of each object can make it true again. So bytes that were there
// when their version was pruned are the one exception of what is listed, by the
// revision of etcd in which they were written, until none of them is left. Whatever
// is newer has to be listed; the operator has to claim nothing of what it did not see
// itself; and where it migrates, all of it has to be at the storage version in the end.
//
// # What stands in for what
//
// A process that is killed gets SIGKILL, components of Kubernetes among them, which
// the local cluster starts again. A process that hangs gets SIGSTOP and, seconds
// later, SIGCONT.
//
// A full disk is the alarm NOSPACE of etcd, raised by hand: from then on etcd is as
// it is when its quota is used up, and refuses every write but deletions.
//
// The machine's clock is not changed: it is not the run's, and Linux has no
// namespace for it. Two things stand in for a clock that jumps ahead. A process that
// was stopped finds all of its timers due at once. And a serving certificate is
// replaced by one of the same authority with two minutes left, as it would be had the
// clock jumped to two minutes before its end. Nothing stands in for a clock that
// jumps back.
package main
