// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package migration rewrites every stored object of one resource at its
// storage version, and keeps a record that proves it.
//
// It runs in a Job, one pod at a time. A pod that is restarted goes on where
// the record says. The steps of a run, each in its own file:
//
//  1. Checkpoint (checkpoint.go, record.go): read the record from the run's
//     ConfigMap. A finished run is left alone.
//  2. Barrier (barrier.go): wait until the API server shows the resource and
//     one storage version, then until writes at the old version have drained.
//     The resourceVersion at that moment is the barrier: whatever is written
//     later is stored at the storage version.
//  3. Pass (pass.go): list metadata page by page. Objects newer than the
//     barrier are current already; the others are patched (patch.go) with their
//     own resourceVersion and nothing else. The API server then encodes them
//     anew, and stores them only if the bytes differ. The answer's
//     resourceVersion is the proof: changed means rewritten, unchanged means
//     that the stored bytes were current.
//  4. Outcome (outcome.go): what each error means for the object and the run.
//     A refused object is listed as failed and the rest goes on. An answer that
//     puts the whole run in doubt aborts it.
//  5. Record: Completed or Aborted, written last. Only a Completed record
//     without a failed object is complete.
//
// The run is tied to one CustomResourceDefinition at one generation by whoever
// starts it; that party cancels the run when the definition changes.
//
// The engine knows the cluster through the small interfaces in api.go;
// cluster.go implements them over client-go.
package migration
