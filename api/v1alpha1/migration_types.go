// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// MigrationMode says what starts a migration.
//
// +kubebuilder:validation:Enum=Automatic;OnTrigger;Never
type MigrationMode string

const (
	// MigrationAutomatic migrates whenever objects may be stored in another version
	// than the storage version, and when preserved data gets a place there.
	MigrationAutomatic MigrationMode = "Automatic"
	// MigrationOnTrigger migrates when spec.migration.trigger changes.
	MigrationOnTrigger MigrationMode = "OnTrigger"
	// MigrationNever leaves stored objects alone.
	MigrationNever MigrationMode = "Never"
)

// MigrationPace says what counts more while objects are rewritten.
//
// +kubebuilder:validation:Enum=Gentle;Fast
type MigrationPace string

const (
	// MigrationGentle has more writes in flight only while API servers answer each as soon as one alone.
	MigrationGentle MigrationPace = "Gentle"
	// MigrationFast has more writes in flight as long as that gets more objects done in a second.
	MigrationFast MigrationPace = "Fast"
)

// MigrationVerification says how a migration is checked after it.
//
// +kubebuilder:validation:Enum=None;Sample;Full
type MigrationVerification string

const (
	// MigrationVerifyNone checks nothing: the API server's answer to each write is the proof.
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
	// MigrationFallbackStatus writes through the subresource status, which few admission webhooks look at.
	MigrationFallbackStatus MigrationFallback = "Status"
	// MigrationFallbackOldVersion writes through another served version, whose schema the object may still fit.
	MigrationFallbackOldVersion MigrationFallback = "OldVersion"
)

// Migration says when and how stored objects are rewritten in the storage version.
//
// +kubebuilder:validation:XValidation:rule="!has(self.fallback) || self.fallback.all(f, self.fallback.exists_one(g, g == f))",message="fallback names a way twice: name each of Status and OldVersion at most once, in the order in which they are to be tried"
type Migration struct {
	// mode says what starts a migration: Automatic whenever objects may be
	// stored in another version than the storage version, and once after each
	// change of rules or schemas that gives a place there to values that objects
	// hold in annotations; OnTrigger when trigger changes; or Never. Never also gives up a run that goes on: what it
	// has rewritten stays rewritten, and nothing is pruned.
	// +optional
	// +kubebuilder:default=Automatic
	Mode MigrationMode `json:"mode,omitempty"`

	// trigger is any text; a change starts a run, also in mode Automatic. After a
	// run in which objects failed, it writes those alone, unless the
	// CustomResourceDefinition has changed since. While a run goes on, it waits for
	// the end of that run.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	Trigger string `json:"trigger,omitempty"`

	// paused stops the pods of a run, and starts no run. Without it, the run goes
	// on where it stopped.
	// +optional
	Paused bool `json:"paused,omitempty"`

	// pace says what counts more: Gentle, that other clients hardly notice the run,
	// which has more writes in flight only while API servers answer each as soon as
	// one alone; or Fast, that it ends soon, which has more in flight as long as that
	// finishes earlier, at the expense of other clients. A change takes effect immediately: the run
	// goes on where it is.
	// +optional
	// +kubebuilder:default=Gentle
	Pace MigrationPace `json:"pace,omitempty"`

	// maxWritesPerSecond is the most objects that a run writes in a second, at
	// either pace. A change takes effect at once.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=100000
	MaxWritesPerSecond *int32 `json:"maxWritesPerSecond,omitempty"`

	// concurrency is the most objects that a run writes at the same time; there are
	// fewer while API servers answer slowly. A change takes effect at once.
	// +optional
	// +kubebuilder:default=32
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=256
	Concurrency *int32 `json:"concurrency,omitempty"`

	// verify says how a run is checked before storedVersions is pruned: by nothing
	// more than the API server's answers, by a sample of the objects written again,
	// or by all of them. Nothing may change any more.
	// +optional
	// +kubebuilder:default=Sample
	Verify MigrationVerification `json:"verify,omitempty"`

	// fallback are the other ways to write an object that the API server refuses to
	// write at the storage version, in the order in which they are tried. None by
	// default. Objects are never edited.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=2
	Fallback []MigrationFallback `json:"fallback,omitempty"`
}

// MigrationState is the state of a migration run.
//
// +kubebuilder:validation:Enum=Running;Succeeded;Failed;Superseded;Cancelled
type MigrationState string

