// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// VerifiedAPIServers tells how many API servers have to reach the converter.
// +kubebuilder:validation:Enum=One;None
type VerifiedAPIServers string

const (
	// VerifyOneAPIServer means that the API server that answers the operator reaches it.
	VerifyOneAPIServer VerifiedAPIServers = "One"
	// VerifyNoAPIServer means that no API server is asked.
	VerifyNoAPIServer VerifiedAPIServers = "None"
)

// Verification tells what the operator verifies before it points the
// CustomResourceDefinition at the converter, and again later. It always requests a TLS
// handshake and the conversion of a canary object, for each pair of versions, from every
// converter pod.
type Verification struct {
	// samples is the number of live objects that are converted to each version and back by
	// the converter pods. With 0, the operator reads no objects. It chooses the number by
	// default, currently 100.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=10000
	Samples *int32 `json:"samples,omitempty"`

	// resampleInterval is the time between samples after the activation, plus or minus a
	// tenth: objects change, and so may the result. The condition SamplesFailing reports
	// the result, which changes nothing else. With 0s, the operator takes samples only
	// before the activation. It takes none during a migration, or while the policy is
	// paused. The operator chooses the interval by default, currently 6h.
	// +optional
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:Pattern=`^([0-9]{1,7}(h|m|s|ms)){1,4}$`
	// +kubebuilder:validation:XValidation:rule="duration(self) == duration('0s') || duration(self) >= duration('10m') && duration(self) <= duration('720h')",message="resampleInterval must be 0s, for never, or between 10m and 720h"
	ResampleInterval *metav1.Duration `json:"resampleInterval,omitempty"`

	// apiServers tells how many API servers have to reach the converter over their own
	// network: One, the default, or None. For One, the operator briefly points the CustomResourceDefinition
	// conversionprobes.probe.conversion-operator.io, which has no objects, at the same
	// client configuration.
	// +optional
	APIServers VerifiedAPIServers `json:"apiServers,omitempty"`

	// timeout limits the duration of all samples together, and how long the operator waits
	// for the API server's answer to the probe. API servers give up a call after 30
	// seconds: with a shorter timeout you do not see their error. The operator chooses the
	// timeout by default, currently 45s.
	// +optional
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:Pattern=`^([0-9]{1,7}(h|m|s|ms)){1,4}$`
	// +kubebuilder:validation:XValidation:rule="duration(self) >= duration('1s') && duration(self) <= duration('1h')",message="timeout must be between 1s and 1h"
	Timeout *metav1.Duration `json:"timeout,omitempty"`
}

// VerificationStatus is what the operator verified before it pointed the
// CustomResourceDefinition at the converter, and when it took samples since.
type VerificationStatus struct {
	// subject identifies what was verified: the CustomResourceDefinition, the ruleset and
	// the client configuration of the webhook.
	// +required
	Subject string `json:"subject"`
	// samples is the number of live objects that came back unchanged; absent while the
	// check is pending.
	// +optional
	Samples *int32 `json:"samples,omitempty"`
	// apiServerProbe is true after an API server has reached the converter.
	// +optional
	APIServerProbe bool `json:"apiServerProbe,omitempty"`
	// nextSampleTime is when the next samples after the activation are due. The condition
	// SamplesFailing reports what the last ones found.
	// +optional
	NextSampleTime *metav1.Time `json:"nextSampleTime,omitempty"`
}

// UnconvertedWindow is the period in which a CustomResourceDefinition served several
// versions with strategy None: objects that were written at one version were read at
// another without a conversion.
type UnconvertedWindow struct {
	// since is when it began at the latest: when the second version was served or, if that
	// is unknown, when the CustomResourceDefinition was created.
	// +required
	Since metav1.Time `json:"since"`
	// resourceVersion is that of the CustomResourceDefinition when it began; absent if the
	// operator did not see that.
	// +optional
	ResourceVersion string `json:"resourceVersion,omitempty"`
	// until is when the conversion was observed to be active; absent before.
	// +optional
	Until *metav1.Time `json:"until,omitempty"`
	// written is the number of objects that were written in that period at a version other
	// than the storage version, or while the storage version changed, as far as their
	// resourceVersions and managedFields show; absent until they are counted.
	// +optional
	Written *int64 `json:"written,omitempty"`
	// objects lists the first ten of them, each as namespace/name, or as name if the kind is
	// cluster-scoped.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=10
	Objects []string `json:"objects,omitempty"`
	// olderObjects is the number of objects that are older than the
	// CustomResourceDefinition, which was removed without them, and created again. Its
	// history does not show in which versions they are stored: a migration rewrites them.
	// +optional
	OlderObjects int64 `json:"olderObjects,omitempty"`
}
