// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package observed has the input of every decision: the state of the cluster for one policy,
// read once, and the facts that follow from it alone.
package observed

import (
	"net"
	"strconv"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
	"github.com/conversion-operator/conversion-operator/internal/engine/conversion/compile"
	"github.com/conversion-operator/conversion-operator/internal/migration/contract"
	"github.com/conversion-operator/conversion-operator/internal/operator/crds"
	"github.com/conversion-operator/conversion-operator/internal/operator/plan/names"
	"github.com/conversion-operator/conversion-operator/internal/operator/plan/podspec"
)

// DefaultPropagationDelay is how long API servers may use the previous
// CustomResourceDefinition after a change, unless their request timeout is longer than usual. Meanwhile, a migration waits for writes in the
// previous storage version, converter pods serve the previous ruleset, and no pod uses the
// next certificate authority. An API server keeps the previous storage for requests in
// flight for up to twice its request timeout of one minute:
// k8s.io/apiextensions-apiserver, pkg/apiserver/customresource_handler.go, tearDown.
const DefaultPropagationDelay = 2 * time.Minute

// DefaultProofLifetime is how long a probe of a converter pod counts. A probe costs the pod a
// handshake and a few small objects.
const DefaultProofLifetime = 5 * time.Minute

// ProbeAgain is the time between two probes of a pod that fails them.
const ProbeAgain = 3 * time.Second

// Settings are the same for every policy.
type Settings struct {
	// Namespace of the operator and of everything that it creates.
	Namespace string
	// Username of the operator in requests to the API server. Empty if it is unknown: then admission
	// policies do not protect spec.conversion.
	Username string
	// Image of the operator, which converter and migration pods run, too.
	Image string
	// ConverterAccount is the ServiceAccount of converter pods, which is installed with the
	// operator. Empty for DefaultConverterAccount.
	ConverterAccount string
	// PriorityLevel is the PriorityLevelConfiguration of migrations. Empty for
	// DefaultPriorityLevel.
	PriorityLevel string
	// DependentsAccount is the ServiceAccount that may search for dependents. Empty if it is not
	// installed.
	DependentsAccount string
	// ManagerAccount is the ServiceAccount of the manager. Empty if it runs outside of the cluster.
	ManagerAccount string
	// Inherited is what converter and migration pods take from the manager's pod.
	Inherited podspec.Inherited
	// PropagationDelay is how long API servers may use the previous CustomResourceDefinition
	// after a change.
	PropagationDelay time.Duration
	// ProofLifetime is how long a probe of a converter pod counts.
	ProofLifetime time.Duration
	// FailureWindow is how long failed conversions are reported after the last one, and
	// twice ProofLifetime at least. Zero for DefaultFailureWindow.
	FailureWindow time.Duration
	// SizeAdmission makes API servers refuse objects that are too large to convert. Existing
	// ones are then truncated when clients read them; without it, reads of them fail.
	SizeAdmission bool
	// TracingEndpoint receives the traces of migration pods. Empty for none.
	TracingEndpoint string
}

