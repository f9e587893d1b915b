// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// ConverterFleet is a set of converter pods that serve the rules of many ConversionPolicies.
// Policies without dedicated pods use the fleet that spec.workload.fleet names, or the
// fleet named default. The operator creates that one for the first policy that needs it.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:subresource:scale:specpath=.spec.replicas,statuspath=.status.replicas,selectorpath=.status.selector
// +kubebuilder:resource:scope=Cluster,shortName=cvf
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`,description="Whether enough converter pods are ready, with a valid certificate"
// +kubebuilder:printcolumn:name="Reason",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].reason`,description="Why the fleet is, or is not, ready"
// +kubebuilder:printcolumn:name="Pods",type=integer,JSONPath=`.status.readyReplicas`,description="Converter pods that are ready"
// +kubebuilder:printcolumn:name="Desired",type=integer,JSONPath=`.spec.replicas`,description="Converter pods that are wanted"
// +kubebuilder:printcolumn:name="Policies",type=integer,JSONPath=`.status.policies`,description="Policies whose rules the fleet serves"
// +kubebuilder:printcolumn:name="CertExpiry",type=string,JSONPath=`.status.certificate.notAfter`,priority=1,description="When the serving certificate expires"
// +kubebuilder:printcolumn:name="Message",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].message`,priority=1,description="What is missing, and what to do"
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:validation:XValidation:rule="self.metadata.name.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?$') && self.metadata.name.size() <= 40",message="metadata.name must consist of at most 40 lowercase letters, digits and hyphens"
type ConverterFleet struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec configures the converter pods.
	// +optional
	// +kubebuilder:default={}
	Spec ConverterFleetSpec `json:"spec,omitzero"`
	// status is the state of the converter pods.
	// +optional
	Status ConverterFleetStatus `json:"status,omitzero"`
}

// ConverterFleetList is a list of ConverterFleet objects.
//
// +kubebuilder:object:root=true
type ConverterFleetList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []ConverterFleet `json:"items"`
}

// FleetName is the name of a ConverterFleet.
//
// +kubebuilder:validation:MinLength=1
// +kubebuilder:validation:MaxLength=40
// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`
type FleetName string

// DefaultFleet is the fleet of policies that name none.
const DefaultFleet FleetName = "default"

// ConverterFleetSpec configures the converter pods of a fleet.
// +kubebuilder:validation:XValidation:rule="!has(self.maxReplicas) || !has(self.replicas) || self.maxReplicas >= self.replicas",message="maxReplicas must not be smaller than replicas"
// +kubebuilder:validation:XValidation:rule="!has(self.workload) || !has(self.workload.replicas)",message="workload.replicas must be empty: set replicas of the fleet"
// +kubebuilder:validation:XValidation:rule="!has(self.certificates) || self.certificates.type != 'Injected'",message="certificates.type Injected is not possible in a fleet: the operator writes caBundle of every CustomResourceDefinition that the fleet serves"
type ConverterFleetSpec struct {
	// replicas is the number of converter pods.
	// +optional
	// +kubebuilder:default=3
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=100
	Replicas *int32 `json:"replicas,omitempty"`

	// maxReplicas lets an autoscaler set the replicas of the Deployment of the fleet: the
	// operator leaves them as they are between replicas and maxReplicas.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=100
	MaxReplicas *int32 `json:"maxReplicas,omitempty"`

	// workload configures the converter pods.
	// +optional
	Workload *ConverterPods `json:"workload,omitempty"`

	// certificates tells where the serving certificate comes from; by default the operator
	// issues it.
	// +optional
	Certificates *Certificates `json:"certificates,omitempty"`
}

// ConverterFleetStatus is the state of the converter pods of a fleet.
type ConverterFleetStatus struct {
	// observedGeneration is the generation of the spec that this status describes.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// conditions are CertificatesReady and WebhookAvailable, their summaries Ready,
	// Reconciling and Stalled, and others that exist only while there is a problem.
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`

	// replicas is the number of converter pods.
	// +optional
	Replicas int32 `json:"replicas"`
	// readyReplicas is the number of converter pods that are ready.
	// +optional
	ReadyReplicas int32 `json:"readyReplicas"`
	// selector is the label selector of the pods, as text.
	// +optional
	Selector string `json:"selector,omitempty"`

	// policies is the number of policies that the fleet serves, or is to serve.
	// +optional
	Policies int32 `json:"policies"`

	// certificate is the serving certificate of the converter pods.
	// +optional
	Certificate *CertificateStatus `json:"certificate,omitempty"`
}
