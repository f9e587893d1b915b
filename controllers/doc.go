// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package controllers is the manager's control flow. A controller reconciles ConversionPolicies, and
// every reconciliation is the same five steps (reconcile.go):
//
//	observe  observe*.go    reads the cluster once, and the results of background checks
//	verify   probe*.go      adds the answers of converter pods to probes
//	plan     internal/operator/plan  decides the steps and the status; pure
//	apply    apply*.go      carries out the steps in order; stops at the first error
//	report   report.go      writes the status once, and all events
//
// Objects whose policy was deleted take the same path, without a status: orphan.go.
//
// Another controller reconciles ConverterFleets in the same steps (fleet.go), which package
// internal/operator/plan/fleet decides. A policy stores its rulesets in a fleet by itself (apply_rulesets.go),
// and reads the state of the fleet (observe_fleets.go). Each wakes the other when something changes
// that matters to it: fleet_users.go has which policies use a fleet, and fleet_loading.go which of them
// wait until its pods have loaded a ruleset. Rulesets of policies that come together are stored together
// (shard_writes.go).
//
// Reconcile never waits: it returns, and the next event continues. Work that takes longer than one
// request runs in the background (background.go): checks of live objects, of API servers and of
// requests, the removal of versions from managedFields (background_checks.go), and the probes of
// converter pods (probe_answers.go, reprobe.go). Background work belongs to a policy, not to a
// reconciliation. It ends when the policy is deleted or the manager shuts down, and it enqueues
// the policy when it has a new result. setup.go maps all other events to policies. Policies with a
// result go before new ones (urgent.go), and a status that shows only progress is not written each time
// (progress.go).
package controllers
