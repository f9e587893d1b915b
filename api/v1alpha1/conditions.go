// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

// Condition types. The gates are in the order in which the operator evaluates
// them: it stops at the first gate that is not passed.
const (
	// ReadyCondition is True when every requested step is done and proven.
	ReadyCondition = "Ready"
	// ReconcilingCondition is True while the operator works or waits for something that it expects.
	ReconcilingCondition = "Reconciling"
	// StalledCondition is True when the operator needs a change by a user to continue.
	StalledCondition = "Stalled"

	// RulesValidCondition: the rules compile against the schemas of the CustomResourceDefinition.
	RulesValidCondition = "RulesValid"
	// CertificatesReadyCondition: the converter pods have a valid serving certificate.
	CertificatesReadyCondition = "CertificatesReady"
	// WebhookAvailableCondition: the converter pods are ready with the current ruleset.
	WebhookAvailableCondition = "WebhookAvailable"
	// ConversionVerifiedCondition: every converter pod answered a TLS handshake and a conversion of each version pair.
	ConversionVerifiedCondition = "ConversionVerified"
	// ConversionConfiguredCondition: the CustomResourceDefinition converts through the converter pods.
	ConversionConfiguredCondition = "ConversionConfigured"
	// StorageMigratedCondition: the storage version is the wanted one, and every stored object is in it.
	StorageMigratedCondition = "StorageMigrated"
	// VersionsRetiredCondition: the versions of spec.retirement are where the policy wants them.
	VersionsRetiredCondition = "VersionsRetired"

	// DeletionBlockedCondition is True when deleting the policy would strand objects. It exists only then.
	DeletionBlockedCondition = "DeletionBlocked"
	// ConversionsFailingCondition is True while conversions fail in production. It exists only then.
	ConversionsFailingCondition = "ConversionsFailing"
	// SamplesFailingCondition is True while live objects, sampled after the activation, are lost in conversion or cannot be read. It exists only then.
	SamplesFailingCondition = "SamplesFailing"
	// NotRedundantCondition is True while all ready converter pods of a policy or a fleet are on one node, and there are others. It exists only then.
	NotRedundantCondition = "NotRedundant"
	// RotationBlockedCondition is True while CustomResourceDefinitions hold up the replacement of the authority of a fleet. It exists only then.
	RotationBlockedCondition = "RotationBlocked"
	// OversizedObjectsCondition is True while objects are known that hold more for one version than their annotations have room for at another. It exists only then.
	OversizedObjectsCondition = "OversizedObjects"
	// BootstrapDependencyCondition is True while converter pods may need objects of the kind that they convert, before they can start or answer. It exists only then.
	BootstrapDependencyCondition = "BootstrapDependency"
)

// Abnormal are the condition types that exist only while there is a problem, regardless
// of the gates. Ready does not depend on them.
var Abnormal = []string{DeletionBlockedCondition, ConversionsFailingCondition, SamplesFailingCondition, OversizedObjectsCondition, NotRedundantCondition, BootstrapDependencyCondition, RotationBlockedCondition}

// Gates are the condition types of the gates, in order.
var Gates = []string{
	RulesValidCondition,
	CertificatesReadyCondition,
	WebhookAvailableCondition,
	ConversionVerifiedCondition,
	ConversionConfiguredCondition,
	StorageMigratedCondition,
	VersionsRetiredCondition,
}

// Reasons of several conditions.
const (
	// ReasonNotEvaluated: a gate before this one is not passed.
	ReasonNotEvaluated = "NotEvaluated"
	// ReasonPaused: spec.paused is true.
	ReasonPaused = "Paused"
	// ReasonDeleting: the policy is being deleted.
	ReasonDeleting = "Deleting"
	// ReasonApplyFailed: the API server refused a step; it is tried again.
	ReasonApplyFailed = "ApplyFailed"
	// ReasonNotNeeded: there is nothing to convert, to migrate or to retire.
	ReasonNotNeeded = "NotNeeded"
	// ReasonNotFound: what the policy names does not exist: the CustomResourceDefinition, a Secret, a Service or its port, or the kinds of cert-manager.
	ReasonNotFound = "NotFound"
	// ReasonForeignStorageMigration: another migration is in flight; the operator does not change the CustomResourceDefinition until it ends.
	ReasonForeignStorageMigration = "ForeignStorageMigration"
	// ReasonDrifted: another client changed what the operator wrote to the CustomResourceDefinition: spec.conversion, or spec.versions.
	ReasonDrifted = "Drifted"
	// ReasonContested: another client keeps changing it; the operator has stopped writing it.
	ReasonContested = "Contested"
	// ReasonObjectsUnreadable: live objects cannot be read.
	ReasonObjectsUnreadable = "ObjectsUnreadable"
	// ReasonRoundTripFailed: a live object changes in a round trip.
	ReasonRoundTripFailed = "RoundTripFailed"
	// ReasonRightsNotGranted: an administrator grants the rights to objects, and some are missing; the message has the commands.
	ReasonRightsNotGranted = "RightsNotGranted"
	// ReasonResolved is the reason of the event at the end of a condition that exists only during a problem.
	ReasonResolved = "Resolved"
)

