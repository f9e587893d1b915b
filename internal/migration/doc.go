// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package migration rewrites every stored object of one resource at its
// storage version, and keeps a record that proves it.
//
// It runs in a Job, one pod at a time. A pod that is restarted continues where the
// record says. Package contract has what the pod is told, and the record. The steps
// of a run:
//
//  1. Checkpoint (checkpoint.go, failures.go): read the record from the run's
//     ConfigMap. A finished run does nothing more. A run that retries a previous one
//     takes over its counts (previous.go), if the definition is still the same, and
//     patches only what failed there.
//  2. Preflight (preflight.go): try the patch on a few objects without writing. What
//     is refused is predicted to fail. If nothing but failures can be expected, the
//     run ends here.
//  3. Barrier (barrier.go): wait until every API server shows the version of the run
//     as the storage version, then for the propagation delay, in which writes at the
//     old version drain. The resourceVersion at that moment is the barrier. Where API
//     servers cannot be asked one by one, the barrier is the propagation delay alone,
//     and the record says so.
//  4. Pass (pass.go, list.go): list metadata page by page, each while the objects of
//     the previous one are patched, and patch every object (patch.go) with its own
//     resourceVersion and nothing else. The API server then encodes it again, and
//     stores it only if the bytes differ. The resourceVersion of the answer is the
//     proof: changed means rewritten, unchanged means that the stored bytes were
//     current. An object that clients write so often that no patch meets it is current
//     if it is newer than the barrier. A list that fails because of one object is
//     bisected until that object is found. Dropped managedFields are restored
//     (managedfields.go). An object with preserved values of another version that have
//     a field now is first written at that version, which restores them; preserved
//     values that remain are counted (preserved.go).
//  5. Outcome (outcome.go, fallback.go): what each error means for the object and the
//     run. A refused object is tried on the fallback paths that are allowed, then
//     listed as failed, and the run continues. An answer that puts the whole run in
//     doubt aborts it. Lost rights end the pod, and the next one continues.
//  6. Audit (verify.go): patch again the objects that were found current first. An API
//     server that still encoded at the old version would have reported them as
//     current, too. If one of them changes now, the barrier was too early, and the run
//     is repeated with a longer propagation delay, three times at most.
//  7. Verification (verify.go): patch a sample, or every object, again. None may
//     change.
//  8. Record: Completed or Aborted, written last. Only a Completed record without a
//     failed object is complete.
//
// The run is pinned to one CustomResourceDefinition at one generation (pin.go). It
// reads the definition before the barrier, before every page, five times per second
// while it patches, and before it is Completed. When the definition has changed, the
// run is aborted: rewriting objects without the conversion that it was made for could
// destroy data.
//
// Every patch passes the throttle (throttle.go), which adapts the number in flight to
// the latency of the API server, and keeps the allowed rate. While webhooks, etcd or
// the API server are unavailable, all patches wait (breaker.go), and no object loses
// its attempts.
//
// The engine knows the cluster through the small interfaces in api.go; cluster.go
// implements them over client-go. The rights that it needs: list and patch on the
// resource (and on its status subresource for that fallback), get on the one
// CustomResourceDefinition, get and patch on its own ConfigMap, and get on that of the
// ruleset; to ask every API server, list on endpointslices in the namespace default,
// and to tell whether one address stands for several, list on leases in kube-system.
package migration
