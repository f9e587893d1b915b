// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package migration rewrites every stored object of one resource at its
// storage version, and keeps a record that proves it.
//
// It runs in a Job, one pod at a time. A pod that is restarted goes on where
// the record says. The steps of a run, each in its own file:
//
//  1. Checkpoint (checkpoint.go, failures.go, package contract): read the record from
//     the run's ConfigMap. A finished run is left alone. A run that retries
//     another one takes over what that has done (previous.go), if the definition is
//     still the same, and patches only what failed.
//  2. Preflight (preflight.go): try the patch on a few objects without writing.
//     What is refused is predicted to fail. A run of which nothing else can be
//     expected ends here.
//  3. Barrier (barrier.go): wait until every API
//     server shows the version of the run as the storage version, then until
//     writes at the old version have drained. The resourceVersion at that moment
//     is the barrier. Where API servers cannot be asked one by one, the time alone
//     has to do, and the record says so.
//  4. Pass (pass.go, list.go): list metadata page by page,
//     each while the objects of the one before are patched, and patch every object
//     (patch.go) with its own resourceVersion and nothing else. The API server then
//     encodes it anew, and stores it only if the bytes differ. The answer's
//     resourceVersion is the proof: changed means rewritten, unchanged means that
//     the stored bytes were current. An object that others write so often that no
//     patch meets it is current if it is newer than the barrier. A list that fails
//     because of one object is narrowed until that is found. What an API server
//     dropped from managedFields is given back (managedfields.go). An object that holds, in
//     annotations, values of another version that have a place now is written at that
//     version before, which makes them data; what objects hold in the end is counted
//     (preserved.go).
//  5. Outcome (outcome.go, fallback.go): what each error means for
//     the object and the run. A refused object is tried on the other paths that
//     are allowed, then listed as failed, and the rest goes on. An answer that
//     puts the whole run in doubt aborts it. Rights that were lost end the pod,
//     and the next one goes on.
//  6. Audit (verify.go): patch once more what was found current
//     early. An API server that still encoded at the old version would have said
//     so, too. If one of them changes now, the barrier was none, and the run
//     begins again with a longer wait, three times at most.
//  7. Verification (verify.go): patch a sample, or every object, once more. None
//     may change.
//  8. Record: Completed or Aborted, written last. Only a Completed record
//     without a failed object is complete.
//
// The run is pinned to one CustomResourceDefinition at one generation (pin.go).
// It looks before the barrier, before every page, five times a second while it
// patches, and before it is Completed. When the definition has changed, the run
// is aborted: rewriting objects without the conversion that it was made for
// could destroy what they hold.
//
// Every patch passes the gate (throttle.go), which adapts the number in flight to
// the latency of the API server, for the sake of other clients or of speed, and
// keeps the allowed rate. While webhooks, etcd or the API server are away, all
// patches wait (breaker.go), and no object loses its tries.
//
// The engine knows the cluster through the small interfaces in api.go;
// cluster.go implements them over client-go. The rights that it needs: list and
// patch on the resource (and on its status subresource for that fallback), get
// on the one CustomResourceDefinition, get and patch on its own ConfigMap, and get on that of the ruleset; to ask
// every API server, list on endpointslices in the namespace default, and to tell
// whether one address stands for several, list on leases in kube-system.
package migration