// Reasons of Ready.
const (
	// ReasonSucceeded: every requested step is done and proven.
	ReasonSucceeded = "Succeeded"
	// ReasonWaitingForVersion: the webhook waits for a version that the CustomResourceDefinition does not have yet.
	ReasonWaitingForVersion = "WaitingForVersion"
)

// Reasons of RulesValid.
const (
	// ReasonValid: the rules compile against the schemas; or there are none, and no field is lost that the policy does not give up by name; or
	// the converter is the user's.
	ReasonValid = "Valid"
	// ReasonCRDTerminating: the CustomResourceDefinition is being deleted; the webhook stays until it is gone.
	ReasonCRDTerminating = "CRDTerminating"
	// ReasonVersionNotInCRD: the hub or a spoke is a version that the CustomResourceDefinition does not have yet.
	ReasonVersionNotInCRD = "VersionNotInCRD"
	// ReasonInvalidSpec: a field of the policy or the fleet has to change: a rule does not fit the schemas, fields would be lost that the
	// policy does not give up, or a patch, an account or a URL cannot be used.
	ReasonInvalidSpec = "InvalidSpec"
	// ReasonUnsupportedPolicy: the policy was written for a later version of the operator.
	ReasonUnsupportedPolicy = "UnsupportedPolicy"
	// ReasonPreserveUnknownFields: the CustomResourceDefinition has objects of unknown structure, which the API server does not convert.
	ReasonPreserveUnknownFields = "PreserveUnknownFields"
)

// Reasons of CertificatesReady.
const (
	// ReasonIssued: the serving certificate is valid, and the CustomResourceDefinition is to trust its authority.
	ReasonIssued = "Issued"
	// ReasonIssuing: a certificate is being made.
	ReasonIssuing = "Issuing"
	// ReasonRotating: the authority is being replaced, or will be once a migration has ended; status.certificate.rotation has the state.
	ReasonRotating = "Rotating"
	// ReasonInvalidCertificate: a certificate of another issuer cannot be used; the message says why.
	ReasonInvalidCertificate = "InvalidCertificate"
	// ReasonNotInjected: no injector has written caBundle.
	ReasonNotInjected = "NotInjected"
)

// Reasons of WebhookAvailable.
const (
	// ReasonAvailable: all converter pods are ready with the current ruleset, or the Service or the URL of the user's converter exists.
	ReasonAvailable = "Available"
	// ReasonSomePodsReady: fewer converter pods than wanted are ready; conversions work.
	ReasonSomePodsReady = "SomePodsReady"
	// ReasonRollingOut: converter pods are being started, or load the current ruleset, or the Service has no ready endpoint yet.
	ReasonRollingOut = "RollingOut"
	// ReasonFleetUnavailable: the ConverterFleet that the policy names does not exist, is being deleted, or has no room for the ruleset.
	ReasonFleetUnavailable = "FleetUnavailable"
	// ReasonOneNode: all ready converter pods of a policy or a fleet are on one node.
	ReasonOneNode = "OneNode"
	// ReasonRulesetLost: the rules by which the CustomResourceDefinition converts are gone, except from the memory of running pods.
	ReasonRulesetLost = "RulesetLost"
	// ReasonNoPodsReady: no converter pod is ready, conversions fail.
	ReasonNoPodsReady = "NoPodsReady"
)

// Reasons of ConversionVerified. That of a caBundle without a certificate is InvalidCertificate.
const (
	// ReasonVerified: every converter pod answered for every version pair.
	ReasonVerified = "Verified"
	// ReasonProbing: a converter pod, the path from the API server, or live objects are being tried.
	ReasonProbing = "Probing"
	// ReasonUnreachable: a converter pod, or the converter from the API server, gave no answer; the message says where the call ended.
	ReasonUnreachable = "Unreachable"
	// ReasonTLSVerificationFailed: the certificate of a converter pod is not valid by caBundle, for the server name, or at this time.
	ReasonTLSVerificationFailed = "TLSVerificationFailed"
	// ReasonUnexpectedAnswer: what answers is no converter, or refuses the probe.
	ReasonUnexpectedAnswer = "UnexpectedAnswer"
	// ReasonWrongRuleset: a converter pod serves other rules than it must.
	ReasonWrongRuleset = "WrongRuleset"
	// ReasonCanaryFailed: a canary object cannot be converted, or not as expected.
	ReasonCanaryFailed = "CanaryFailed"
)

// Reasons of ConversionConfigured.
const (
	// ReasonConfigured: the CustomResourceDefinition converts through the converter pods.
	ReasonConfigured = "Configured"
	// ReasonConfiguring: the CustomResourceDefinition is being switched.
	ReasonConfiguring = "Configuring"
	// ReasonForeignConversion: the CustomResourceDefinition already converts through another webhook, or an annotation makes an injector write caBundle.
	ReasonForeignConversion = "ForeignConversion"
	// ReasonCompositeNotUsable: Crossplane generates the CustomResourceDefinition, and its CompositeResourceDefinition does not exist, or has claims, which would be converted, too.
	ReasonCompositeNotUsable = "CompositeNotUsable"
	// ReasonAdmissionDrifted: another client changed or deleted the ValidatingWebhookConfiguration by which API servers refuse objects that are too large to be converted.
	ReasonAdmissionDrifted = "AdmissionDrifted"
)

