// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package plan decides. It is pure: what was observed goes in, what to do and
// what to say comes out. It holds no client, no context and no clock, so every
// decision of the operator can be read, and tested, here.
//
// Make passes a policy through its gates in order:
//
//	PlanValid             plan_valid.go    the rules fit the schemas
//	(ownership)           ownership.go     nobody else converts for this CustomResourceDefinition
//	CertificatesReady     certificates.go  a serving certificate that the API server will accept, from a source (source.go)
//	WebhookAvailable      webhook.go       converter pods run with the current plan
//	(drift)               drift.go         nobody else has changed spec.conversion
//	ConversionVerified    verified.go      each of them has proven it, live objects and an API server too (proofs.go); what if one goes wrong later (replace.go)
//	ConversionConfigured  configured.go    the CustomResourceDefinition converts through them
//	(rolling back)        retired.go       what a retirement had changed, and is not wanted any more, is undone
//	(promotion)           promoted.go      the storage version is the wanted one
//	StorageMigrated       migrated.go      every stored object is in the storage version
//	VersionsRetired       retired.go       each version that is to go is as far as it may be
//
// The first gate that is not passed stops those behind it. A gate may add steps
// (step.go), which the controller applies in order. A policy that is being
// deleted takes another way: leaving.go. What is left of one that is gone: orphan.go.
//
// What converts is of several kinds (converter.go): compiled rules, an image
// (image.go), what somebody else runs (external.go), or nothing (none.go). What is
// deployed is rendered with the policy's patches (render.go, reassert.go).
//
// A migration is a Job (migration_job.go) that records what it does; how that
// reaches the status, and which events tell of it, is in run_status.go and
// run_events.go. What others do to stored objects is in foreign_migration.go.
// Versions are changed step by step (versions.go), by what is remembered of each
// (retirement.go), by who still asks (requests.go), and when no object names them any
// more (clear.go). What others take back is counted first (versions_drift.go).
//
// Four things wait for no gate: evidence that no longer holds is dropped
// (evidence.go), a migration that must not go on is stopped (guard.go), what a
// CustomResourceDefinition depends on is kept alive (upkeep.go), certificates
// among it (rotation.go), and what others write to spec.conversion is undone
// (drift.go). Which plans the converter pods
// carry while rules change is told in carried.go.
//
// Two conditions exist only while something is wrong, and hold nothing up: what
// converter pods fail to convert (live_failures.go), and live objects that do not come
// back as they were, of which samples are taken again and again (resample.go).
package plan
