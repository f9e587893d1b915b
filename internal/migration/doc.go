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
//  2. Barrier (barrier.go): wait until the API server shows the version of the
//     run as the storage version, then until writes at the old version have
//     drained. The resourceVersion at that moment is the barrier.
//  3. Pass (pass.go): list metadata page by page, and patch every object
//     (patch.go) with its own resourceVersion and nothing else. The API server
//     then encodes it anew, and stores it only if the bytes differ. The answer's
//     resourceVersion is the proof: changed means rewritten, unchanged means
//     that the stored bytes were current. An object that others write so often
//     that no patch meets it is current if it is newer than the barrier.
//  4. Outcome (outcome.go): what each error means for the object and the run.
//     A refused object is listed as failed and the rest goes on. An answer that
//     puts the whole run in doubt aborts it. Rights that were lost end the pod,
//     and the next one goes on.
//  5. Record: Completed or Aborted, written last. Only a Completed record
//     without a failed object is complete.
//
// The run is pinned to one CustomResourceDefinition at one generation (pin.go).
// It looks before the barrier, before every page, five times a second while it
// patches, and before it is Completed. When the definition has changed, the run
// is aborted: rewriting objects without the conversion that it was made for
// could destroy what they hold.
//
// The engine knows the cluster through the small interfaces in api.go;
// cluster.go implements them over client-go.
package migration
