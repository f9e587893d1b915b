// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package migration decides when stored objects are rewritten at the storage version,
// and which evidence that produces.
//
// A migration is a Job (job.go) whose pods write a record. guard.go stops a Job that
// must not continue. The gate Migrated (gate.go) starts a Job, follows it and prunes
// status.storedVersions. run_status.go reports its progress, and what keeps its pod from
// starting. migration.go has the proof that a run produces, and what other clients do to stored
// objects; preserved.go has the preserved data that a run can move to fields.
package migration
