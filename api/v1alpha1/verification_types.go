// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// Verification says what is proven before the CustomResourceDefinition is
// pointed at the converter, and looked at again later. A canary for each pair of versions, and a TLS
// handshake, are asked of every converter pod in any case.
type Verification struct {
	// samples is the number of live objects that are converted there and back
	// through the converter pods, to each version that there is. 0 takes none, and
	// then objects are not read.
	// +optional
	// +kubebuilder:default=100
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=10000
	Samples *int32 `json:"samples,omitempty"`

	// resampleInterval is how often samples are taken again once the
	// CustomResourceDefinition converts, give or take a tenth: objects change, and
	// so may what becomes of them. What is found is reported in the condition
	// SamplesFailing, and changes nothing else. 0s takes samples before the activation
	// only. Nothing is sampled while a migration runs or the policy is suspended.
	// +optional
	// +kubebuilder:default="6h"
	// +kubebuilder:validation:XValidation:rule="duration(self) == duration('0s') || duration(self) >= duration('10m') && duration(self) <= duration('720h')",message="resampleInterval must be 0s, for never, or between 10m and 720h"
	ResampleInterval *metav1.Duration `json:"resampleInterval,omitempty"`

	// apiServerProbe lets an API server prove that it reaches the converter, over
	// its own network: the CustomResourceDefinition
	// conversionprobes.probe.conversion-operator.io, which has no objects, is
	// pointed at the same client configuration for a moment.
	// +optional
	// +kubebuilder:default=true
	APIServerProbe *bool `json:"apiServerProbe,omitempty"`

	// timeout bounds the time that the samples take together, and the time in which
	// the API server has to answer the probe. API servers give a call up after 30
	// seconds: with less than that, their own words about it are not seen.
	// +optional
	// +kubebuilder:default="45s"
	// +kubebuilder:validation:XValidation:rule="duration(self) >= duration('1s') && duration(self) <= duration('1h')",message="timeout must be between 1s and 1h"
	Timeout *metav1.Duration `json:"timeout,omitempty"`
}

// VerificationStatus is what was proven before the CustomResourceDefinition was
// pointed at the converter, and when samples were taken since.
type VerificationStatus struct {
	// subject identifies what it was proven of: the CustomResourceDefinition, the
	// compiled rules and the client configuration of the webhook.
	// +required
	Subject string `json:"subject"`
	// samples is the number of live objects that came back as they were; absent
	// while they are pending.
	// +optional
	Samples *int32 `json:"samples,omitempty"`
	// apiServerProbe is true once an API server has reached the converter.
	// +optional
	APIServerProbe bool `json:"apiServerProbe,omitempty"`
	// resampledTime is when samples were last taken after the activation; absent
	// while they were not.
	// +optional
	ResampledTime *metav1.Time `json:"resampledTime,omitempty"`
	// resampled is the number of live objects that came back as they were then.
	// +optional
	Resampled *int32 `json:"resampled,omitempty"`
	// nextSampleTime is when samples are taken next.
	// +optional
	NextSampleTime *metav1.Time `json:"nextSampleTime,omitempty"`
}

// UnconvertedWindow is the time in which a CustomResourceDefinition served several
// versions with the strategy None: what was written at one of them was stored, and
// was read at another one, without a conversion.
type UnconvertedWindow struct {
	// since is when it began at the latest: when the second version was served, or
	// if that is unknown, when the CustomResourceDefinition was created.
	// +required
	Since metav1.Time `json:"since"`
	// until is when the CustomResourceDefinition was seen to convert; absent before.
	// +optional
	Until *metav1.Time `json:"until,omitempty"`
	// servedVersions are the versions that were served.
	// +optional
	// +listType=atomic
	ServedVersions []string `json:"servedVersions,omitempty"`
	// written is the number of objects that were written in that time at another
	// version than the stored one, or while the stored version changed, as far as
	// their managedFields tell; absent until they were counted.
	// +optional
	Written *int64 `json:"written,omitempty"`
	// objects are the first ten of them, each as its name, or namespace/name.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=10
	Objects []string `json:"objects,omitempty"`
}
