// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package observed has what a decision about a policy depends on: what was seen of the
// cluster, read once, and the questions that this alone answers.
package observed

import (
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
	"github.com/conversion-operator/conversion-operator/internal/conversion/compile"
	"github.com/conversion-operator/conversion-operator/internal/migration/contract"
)

// DefaultPropagationDelay is how long API servers may go on by a CustomResourceDefinition
// as it was before a change: a migration lets writes in the old storage version
// drain, converter pods keep the previous plan, and the next certificate authority
// is trusted before it is used. An API server keeps the old storage for requests in
// flight up to twice its request timeout of one minute:
// k8s.io/apiextensions-apiserver, pkg/apiserver/customresource_handler.go, tearDown.
const DefaultPropagationDelay = 2 * time.Minute

// DefaultProofLifetime is how long a converter pod is taken to answer as it did when
// it was asked. To ask costs the pod a handshake and a few small objects.
const DefaultProofLifetime = 5 * time.Minute

// ProbeAgain is when a pod that failed its probe is asked again.
const ProbeAgain = 3 * time.Second

// Settings are the same for every policy.
type Settings struct {
	// Namespace of the operator and of everything that it creates.
	Namespace string
	// Image of converter and migration pods: the operator's own.
	Image string
	// ConverterAccount is the ServiceAccount of converter pods, which is installed
	// with the operator; DefaultConverterAccount where it is empty.
	ConverterAccount string
	// PriorityLevel is the PriorityLevelConfiguration of migrations;
	// DefaultPriorityLevel where it is empty.
	PriorityLevel string
	// PriorityClass of converter pods whose policy names none; empty for the cluster's default.
	PriorityClass string
	// PropagationDelay is how long API servers may go on by a CustomResourceDefinition as it
	// was before a change.
	PropagationDelay time.Duration
	// ProofLifetime is how long a converter pod is taken to answer as it did when it
	// was asked.
	ProofLifetime time.Duration
	// FailureWindow is how long failed conversions are reported after the last one;
	// DefaultFailureWindow where it is zero, and twice ProofLifetime at least.
	FailureWindow time.Duration
	// SizeAdmission makes API servers refuse objects that could not be converted as a
	// whole. Then those that exist are read in a truncated form; otherwise reads of
	// them fail.
	SizeAdmission bool
	// TracingEndpoint is where migration pods send traces to; empty for none.
	TracingEndpoint string
}

// Cluster is everything that a decision may depend on, read once. Its lists may be in
// any order (order.go).
type Cluster struct {
	Settings Settings
	// Now is the time of the observation.
	Now time.Time

	Policy *v1alpha1.ConversionPolicy
	// CRD is nil when it does not exist.
	CRD *apiextensionsv1.CustomResourceDefinition
	// Rules are the policy's rules compiled against the CRD.
	Rules compile.Result

	// Authority is the Secret of the certificate authority, Certificate the one that
	// pods mount, Source the one of another client that SourceSecret names. Each is
	// nil when it does not exist.
	Authority   *corev1.Secret
	Certificate *corev1.Secret
	Source      *corev1.Secret
	// Request is what is known of the request to cert-manager.
	Request Request
	// Leftovers are the Secrets that no source and no converter of the policy names
	// any more, as names.
	Leftovers []string

	// PodFailure is why the Deployment cannot create converter pods.
	PodFailure PodTrouble
	// RolledOut tells that all pods of the Deployment, the ended ones aside, are of
	// its current template, and that it will make no others.
	RolledOut bool
	// Pods are the converter pods that are not being deleted.
	Pods []Pod
	// Ending are the converter pods that are being deleted, and answer meanwhile.
	Ending []EndingPod
	// Endpoints is the number of ready endpoints of the converter's Service.
	Endpoints int
	// PortEndpoints are those of its ports, by their names.
	PortEndpoints map[string]int
	// Evictable is how many pods may be evicted by the converter's PodDisruptionBudget now.
	Evictable int
	// Deployed tells that there is a Deployment for compiled rules, and Exposed that
	// there is a Service.
	Deployed, Exposed bool
	// External is the converter that users run, where the policy names one.
	External External

	// Runs are the policy's migration Jobs and what they recorded.
	Runs []Run
	// ForeignMigration names, as kubectl does, a migration of the same objects that
	// users run; empty where there is none, or where it does not matter (MayMigrate).
	ForeignMigration string
	// Revisions are the rulesets for which there is a ConfigMap, and the images for which
	// there is a Deployment.
	Revisions []StoredRevision
	// Rights tells whether migration rights for this policy exist.
	Rights bool
	// Granted is what an administrator has granted, where the operator may not; nil where
	// it may, and where there is no CRD.
	Granted *Granted

	// Admission is the policy's webhook configuration; nil where there is none.
	Admission *admissionregistrationv1.ValidatingWebhookConfiguration

	// Samples, APIServer, Written, Requested, Cleared and Resampled are what was asked, or done, in
	// the background; nil where nothing was.
	Samples   *BackgroundCheck
	APIServer *BackgroundCheck
	Written   *BackgroundCheck
	Requested *BackgroundCheck
	Cleared   *BackgroundCheck
	Resampled *BackgroundCheck
	// ResamplersBusy tells that as many policies take samples again as may at once.
	ResamplersBusy bool
	// ReadRights tells whether rights to read the objects of this policy's kind exist,
	// and CleanRights those to clear their managedFields.
	ReadRights, CleanRights bool
}

