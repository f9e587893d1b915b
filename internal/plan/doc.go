// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package plan decides. It is pure: what was observed goes in, what to do and what to
// say comes out. It holds no client, no context and no clock, so every decision of the
// operator can be read, and tested, here.
//
// Each thing that users name has a room, a package of its own, which looks at what was
// observed and at what the rooms before it have found out:
//
//	converter      what converts, or is to convert, and the pods that do
//	certificates   what these pods serve, and what API servers trust
//	activation     when spec.conversion is written, and what others write there
//	health         what goes wrong after that
//	migration      when stored objects are rewritten, and what that proves
//	retirement     which version objects are written in, and when one may go
//	deletion       what a policy leaves when it goes
//
// A room says what it decides as values: outcomes of gates and steps (packages gate and
// step), and its part of the status. It writes into no other room. What was observed is
// in package observed, what everything is called in names, who may do what in rights.
//
// Make composes them (plan.go). It passes a policy through its gates in order:
//
//	RulesValid             converter/kind.go             the policy can be followed
//	(ownership)           activation/ownership.go       no other client converts for this CustomResourceDefinition
//	CertificatesReady     certificates/certificates.go  a serving certificate that the API server will accept
//	WebhookAvailable      converter/kind.go             what converts is there
//	(drift)               activation/drift.go           no other client has changed spec.conversion
//	ConversionVerified    activation/verified.go        each answerer has proven it, live objects and an API server too
//	ConversionConfigured  activation/configured.go      the CustomResourceDefinition converts through them
//	(rolling back)        retirement/retired.go         what a retirement had changed, and is not wanted any more, is undone
//	(promotion)           retirement/promoted.go        the storage version is the wanted one
//	StorageMigrated       migration/gate.go             every stored object is in the storage version
//	VersionsRetired       retirement/retired.go         each version that is to go is as far as it may be
//
// The first gate that is not passed stops those behind it. What must not wait for a gate
// comes before them (keepUp): runs that must not go on are stopped, certificates renewed,
// pods kept, foreign writes undone. report.go writes the status once, from what all rooms
// have decided; events.go says which events follow from that; tidy.go takes away what
// nothing uses any more.
package plan