const (
	// MigrationRunning means that the run goes on.
	MigrationRunning MigrationState = "Running"
	// MigrationSucceeded means that every object is stored in the storage version.
	MigrationSucceeded MigrationState = "Succeeded"
	// MigrationFailed means that some objects could not be rewritten, or the run could not go on.
	MigrationFailed MigrationState = "Failed"
	// MigrationSuperseded means that the CustomResourceDefinition changed under the run, which proves nothing any more.
	MigrationSuperseded MigrationState = "Superseded"
	// MigrationCancelled means that spec.migration.mode became Never before its end.
	MigrationCancelled MigrationState = "Cancelled"
)

// MigrationStep is what a run is at, in the order of a run; Paused is beside it.
//
// +kubebuilder:validation:Enum=Starting;Trying;Propagating;Rewriting;Auditing;Verifying;Pruning;Paused
type MigrationStep string

const (
	// MigrationStarting waits for the run's pod.
	MigrationStarting MigrationStep = "Starting"
	// MigrationTrying writes a few objects in dry runs, to tell early what will be refused.
	MigrationTrying MigrationStep = "Trying"
	// MigrationPropagating waits until every API server writes at the storage version, and no write at another is in flight.
	MigrationPropagating MigrationStep = "Propagating"
	// MigrationRewriting goes through all objects.
	MigrationRewriting MigrationStep = "Rewriting"
	// MigrationAuditing checks objects again that the API server reported as current.
	MigrationAuditing MigrationStep = "Auditing"
	// MigrationVerifying writes objects again, which must change nothing.
	MigrationVerifying MigrationStep = "Verifying"
	// MigrationPruning reduces storedVersions to the storage version.
	MigrationPruning MigrationStep = "Pruning"
	// MigrationPaused waits for spec.migration.paused to be false.
	MigrationPaused MigrationStep = "Paused"
)

// BarrierKind is how it is known that API servers write at the storage version.
//
// +kubebuilder:validation:Enum=AllServers;Time
type BarrierKind string

const (
	// BarrierAllServers means that every API server was asked.
	BarrierAllServers BarrierKind = "AllServers"
	// BarrierTime means that not every API server can be asked, and that there was time for all of them to follow.
	BarrierTime BarrierKind = "Time"
)

// MigrationBarrier is what a run waited for before it read the first object.
type MigrationBarrier struct {
	// kind is how it is known that API servers write at the storage version.
	// +required
	Kind BarrierKind `json:"kind"`
	// apiServers is the number of API servers that were asked.
	// +optional
	APIServers int32 `json:"apiServers,omitempty"`
}

// MigrationCause says why a run was made.
//
// +kubebuilder:validation:Enum=StoredVersions;PreservedData;Trigger
type MigrationCause string

const (
	// MigrationForStoredVersions means that objects may be stored in another version than the storage version.
	MigrationForStoredVersions MigrationCause = "StoredVersions"
	// MigrationForPreservedData means that objects hold values, in annotations, that have a place now.
	MigrationForPreservedData MigrationCause = "PreservedData"
	// MigrationByTrigger means that spec.migration.trigger changed.
	MigrationByTrigger MigrationCause = "Trigger"
)

