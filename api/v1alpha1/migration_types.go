// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// MigrationMode tells what starts a migration.
// +kubebuilder:validation:Enum=OnTrigger;Automatic;Never
type MigrationMode string

const (
	// MigrationOnTrigger migrates when spec.migration.trigger changes.
	MigrationOnTrigger MigrationMode = "OnTrigger"
	// MigrationAutomatic also migrates whenever objects may be stored in another version
	// than the storage version, and when preserved data gets a place there.
	MigrationAutomatic MigrationMode = "Automatic"
	// MigrationNever leaves stored objects alone.
	MigrationNever MigrationMode = "Never"
)

// MigrationPace tells what has priority while objects are rewritten.
// +kubebuilder:validation:Enum=Gentle;Fast
type MigrationPace string

const (
	// MigrationGentle gives other clients priority: the run adds concurrent writes only
	// while API servers answer each as fast as a single one.
	MigrationGentle MigrationPace = "Gentle"
	// MigrationFast gives the run priority: it adds concurrent writes as long as that
	// increases the number of objects per second.
	MigrationFast MigrationPace = "Fast"
)

// MigrationVerification tells how a run is verified.
// +kubebuilder:validation:Enum=None;Sample;Full
type MigrationVerification string

const (
	// MigrationVerifyNone verifies nothing: the API server's answer to each write is the
	// proof.
	MigrationVerifyNone MigrationVerification = "None"
	// MigrationVerifySample writes a sample of the objects again, which must change nothing.
	MigrationVerifySample MigrationVerification = "Sample"
	// MigrationVerifyFull writes every object again, which must change nothing.
	MigrationVerifyFull MigrationVerification = "Full"
)

// MigrationFallback is another way to write an object that the API server refuses.
//
// +kubebuilder:validation:Enum=Status;OldVersion
type MigrationFallback string

const (
	// MigrationFallbackStatus writes through the status subresource, which few admission
	// webhooks intercept.
	MigrationFallbackStatus MigrationFallback = "Status"
	// MigrationFallbackOldVersion writes at another served version, whose schema may still
	// accept the object.
	MigrationFallbackOldVersion MigrationFallback = "OldVersion"
)

// Migration configures when and how stored objects are rewritten at the storage version.
// +kubebuilder:validation:XValidation:rule="!has(self.fallback) || self.fallback.all(f, self.fallback.exists_one(g, g == f))",message="fallback names a way twice: name each of Status and OldVersion at most once, in the order in which they are to be tried"
type Migration struct {
	// mode tells what starts a migration. OnTrigger, the default, starts one when trigger
	// changes, and otherwise only reports which objects may need one. Automatic also starts
	// one whenever objects may be stored at a version other than the storage version, which
	// may be right after the policy was created, and once after each change of rules or
	// schemas that lets preserved values return to fields. Never starts none, and cancels a
	// run in progress: objects that it has rewritten stay rewritten, and storedVersions is
	// not pruned.
	// +optional
	// +kubebuilder:default=OnTrigger
	Mode MigrationMode `json:"mode,omitempty"`

	// trigger is any text. A change of it starts a run, also in mode Automatic. If the
	// previous run failed at some objects and the CustomResourceDefinition did not change
	// since, the new run writes only those objects. If a run is in progress, the new run
	// starts after it.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	Trigger string `json:"trigger,omitempty"`

	// suspend stops the pods of a run, and prevents new runs. When it is false again, the
	// run continues where it stopped.
	// +optional
	Suspend bool `json:"suspend,omitempty"`

	// pace tells what has priority during a run. Gentle, the default: other clients hardly
	// notice the run; it adds concurrent writes only while API servers answer each as fast as a
	// single one. Fast: the run ends sooner, at the expense of other clients. A change
	// takes effect immediately, and the run continues.
	// +optional
	Pace MigrationPace `json:"pace,omitempty"`

	// maxWritesPerSecond limits how many objects a run writes per second, at either pace.
	// A change takes effect immediately.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=100000
	MaxWritesPerSecond *int32 `json:"maxWritesPerSecond,omitempty"`

	// verify tells how a run is verified before storedVersions is pruned. None relies on
	// the API server's answers. Sample writes a sample of the objects again, and Full
	// writes all of them again; the second write must change nothing. The default is
	// Sample if every API server was seen to write at the storage version, and Full
	// otherwise.
	// +optional
	Verify MigrationVerification `json:"verify,omitempty"`

	// fallback lists other ways to write an object that the API server refuses at the
	// storage version, in the order in which they are tried. Objects are never edited.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=2
	Fallback []MigrationFallback `json:"fallback,omitempty"`

	// workload configures the pods of runs. A change takes effect immediately, and the run
	// continues.
	// +optional
	Workload MigrationWorkload `json:"workload,omitempty,omitzero"`
}

