// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package controllers is the manager's control flow. One controller reconciles
// ConversionPolicies, and every reconciliation is the same five steps (reconcile.go):
//
//	observe  observe*.go    reads the cluster once, and the results of background checks
//	verify   probe*.go      adds the answers of converter pods to probes
//	plan     internal/plan  decides the steps and the status; pure
//	apply    apply*.go      carries out the steps in order; stops at the first error
//	report   report.go      writes the status once, and all events
//
// Objects whose policy was deleted take the same path, without a status: orphan.go.
//
// Reconcile never waits: it returns, and the next event continues. Work that takes longer than one
// request runs in the background (background.go): checks of live objects, of API servers and of
// requests, the removal of versions from managedFields (background_checks.go), and the probes of
// converter pods (probe_answers.go, reprobe.go). Background work belongs to a policy, not to a
// reconciliation. It ends when the policy is deleted or the manager shuts down, and it enqueues
// the policy when it has a new result. setup.go maps all other events to policies.
package controllers