// Reasons of events only.
const (
	// ReasonServedUnconverted: the CustomResourceDefinition serves several versions with strategy None.
	ReasonServedUnconverted = "ServedUnconverted"
	// ReasonWrittenUnconverted: objects were written in that time.
	ReasonWrittenUnconverted = "WrittenUnconverted"
)

// Reasons of StorageMigrated.
const (
	// ReasonMigrated: a migration proved that every object is stored in the storage version.
	ReasonMigrated = "Migrated"
	// ReasonMigrating: a migration is running, or status.storedVersions is being corrected after it.
	ReasonMigrating = "Migrating"
	// ReasonMigrationPodPending: the pod of a migration is not created, or does not start.
	ReasonMigrationPodPending = "MigrationPodPending"
	// ReasonMigrationSuspended: spec.migration.suspend keeps a migration from going on, or from starting.
	ReasonMigrationSuspended = "MigrationSuspended"
	// ReasonObjectsFailed: some objects could not be rewritten; status.storedVersions was not pruned.
	ReasonObjectsFailed = "ObjectsFailed"
	// ReasonMigrationFailed: the migration could not go on; status.storedVersions was not pruned.
	ReasonMigrationFailed = "MigrationFailed"
	// ReasonStorageVersionNotServed: the storage version is not served, so that objects cannot be rewritten.
	ReasonStorageVersionNotServed = "StorageVersionNotServed"
	// ReasonNotRequested: spec.migration asks for no migration.
	ReasonNotRequested = "NotRequested"
	// ReasonStoredVersionsUntrusted: status.storedVersions names the storage version alone, and no migration of this policy has proven it.
	ReasonStoredVersionsUntrusted = "StoredVersionsUntrusted"
	// ReasonPromoting: the storage version is being changed to spec.storageVersion.
	ReasonPromoting = "Promoting"
	// ReasonPromotionRefused: spec.storageVersion cannot be the storage version; the message says why.
	ReasonPromotionRefused = "PromotionRefused"
)

// Reasons of events about a migration run, on the policy and on the
// CustomResourceDefinition. Other such events have the reason of the condition:
// Migrating when a run starts or resumes, Migrated when it completes.
const (
	// ReasonMigrationCancelled: a run ended without a result: spec.migration.mode became Never, or the CustomResourceDefinition changed.
	ReasonMigrationCancelled = "MigrationCancelled"
	// ReasonStoredVersionsPruned: status.storedVersions names the storage version alone, after a run that proved it.
	ReasonStoredVersionsPruned = "StoredVersionsPruned"
	// ReasonPrunedByOthers: another client removed versions from status.storedVersions.
	ReasonPrunedByOthers = "PrunedByOthers"
)

// Reasons of VersionsRetired.
const (
	// ReasonRetired: every version of spec.retirement is where the policy wants it.
	ReasonRetired = "Retired"
	// ReasonRetiring: the operator changes a version in the CustomResourceDefinition, removes its name from the managedFields of objects, or searches for other objects that name it.
	ReasonRetiring = "Retiring"
	// ReasonCheckFailed: the operator could not remove the name of the version from all objects, or not search for all that name it; it tries again.
	ReasonCheckFailed = "CheckFailed"
	// ReasonSoaking: the next step waits until its time has come, such as the end of a time without requests.
	ReasonSoaking = "Soaking"
	// ReasonBlocked: the next step waits for what the message says: a change by a user, or, in a rotation, CustomResourceDefinitions whose caBundle does not change.
	ReasonBlocked = "Blocked"
)

// Reasons of DeletionBlocked.
const (
	// ReasonInUse: more than one version is served or stored; or policies use the fleet that is being deleted.
	ReasonInUse = "InUse"
)

// Reasons of ConversionsFailing.
const (
	// ReasonConversionFailed: converter pods could not convert objects.
	ReasonConversionFailed = "ConversionFailed"
)

// Reasons of OversizedObjects.
const (
	// ReasonReadTruncated: reads of an object at a version leave out what has no room in its annotations, and writes of it at that version are refused.
	ReasonReadTruncated = "ReadTruncated"
)

// Reasons of BootstrapDependency, and of ConversionConfigured before an activation that would never recover from an outage.
const (
	// ReasonNeededToStart: converter pods need nodes, a network, an admission or a certificate, and that needs objects of the kind.
	ReasonNeededToStart = "NeededToStart"
)

// Reasons of events without a condition.
const (
	// ReasonOrphaned: the CustomResourceDefinition converts through converter pods whose policy is gone.
	ReasonOrphaned = "Orphaned"
	// ReasonConversionKept: another client wrote spec.conversion, and it kept the operator's value.
	ReasonConversionKept = "ConversionKept"
	// ReasonPodEvicted: a converter pod answered wrongly, and was evicted.
	ReasonPodEvicted = "PodEvicted"
)