// MigrationWorkload configures the pods of migrations.
type MigrationWorkload struct {
	// resources are the compute resources of a pod. Without them, it requests 50m of cpu and
	// 64Mi of memory, and its limit of memory is 256Mi.
	// +optional
	Resources *Resources `json:"resources,omitempty"`

	Placement `json:",inline"`
}

// MigrationState is the state of a migration run.
type MigrationState string

const (
	// MigrationRunning means that the run is in progress.
	MigrationRunning MigrationState = "Running"
	// MigrationSucceeded means that every object is stored at the storage version.
	MigrationSucceeded MigrationState = "Succeeded"
	// MigrationFailed means that some objects could not be rewritten, or that the run
	// could not continue.
	MigrationFailed MigrationState = "Failed"
	// MigrationSuperseded means that the CustomResourceDefinition changed during the run,
	// so that the run proves nothing.
	MigrationSuperseded MigrationState = "Superseded"
	// MigrationCancelled means that spec.migration.mode became Never during the run.
	MigrationCancelled MigrationState = "Cancelled"
)

// MigrationStep is the current step of a run. The steps are in the order of a run, except
// Suspended.
type MigrationStep string

const (
	// MigrationStarting waits for the run's pod.
	MigrationStarting MigrationStep = "Starting"
	// MigrationTrying writes a few objects in dry runs, to report early what API servers
	// will refuse.
	MigrationTrying MigrationStep = "Trying"
	// MigrationPropagating waits until every API server writes at the storage version, and
	// earlier writes are finished.
	MigrationPropagating MigrationStep = "Propagating"
	// MigrationRewriting rewrites all objects.
	MigrationRewriting MigrationStep = "Rewriting"
	// MigrationAuditing checks the objects again that the API server reported as current.
	MigrationAuditing MigrationStep = "Auditing"
	// MigrationVerifying writes objects again; that must change nothing.
	MigrationVerifying MigrationStep = "Verifying"
	// MigrationPruning reduces storedVersions to the storage version.
	MigrationPruning MigrationStep = "Pruning"
	// MigrationSuspended waits for spec.migration.suspend to be false.
	MigrationSuspended MigrationStep = "Suspended"
)

// MigrationCause tells why a run started.
type MigrationCause string

const (
	// MigrationForStoredVersions means that objects may be stored at a version other than
	// the storage version.
	MigrationForStoredVersions MigrationCause = "StoredVersions"
	// MigrationForPreservedData means that preserved values of objects can return to
	// fields.
	MigrationForPreservedData MigrationCause = "PreservedData"
	// MigrationByTrigger means that spec.migration.trigger changed.
	MigrationByTrigger MigrationCause = "Trigger"
)

