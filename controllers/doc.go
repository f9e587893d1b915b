// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package controllers is the manager's control flow. One controller reconciles
// ConversionPolicies, and every reconciliation is the same four steps:
//
//	observe  observe*.go, probe.go  read everything once; read what the background found
//	plan     internal/plan          decide what to do and what to say; pure
//	apply    apply*.go              do the steps in order, stop at the first error
//	report   report.go              one status write, and all events
//
// What remains of a policy that is gone takes the same path, without a status: orphan.go.
//
// Nothing waits inside Reconcile: the next step is the next event. What takes longer
// than one request goes on in the background (background.go): checks of live objects, of
// API servers and of requests, cleaning of managedFields (background_checks.go), and the
// probes of converter pods (probe_answers.go, reprobe.go). That work belongs to its
// policy and not to a reconciliation. It ends when the policy goes or the manager shuts
// down, and it wakes the policy when it has found something. Other events, and which
// policy they belong to, are in setup.go.
package controllers
