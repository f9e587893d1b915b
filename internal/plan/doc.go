// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package plan makes every decision of the operator. It is pure: its input is the
// observed cluster, its output are steps and a status. It has no client, no context and
// no clock, so that each decision can be read and tested here.
//
// Each area that users name has a package. It reads the observed cluster and the decisions of
// the packages above it in this list.
//
//	converter      the revision that converts objects, and its pods, or its place in a fleet
//	deletion       what happens when a policy is deleted
//	certificates   what these pods serve, and what API servers trust
//	activation     when spec.conversion changes, and changes of it by other clients
//	health         problems after the activation
//	migration      when stored objects are rewritten, and which evidence that produces
//	retirement     the storage version, and when a version can be removed
//
// Package workload renders converter pods, for policies and for fleets. Package fleet is beside this
// list: it decides about a ConverterFleet, with its own Make, and uses certificates and workload.
//
// Each of them gathers the state of its area once. Its methods return decisions as values: a
// gate.Decision has the outcome of a gate, the steps (package step) that follow, and when to
// reconcile again. Its Status is its part of the status. It never changes the values of another
// package. Package observed has the observed cluster, names has the names and labels of what the
// operator creates, and rights has its roles.
//
// After the gate RulesValid, a CustomResourceDefinition exists. A gate that stops does not stop
// upkeep, nor a migration that is under way: migration/guard.go decides about those.
//
// Make composes them (plan.go). It passes a policy through its gates in order:
//
//	RulesValid            converter/kind.go             the policy can be followed
//	(ownership)           activation/ownership.go       no other client owns spec.conversion
//	(deadlock)            activation/bootstrap.go       the converter needs no objects that it is to convert
//	(fleet)               converter/shared.go           the fleet that the policy wants exists, and has room
//	CertificatesReady     certificates/certificates.go  API servers will accept the serving certificate
//	WebhookAvailable      converter/kind.go             endpoints of the converter are ready
//	(drift)               activation/drift.go           no other client has changed spec.conversion
//	ConversionVerified    activation/verified.go        every endpoint, live objects and an API server verified the conversion
//	ConversionConfigured  activation/configured.go      spec.conversion points at these endpoints
//	(rolling back)        retirement/retired.go         steps of a retirement that the policy no longer wants are reverted
//	(promotion)           retirement/promoted.go        the storage version is the desired one
//	StorageMigrated       migration/gate.go             every object is stored at the storage version
//	VersionsRetired       retirement/retired.go         each version to retire is as far as possible
//
// The first gate that does not pass stops the later ones. Upkeep does not wait for gates
// and comes first: it stops runs that must not continue, renews certificates, keeps pods
// running and repairs drift. report.go composes the status from the parts of all packages,
// events.go the events, and cleanup.go deletes what nothing uses. trust.go has the one
// decision that comes before Make: how converter pods are probed.
package plan
