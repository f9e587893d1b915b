// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package migration rewrites every stored object of one resource at its storage version, and keeps
// a record as evidence.
//
// It runs in a Job, one pod at a time. A restarted pod continues from the record. Package contract
// defines the run specification and the record. The steps of a run:
//
//  1. Checkpoint (checkpoint.go, failures.go): read the record from the run's
//     ConfigMap. A finished run does nothing more. A run that retries a previous one
//     continues its counts (previous.go) if the definition has not changed, and
//     patches only the objects that failed there.
//  2. Preflight (preflight.go): try the patch on a few objects as a dry run. Objects
//     that are refused are predicted to fail. If all objects are refused, the run is
//     aborted.
//  3. Barrier (barrier.go): wait until every API server shows the version of the run
//     as the storage version, and then for the propagation delay, in which writes at
//     the old version drain. The resourceVersion at that moment is the barrier. If
//     not every API server can be checked, the barrier is the propagation delay
//     alone, and the record says so.
//  4. Pass (pass.go, list.go): list metadata page by page, reading the next page while
//     the objects of the current one are patched. Pages are small if objects are large
//     (internal/operator/pages). Patch every object (patch.go) with
//     nothing but its own resourceVersion. The API server then encodes the object
//     again, and stores it only if the bytes differ. The resourceVersion of the answer
//     is the evidence: changed means rewritten, unchanged means that the stored bytes
//     were current. An object that clients write too often to be patched is current if
//     it is newer than the barrier. A list that fails because of one object is
//     bisected until that object is found. Dropped managedFields are restored
//     (managedfields.go). An object with preserved values of another version that have
//     a field now is first written at that version, which restores them; the preserved
//     values that remain are counted (preserved.go).
//  5. Outcome (outcome.go, fallback.go): decide what an error means for the object and
//     the run. An object that is refused is tried on the allowed fallback paths and
//     then listed as failed; the run continues. An error that affects every object
//     aborts the run. Lost rights end the pod, and the next pod continues.
//  6. Audit (verify.go): patch again the objects that were found current first. An API
//     server that still encoded at the old version would have reported them as
//     current, too. If one of them changes now, the barrier was too early, and the run
//     is repeated with a longer propagation delay, three times at most.
//  7. Verification (verify.go): patch a sample, or every object, again. None may
//     change. A resumed run also lists all objects, and patches again those that were
//     not written after the barrier.
//  8. Record: Completed or Aborted, written last. Only a Completed record without
//     failed objects is complete.
//
// The run is pinned to one generation of one CustomResourceDefinition (pin.go). It reads the
// definition before the barrier, before every page, five times per second while it patches, and
// before it completes. If the definition has changed, the run is aborted: rewriting objects without
// the conversion that the run was made for could destroy data.
//
// Every patch passes the throttle (throttle.go), which adapts the number of patches in flight to
// the latency of the API server, and limits their rate. While webhooks, etcd or the API server are
// unavailable, all patches wait (breaker.go), and objects keep their attempts.
//
// The engine accesses the cluster through the small interfaces in api.go; cluster.go implements
// them with client-go. A run needs these rights: list and patch on the resource (and on its status
// subresource for that fallback), get on its CustomResourceDefinition, get and patch on its own
// ConfigMap, and get on the ConfigMap of the ruleset. To check every API server, it also needs list
// on endpointslices in the namespace default, and, to detect that one address stands for several
// API servers, list on leases in kube-system.
package migration