// PodTrouble is what keeps pods from being created or from starting; its message is
// empty if nothing is known to.
type PodTrouble struct {
	Cause PodTroubleCause
	// Message does not change while the trouble is the same.
	Message string
}

// PodTroubleCause is a cause that the planner knows a remedy for.
type PodTroubleCause string

const (
	// PodForbidden means that Pod Security admission refuses the pod in its namespace.
	PodForbidden PodTroubleCause = "Forbidden"
	// PodWithoutPort means that no node has the pod's host ports free.
	PodWithoutPort PodTroubleCause = "NoFreePort"
	// PodExits means that a container of the pod exits each time it starts.
	PodExits PodTroubleCause = "Exits"
)

// Pod is one converter pod.
type Pod struct {
	Name string
	UID  types.UID
	// Created is when the pod was; zero for an endpoint of a converter that a client
	// else runs.
	Created time.Time
	IP      string
	// Port is where its converter listens.
	Port int32
	// Revisions are those that the pod was started with.
	Revisions []string
	Ready     bool
	// Image tells that the pod runs an image of the user's, and so is called at a
	// port of the Service that leads to such pods only.
	Image bool
	// Trouble is what keeps the pod from starting.
	Trouble PodTrouble
	// Scheduled tells that the pod is on a node, where it may have mounted Secrets.
	Scheduled bool
	// Certificate is the CertificateHash for which the pod was nudged; empty where it was not.
	Certificate string
	// Proof is the answer to the probe; nil when the pod was not probed.
	Proof *Proof
	// Failures are the conversions that failed in it, when it was last asked.
	Failures []v1alpha1.ConversionFailure
	// Oversized are the objects that it answered in a truncated form.
	Oversized []v1alpha1.OversizedObject
}

// Request is what is known of the request to cert-manager.
type Request struct {
	// NotInstalled tells that the API server does not know cert-manager's Certificate.
	NotInstalled bool
	// Message is why cert-manager has not issued it; empty where it has.
	Message string
}

// EndingPod is a converter pod that was told to end.
type EndingPod struct {
	Revisions []string
	Image     bool
	// Until is when it is killed, if it has not ended before.
	Until time.Time
}

// StoredRevision is a ruleset in a ConfigMap, or an image in a Deployment.
type StoredRevision struct {
	Hash string
	// Readable tells that pods can be started with it.
	Readable bool
	// Image is where an image is to be found; nil for a ruleset.
	Image *ImageEndpoint
}

// Proof is what a converter pod answered to a probe.
type Proof struct {
	// Reason is empty when the pod is proven, and otherwise a condition reason.
	Reason string
	// Message names the cause.
	Message string
	// Warning is about what works, and may surprise.
	Warning string
	// Successor tells that the pod was verified by Trust.Successor alone.
	Successor bool
}

// Run is one migration: its Job and what that recorded.
type Run struct {
	// ID is the hash of what the run is pinned to.
	ID string
	// Job is nil where there is only the record: before the Job is made, and while
	// it is made again.
	Job *batchv1.Job
	// Record is nil until the Job wrote one.
	Record *contract.Record
	// Trouble is what keeps its pod from starting.
	Trouble PodTrouble
}

// External is a converter that users run.
type External struct {
	// Reason is why it cannot be called, a condition reason; empty where it can be.
	Reason string
	// Message names the cause.
	Message string
	// Endpoints are what answers for it: those of a Service, or the host of a URL.
	Endpoints []Pod
}

// ImageEndpoint is where API servers find the converter of one image. It is kept
// with the Deployment: the policy may have changed since.
type ImageEndpoint struct {
	// Port of the Service.
	Port int32 `json:"port"`
	// Path where it answers ConversionReviews.
	Path string `json:"path"`
	// ConversionReviewVersions that it understands.
	ConversionReviewVersions []string `json:"conversionReviewVersions"`
}

// Granted tells what an administrator has granted, where the operator may not write
// cluster roles: config/components/granted-rights. It then waits for what is
// missing, and takes nothing away.
type Granted struct {
	// Migrate: the policy's migrations may do what they have to.
	Migrate bool
	// Read: the objects of the policy's kind may be read for samples.
	Read bool
	// Clear: their managedFields may be changed.
	Clear bool
}
