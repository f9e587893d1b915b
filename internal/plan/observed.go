// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
	"github.com/conversion-operator/conversion-operator/internal/conversion"
)

// DefaultSettle is how long a migration lets writes in the old storage version
// drain before it starts. An API server keeps the old storage for requests in
// flight up to twice its request timeout of one minute:
// k8s.io/apiextensions-apiserver, pkg/apiserver/customresource_handler.go, tearDown.
const DefaultSettle = 2 * time.Minute

// Settings are the same for every policy.
type Settings struct {
	// Namespace of the operator and of everything that it creates.
	Namespace string
	// Image of converter and migration pods: the operator's own.
	Image string
	// Settle is how long a migration lets writes in the old storage version
	// drain before it starts.
	Settle time.Duration
}

// Observed is everything that a decision may depend on, read once.
type Observed struct {
	Settings Settings
	// Now is the time of the observation.
	Now time.Time

	Policy *v1alpha1.ConversionPolicy
	// CRD is nil when it does not exist.
	CRD *apiextensionsv1.CustomResourceDefinition
	// Rules are the policy's rules compiled against the CRD.
	Rules conversion.Result

	// Authority and Certificate are nil when they do not exist.
	Authority   *corev1.Secret
	Certificate *corev1.Secret

	// PodFailure is why the Deployment cannot create converter pods; empty where it can.
	PodFailure string
	// Pods are the converter pods that are not being deleted, sorted by name.
	Pods []Pod
	// Endpoints is the number of ready endpoints of the converter's Service.
	Endpoints int

	// Runs are the policy's migration Jobs, sorted by name.
	Runs []Run
	// Serving is the plan that status.plan names, nil where it is gone. Pods go
	// on with it while the rules of the policy do not compile.
	Serving *conversion.Plan
	// StalePlans are the names of plan ConfigMaps of other hashes than the current one.
	StalePlans []string
	// Rights tells whether migration rights for this policy exist.
	Rights bool
}

// Pod is one converter pod.
type Pod struct {
	Name string
	UID  types.UID
	IP   string
	// PlanHash is the plan that the pod was started with.
	PlanHash string
	Ready    bool
	// Proof is the answer to the probe; nil when the pod was not probed.
	Proof *Proof
}

// Proof is what a converter pod answered to a probe.
type Proof struct {
	// Reason is empty when the pod is proven, and otherwise a condition reason.
	Reason string
	// Message names the cause.
	Message string
}

// Run is one migration Job and what it recorded.
type Run struct {
	// ID is the hash of what the run is pinned to.
	ID  string
	Job *batchv1.Job
	// Progress is nil until the Job recorded any.
	Progress *Progress
}

// Progress is what a migration Job recorded about itself.
type Progress struct {
	// Finished means that the Job will do nothing more.
	Finished bool
	// Complete means that every object is proven to be in the storage version.
	Complete bool
	// Aborted says why a finished run could not go through all objects; empty otherwise.
	Aborted string

	Total, Rewritten, Current, Gone, Failed int64

	Failures []v1alpha1.MigrationFailure
	Started  *metav1.Time
}
