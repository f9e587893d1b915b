// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package controllers is the manager's control flow. One controller reconciles
// ConversionPolicies, and every reconciliation is the same four steps:
//
//	observe  observe.go, probe.go  read everything once; ask the converter pods
//	plan     internal/plan         decide what to do and what to say; pure
//	apply    apply*.go             do the steps in order, stop at the first error
//	report   report.go             one status write; events from its difference
//
// What is left of a policy that is gone takes the same way, without a report: orphan.go.
//
// Nothing waits inside Reconcile: the next step is the next event. What takes its
// time is found out in the background (investigator.go), and is an event too. What events
// there are, and which policy they belong to, is in setup.go.
package controllers