// Cluster is the observed state for one policy. Its lists may be in any order (InOrder).
type Cluster struct {
	Settings Settings
	// Now is the time of the observation.
	Now time.Time

	Policy *v1alpha1.ConversionPolicy
	// CRD is nil when it does not exist.
	CRD *apiextensionsv1.CustomResourceDefinition
	// Composite is the CompositeResourceDefinition (XRD) from which Crossplane generates the CRD;
	// nil if it does not, or if there is a CompositeProblem.
	Composite *crds.Composite
	// CompositeProblem is why the XRD cannot be read; without a message there is none.
	CompositeProblem CompositeProblem
	// Rules are the policy's rules compiled against the CRD.
	Rules compile.Result

	// Authority is the Secret of the certificate authority, Certificate the one that pods
	// mount, and Source the one of another client that SourceSecret names. Each is nil if it
	// does not exist.
	Authority   *corev1.Secret
	Certificate *corev1.Secret
	Source      *corev1.Secret
	// OwnCertificate is the Secret that pods of the policy mount while Certificate is that of a
	// fleet.
	OwnCertificate *corev1.Secret
	// Request is the state of the request to cert-manager.
	Request Request
	// Leftovers are the names of Secrets that the policy no longer uses.
	Leftovers []string

	// PodFailure is why the Deployment cannot create converter pods.
	PodFailure PodTrouble
	// Pods are the converter pods that are not being deleted.
	Pods []Pod
	// Ending are the converter pods that are being deleted, and may still answer.
	Ending []EndingPod
	// Endpoints is the number of ready endpoints of the converter's Service.
	Endpoints int
	// PortEndpoints is the number of ready endpoints by the names of its ports.
	PortEndpoints map[string]int
	// Evictable is the number of pods that the PodDisruptionBudget allows to evict now.
	Evictable int
	// Others are the nodes that none of the policy's own pods is on.
	Others OtherNodes
	// Deployed tells that a Deployment for compiled rules exists, and Exposed that a Service
	// exists.
	Deployed, Exposed bool
	// Fleets are those that the policy uses, and those that API servers may still call for it.
	Fleets []Fleet
	// External is the converter that users run, if the policy names one.
	External External

	// Runs are the policy's migration Jobs with their records.
	Runs []Run
	// ForeignMigration is a migration of the same objects by another client, named as
	// kubectl names it. Empty if there is none, or if it does not matter (MayMigrate).
	ForeignMigration string
	// Revisions are the rulesets in ConfigMaps, and the images that have a Deployment.
	Revisions []StoredRevision
	// Rights tells that migration rights for this policy exist.
	Rights bool
	// KeepAccount tells that an administrator gave pull secrets to the ServiceAccount of
	// migrations, so that it stays when the rights are withdrawn.
	KeepAccount bool
	// Granted has the grants of an administrator, if the operator may grant none itself. It
	// is nil if the operator may, and if there is no CRD.
	Granted *Granted

	// Admission is the policy's webhook configuration; nil if there is none.
	Admission *admissionregistrationv1.ValidatingWebhookConfiguration

	// Samples, APIServer, Written, Requested, Cleared, Searched and Resampled are the results of
	// background checks; nil if none was started.
	Samples   *BackgroundCheck
	APIServer *BackgroundCheck
	Written   *BackgroundCheck
	Requested *BackgroundCheck
	Cleared   *BackgroundCheck
	Searched  *BackgroundCheck
	Resampled *BackgroundCheck
	// ResamplersBusy tells that the maximum number of policies take samples again now.
	ResamplersBusy bool
	// ReadRights tells that rights to read the objects of this policy's kind exist, and
	// CleanRights that rights to change their managedFields do.
	ReadRights, CleanRights bool
}

// CompositeProblem is why a CompositeResourceDefinition cannot be read.
type CompositeProblem struct {
	// Reason is a condition reason.
	Reason string
	// Message names the cause, and says what to do.
	Message string
}

// PodTrouble prevents pods from being created or from starting. Without a message there is
// none.
type PodTrouble struct {
	Cause PodTroubleCause
	// Message does not change while the trouble is the same.
	Message string
}

// PodTroubleCause is a cause that has a known remedy.
type PodTroubleCause string

const (
	// PodForbidden means that Pod Security admission refuses the pod in its namespace.
	PodForbidden PodTroubleCause = "Forbidden"
	// PodWithoutPort means that no node has the pod's host ports free.
	PodWithoutPort PodTroubleCause = "NoFreePort"
	// PodUnschedulable means that no node takes the pod, for another reason.
	PodUnschedulable PodTroubleCause = "Unschedulable"
	// PodWithoutImage means that an image of the pod cannot be pulled.
	PodWithoutImage PodTroubleCause = "ImagePull"
	// PodExits means that a container of the pod exits each time it starts.
	PodExits PodTroubleCause = "Exits"
)

// Pod is one converter pod.
type Pod struct {
	Name string
	UID  types.UID
	// Fleet that the pod belongs to; empty for a pod of the policy alone.
	Fleet string
	// Created is the creation time of the pod; zero for an endpoint of a converter that
	// users run.
	Created time.Time
	IP      string
	// Port at which its converter listens.
	Port int32
	// Revisions that the pod serves: its image, or the rulesets that it reported with its last
	// probe. It is nil if they are unknown.
	Revisions []string
	// FailedRulesets is why the pod cannot serve rulesets, by hash.
	FailedRulesets map[string]string
	Ready          bool
	// Image tells that the pod runs an image of the user. API servers call such a pod at a
	// Service port of its own.
	Image bool
	// Trouble prevents the pod from starting.
	Trouble PodTrouble
	// Scheduled tells that the pod is on a node, where it may have mounted Secrets, and Node names
	// that node.
	Scheduled bool
	Node      string
	// Certificate is the CertificateHash for which the pod was refreshed; empty if it was not.
	Certificate string
	// Ruleset is the value of names.RulesetAnnotation.
	Ruleset string
	// Proof is the answer to the probe; nil if the pod was not probed.
	Proof *Proof
	// Failures are the failed conversions that the pod reported with its last probe.
	Failures []Failure
	// Oversized are the objects that the pod has truncated.
	Oversized []v1alpha1.OversizedObject
}