// MigrationStatus is the latest migration run.
type MigrationStatus struct {
	// run identifies the run: a hash of what it is pinned to.
	// +required
	Run string `json:"run"`
	// state of the run.
	// +required
	State MigrationState `json:"state"`
	// step is what the run is at, while it goes on.
	// +optional
	Step MigrationStep `json:"step,omitempty"`
	// waiting says why the run is stalled, while it is.
	// +optional
	Waiting string `json:"waiting,omitempty"`
	// cause is why the run was made.
	// +optional
	Cause MigrationCause `json:"cause,omitempty"`
	// ruleset is the hash of the rules by which objects convert during the run:
	// values in annotations that have a place by them become data.
	// +optional
	Ruleset string `json:"ruleset,omitempty"`
	// trigger is the spec.migration.trigger that the run answers.
	// +optional
	Trigger string `json:"trigger,omitempty"`
	// retryOf is the run before it, where that failed at some objects: this one
	// goes on from there, and writes those alone.
	// +optional
	RetryOf string `json:"retryOf,omitempty"`
	// storageVersion that the run writes.
	// +required
	StorageVersion string `json:"storageVersion"`
	// crdUID is the CustomResourceDefinition that the run is pinned to.
	// +required
	CRDUID types.UID `json:"crdUID"`
	// crdGeneration is the generation of the CustomResourceDefinition that the run is pinned to.
	// +required
	CRDGeneration int64 `json:"crdGeneration"`
	// total is the number of objects found.
	// +required
	Total int64 `json:"total"`
	// rewritten objects had other bytes in etcd before.
	// +required
	Rewritten int64 `json:"rewritten"`
	// current objects were already stored in the storage version.
	// +required
	Current int64 `json:"current"`
	// gone objects were deleted meanwhile.
	// +required
	Gone int64 `json:"gone"`
	// failed objects could not be rewritten.
	// +required
	Failed int64 `json:"failed"`
	// verified objects were written again after the run, and nothing changed.
	// +optional
	Verified int64 `json:"verified,omitempty"`
	// byFallback are those of the rewritten objects that took one of spec.migration.fallback.
	// +optional
	ByFallback int64 `json:"byFallback,omitempty"`
	// placed objects held values in annotations that have become data.
	// +optional
	Placed int64 `json:"placed,omitempty"`
	// notPlaced objects hold values in annotations that have a place, and could not get
	// it: the object is refused at the version of those values, where they would become
	// data, or the field may not have them. They are migrated all the same, with their
	// annotations.
	// +optional
	NotPlaced int64 `json:"notPlaced,omitempty"`
	// progress is the objects done and found as text: "1200/5000".
	// +optional
	Progress string `json:"progress,omitempty"`
	// progressTime is when the counters were taken; while a run goes on, they are
	// taken at most every five seconds.
	// +optional
	ProgressTime *metav1.Time `json:"progressTime,omitempty"`
	// ratePerSecond is how many objects the run did in a second lately, while it goes on.
	// +optional
	RatePerSecond int64 `json:"ratePerSecond,omitempty"`
	// estimatedCompletion is when the run ends if it goes on at that rate.
	// +optional
	EstimatedCompletion *metav1.Time `json:"estimatedCompletion,omitempty"`
	// barrier is what the run waited for before it read the first object.
	// +optional
	Barrier *MigrationBarrier `json:"barrier,omitempty"`
	// record is the ConfigMap, as namespace/name, with all that the run recorded,
	// every object that failed among it. It is there until another run starts.
	// +optional
	Record string `json:"record,omitempty"`
	// predicted are objects that the API server refused before the first write, when
	// the run tried some without writing: at most ten, while the run goes on.
	// Fixing them now avoids another run.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=10
	Predicted []MigrationFailure `json:"predicted,omitempty"`
	// failures are the first ten objects that failed; record has all of them.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=10
	Failures []MigrationFailure `json:"failures,omitempty"`
	// refused says of the first ten of the objects that were not placed why.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=10
	Refused []MigrationFailure `json:"refused,omitempty"`
	// message says why the run could not go on.
	// +optional
	Message string `json:"message,omitempty"`
	// startTime of the run.
	// +optional
	StartTime *metav1.Time `json:"startTime,omitempty"`
	// completionTime of the run.
	// +optional
	CompletionTime *metav1.Time `json:"completionTime,omitempty"`
}

// MigrationFailure is one object that could not be rewritten.
type MigrationFailure struct {
	// object is its name, or namespace/name.
	// +required
	Object string `json:"object"`
	// version is the version whose preserved data could not be restored; empty if the
	// object itself was not migrated.
	// +optional
	Version string `json:"version,omitempty"`
	// reason is why, in one word.
	// +optional
	Reason string `json:"reason,omitempty"`
	// message is the API server's answer.
	// +required
	Message string `json:"message"`
	// command shows the object, or what is wrong with it.
	// +optional
	Command string `json:"command,omitempty"`
}

// EvidenceSource says how the evidence was obtained.
//
// +kubebuilder:validation:Enum=Migration;SingleVersion
type EvidenceSource string

const (
	// EvidenceMigration means that a run rewrote or found current every object.
	EvidenceMigration EvidenceSource = "Migration"
	// EvidenceSingleVersion means that the CustomResourceDefinition had this one version only.
	EvidenceSingleVersion EvidenceSource = "SingleVersion"
)

// MigrationEvidence is the proof that every stored object is in one version. It
// holds as long as the CustomResourceDefinition keeps that storage version and
// lists no other stored version, and the operator has seen each of its changes.
type MigrationEvidence struct {
	// crdUID is the CustomResourceDefinition that it speaks of.
	// +required
	CRDUID types.UID `json:"crdUID"`
	// crdGeneration is the generation up to which it holds. It follows the
	// CustomResourceDefinition step by step: a client that misses a step cannot know
	// that the storage version did not move there and back.
	// +required
	CRDGeneration int64 `json:"crdGeneration"`
	// storageVersion is the version of every stored object.
	// +required
	StorageVersion string `json:"storageVersion"`
	// source is how it was obtained.
	// +required
	Source EvidenceSource `json:"source"`
	// run is the migration that proved it.
	// +optional
	Run string `json:"run,omitempty"`
	// objects is the number of objects seen by that run.
	// +optional
	Objects int64 `json:"objects,omitempty"`
	// time at which it was obtained.
	// +required
	Time metav1.Time `json:"time"`
}