// MigrationStatus is the latest migration run.
type MigrationStatus struct {
	// run identifies the run: a hash of what it is pinned to, which is the generation of the
	// CustomResourceDefinition, the storage version and the trigger. If the generation changes, the
	// run is superseded.
	// +required
	Run string `json:"run"`
	// state is the state of the run: Running, Succeeded, Failed, Superseded or Cancelled.
	// +required
	State MigrationState `json:"state"`
	// step is the current step of a run in progress: Starting, Trying, Propagating, Rewriting,
	// Auditing, Verifying, Pruning or Suspended.
	// +optional
	Step MigrationStep `json:"step,omitempty"`
	// cause tells why the run started: StoredVersions, PreservedData or Trigger.
	// +optional
	Cause MigrationCause `json:"cause,omitempty"`
	// ruleset is the hash of the ruleset that converts objects during the run. Preserved
	// values return to the fields that it has.
	// +optional
	Ruleset string `json:"ruleset,omitempty"`
	// trigger is the spec.migration.trigger that started the run.
	// +optional
	Trigger string `json:"trigger,omitempty"`
	// retryOf is the previous run if that failed at some objects: this run writes only
	// those.
	// +optional
	RetryOf string `json:"retryOf,omitempty"`
	// storageVersion is the version at which the run writes.
	// +required
	StorageVersion string `json:"storageVersion"`
	// total is the number of objects found.
	// +required
	Total int64 `json:"total"`
	// rewritten is the number of objects whose bytes in etcd changed.
	// +required
	Rewritten int64 `json:"rewritten"`
	// unchanged is the number of objects that needed no rewrite: they were already stored at the
	// storage version, or were deleted during the run.
	// +required
	Unchanged int64 `json:"unchanged"`
	// failed is the number of objects that could not be rewritten.
	// +required
	Failed int64 `json:"failed"`
	// notPlaced is the number of objects with preserved values that could not return to
	// their fields: the API server refuses the object at the version of those values, or
	// the schema of the field does not allow them. These objects are migrated, and keep
	// the values in annotations; record has the first ten of them.
	// +optional
	NotPlaced int64 `json:"notPlaced,omitempty"`
	// progress is text for the printer column Migrated: the number of processed objects
	// and of all objects, such as "1200/5000". Programs read the counters.
	// +optional
	Progress string `json:"progress,omitempty"`
	// progressTime is when the counters were read. During a run they are read every five
	// seconds or less often.
	// +optional
	ProgressTime *metav1.Time `json:"progressTime,omitempty"`
	// estimatedCompletion is when the run ends at that rate.
	// +optional
	EstimatedCompletion *metav1.Time `json:"estimatedCompletion,omitempty"`
	// record is the ConfigMap that has the complete record of the run, including every
	// object that failed, as namespace/name. It exists until another run starts.
	// +optional
	Record string `json:"record,omitempty"`
	// failures lists the first ten objects that failed. record lists all of them.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=10
	Failures []MigrationFailure `json:"failures,omitempty"`
	// message tells why a run in progress is stalled, or why a failed run could not continue.
	// +optional
	Message string `json:"message,omitempty"`
	// startTime is when the run started.
	// +optional
	StartTime *metav1.Time `json:"startTime,omitempty"`
	// completionTime is when the run ended.
	// +optional
	CompletionTime *metav1.Time `json:"completionTime,omitempty"`
}

// Done is the number of objects that the run has processed.
func (s *MigrationStatus) Done() int64 { return s.Rewritten + s.Unchanged + s.Failed }

// Known is the number of objects that the run has to process, as far as is known: more than Total if others were created
// meanwhile.
func (s *MigrationStatus) Known() int64 { return max(s.Total, s.Done()) }

// MigrationFailure is one object that could not be rewritten.
type MigrationFailure struct {
	// object is the object as namespace/name, or as name if the kind is cluster-scoped, the
	// form of keys in client-go.
	// +required
	Object string `json:"object"`
	// reason is the reason as one word, such as Invalid or AdmissionDenied. Later versions may
	// add reasons.
	// +optional
	Reason MigrationFailureReason `json:"reason,omitempty"`
	// message is the answer of the API server.
	// +required
	Message string `json:"message"`
	// command shows the object, or the cause of the failure.
	// +optional
	Command string `json:"command,omitempty"`
}

// MigrationFailureReason tells why an object could not be rewritten, or why a preserved value of it
// could not be restored.
type MigrationFailureReason string

const (
	// FailureConversionFailed is an object that the converter refuses.
	FailureConversionFailed MigrationFailureReason = "ConversionFailed"
	// FailureInvalid is an object that the schema refuses.
	FailureInvalid MigrationFailureReason = "Invalid"
	// FailureAdmissionDenied is an object that an admission webhook, an admission policy, or
	// another admission plugin refuses.
	FailureAdmissionDenied MigrationFailureReason = "AdmissionDenied"
	// FailureTooLarge is an object that is too large for etcd or the API server.
	FailureTooLarge MigrationFailureReason = "TooLarge"
	// FailureNamespaceTerminating is an object whose namespace is being deleted.
	FailureNamespaceTerminating MigrationFailureReason = "NamespaceTerminating"
	// FailureConflict is an object that other clients wrote during every attempt.
	FailureConflict MigrationFailureReason = "Conflict"
	// FailureNotFound is an object that is listed but cannot be patched.
	FailureNotFound MigrationFailureReason = "NotFound"
	// FailureUnavailable is an object for which a webhook, etcd or the API server did not
	// answer, although they answered for other objects.
	FailureUnavailable MigrationFailureReason = "Unavailable"
	// FailureUnreadable is an object that cannot be listed.
	FailureUnreadable MigrationFailureReason = "Unreadable"
	// FailureNotServed is preserved data of a version that is not served.
	FailureNotServed MigrationFailureReason = "NotServed"
	// FailureDoesNotFit is a preserved value that the schema of its field does not allow.
	FailureDoesNotFit MigrationFailureReason = "DoesNotFit"
	// FailureRefused is any other refusal.
	FailureRefused MigrationFailureReason = "Refused"
)