// Failure is a kind of failed conversions.
type Failure struct {
	v1alpha1.ConversionFailure
	// Ruleset is the hash of the one that lacks a version, and Since is when that failed first. They are
	// empty for other causes.
	Ruleset string
	Since   time.Time
	// Count is how many conversions failed in this way since the pod started.
	Count int64
}

// Address is where its converter listens, as host and port.
func (p Pod) Address() string { return net.JoinHostPort(p.IP, strconv.Itoa(int(p.Port))) }

// Request is the state of the request to cert-manager.
type Request struct {
	// NotInstalled tells that the API server does not know cert-manager's Certificate.
	NotInstalled bool
	// Message is why cert-manager has not issued the certificate; empty if it has.
	Message string
}

// EndingPod is a converter pod that is being deleted.
type EndingPod struct {
	// Fleet that the pod belongs to; empty for a pod of the policy alone.
	Fleet string
	// Until is the end of its grace period.
	Until time.Time
}

// StoredRevision is a ruleset in a ConfigMap, or an image in a Deployment.
type StoredRevision struct {
	Hash string
	// Readable tells that pods can be started with it.
	Readable bool
	// Image has the address of an image's pods; nil for a ruleset.
	Image *ImageEndpoint
	// Stored is the ruleset as conversion.Store compressed it, and ConfigMap the name of what has
	// it.
	Stored    []byte
	ConfigMap string
}

// Fleet is the fleet whose pods serve it; empty for pods of the policy alone.
func (s StoredRevision) Fleet() string { return names.RevisionOf(s.Hash).Fleet }

// Proof is the result of a probe of a converter pod.
type Proof struct {
	// Reason is empty if the pod passed, and otherwise a condition reason.
	Reason string
	// Message names the cause.
	Message string
	// Warning is about a pod that passed.
	Warning string
	// Successor tells that the certificate was verified with Trust.Successor alone.
	Successor bool
}

// Run is one migration: its Job and its record.
type Run struct {
	// ID is the hash of the state that the run is pinned to.
	ID string
	// Job is nil before it is created, and while it is being replaced.
	Job *batchv1.Job
	// Record is nil until the Job has written one.
	Record *contract.Record
	// Trouble prevents its pod from starting.
	Trouble PodTrouble
}

// External is a converter that users run.
type External struct {
	// Reason is the condition reason why it cannot be called; empty if it can be.
	Reason string
	// Message names the cause.
	Message string
	// Endpoints are those of a Service, or the host of a URL.
	Endpoints []Pod
}

// ImageEndpoint is where API servers call the converter of one image. The Deployment has it
// in an annotation, because the policy may change.
type ImageEndpoint struct {
	// Port of the Service.
	Port int32 `json:"port"`
	// Path for ConversionReviews.
	Path string `json:"path"`
	// ConversionReviewVersions that it understands.
	ConversionReviewVersions []string `json:"conversionReviewVersions"`
}

// Granted has the grants of an administrator in an installation in which the operator may not
// write cluster roles (config/components/granted-rights). The operator waits for missing
// grants, and revokes none.
type Granted struct {
	// Migrate allows migrations of the policy.
	Migrate bool
	// Read allows to read objects for samples.
	Read bool
	// Clear allows to change managedFields of objects.
	Clear bool
}

// Fleet is a ConverterFleet, as far as a policy depends on it.
type Fleet struct {
	Name string
	// Found tells that there is such a ConverterFleet, and Exists that it is not being deleted, and
	// stays while policies use it.
	Found, Exists bool
	// Spec of the fleet; the zero value if there is none.
	Spec v1alpha1.ConverterFleetSpec
	// Replicas is the wanted number of its pods.
	Replicas int32
	// Certificate is the Secret that its pods mount; nil if there is none.
	Certificate *corev1.Secret
	// PodFailure is why its Deployment cannot create pods.
	PodFailure PodTrouble
	// Endpoints is the number of ready endpoints of its Service, and Evictable the number of pods
	// that its PodDisruptionBudget allows to evict now.
	Endpoints, Evictable int
	// Shards are the sizes of its ConfigMaps with rulesets, in bytes, by number. One that does not
	// exist has none.
	Shards [names.Shards]int
}

// OtherNodes are the nodes that no pod of a workload is on. They are only looked for while all its
// ready pods are on one node.
type OtherNodes struct {
	// Exist tells that there are some, and Usable that one of them is ready and admits the pods, by
	// its labels and taints. Whether it has room for one is not known.
	Exist, Usable bool
}
