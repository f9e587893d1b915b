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
// list: it decides about a ConverterFleet, with its own Make, and uses certificates and workload. Package
// forecast carries out plans on a simulated cluster: for the tests of this package, and for users.
//
// Each of them gathers the state of its area once, because the gates of one area share results. Its methods return decisions as values: a
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
//	(deadlock)            activation/ownership.go       the converter needs no objects that it is to convert
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
//
// A decision that concerns two areas is in the package of the later one, or here: cleanup.go has
// which rights and leftovers may be deleted.
//
// # A new gate
//
// NotOwnedByAnother is one of the smallest gates; follow it.
//
//  1. An exported method, such as in activation/ownership.go, in the package of
//     its subject. It returns a gate.Decision: an outcome, by a function of gate/gate.go, with the
//     steps that the package added to its work. Waiting, if the operator continues by itself;
//     Stalled, if a user has to act. The zero Outcome passes and reports nothing. It makes no
//     request: its input is a field of Cluster in observed/cluster.go, which controllers/observe.go
//     fills in. State that must survive a restart is a field of the package's Status, which
//     report.go copies to the status of the policy.
//  2. Its place in gates of plan.go, with the condition that reports its outcome, and in the list
//     above. That condition is its own, which you add to Gates of api/v1alpha1/conditions.go and to
//     the table in the README of the project, or that of the step that it protects: then the list
//     above has its name in parentheses.
//  3. What it does not stop. Upkeep continues (upkeep in plan.go), and so does a running migration,
//     unless whyNot in migration/guard.go knows the reason too. A policy whose deletion is blocked
//     passes the gates as well. No test reports a gate that forgets this: write a story in which the
//     gate closes during a migration.
//  4. What opens it again. A change of the policy, of its CustomResourceDefinition (also of its
//     annotations) or of an object that the operator created wakes the controller; for everything
//     else, add a watch in controllers/setup.go, or call Recheck with a duration.
//  5. A new step is a type in step/step.go; controllers/apply.go carries it out. A step may be
//     carried out twice or in part, so it must be idempotent.
//  6. A row of gateChanges in gates_test.go, or a story in TestStories of story_test.go. Then run
//     "go test ./internal/operator/plan -update", and read the difference.
//
// # A new condition or reason
//
//  1. Its constant in api/v1alpha1/conditions.go, in the block of its condition.
//  2. Its row in api/docs/conditions.md: what it means, and what to do. The tests of this package
//     compare these rows with the states of all tests, in both directions; with -run, they do not.
//  3. The function that reports it, and a test case. Messages name the object and what to do. Lists
//     in them are sorted, and they have no times or counters that change by themselves; tests check
//     that.
//  4. Its event: events.go. Each change of a reason creates one, but not a gate that passes without
//     a problem before, unless it changes the CustomResourceDefinition. With the status False, it is
//     a warning, unless the reason is in the list of those that only need time. Reasons with events
//     of their own are in another list there. No test reports a reason that should be in one of
//     these lists: read the difference in testdata/events.
//  5. What the command status advises, if a command helps to find the cause: cli/overview/advice.go.
//     Without an entry, it refers to the message if the policy is Stalled, and otherwise says that
//     there is nothing to do.
package plan
