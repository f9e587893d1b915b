// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// Certificates says where the converter's certificates come from. Exactly one
// member is set.
//
// +kubebuilder:validation:XValidation:rule="[has(self.selfManaged), has(self.certManager), has(self.secret), has(self.injected)].filter(set, set).size() == 1",message="set exactly one source of certificates: selfManaged, certManager, secret or injected"
type Certificates struct {
	// selfManaged issues certificates by an authority of this policy's own.
	// +optional
	SelfManaged *SelfManagedCertificates `json:"selfManaged,omitempty"`

	// certManager lets cert-manager issue them.
	// +optional
	CertManager *CertManagerCertificates `json:"certManager,omitempty"`

	// secret takes them from a Secret that you or another tool maintains.
	// +optional
	Secret *SecretCertificates `json:"secret,omitempty"`

	// injected leaves caBundle of the CustomResourceDefinition to an injector,
	// such as cert-manager's cainjector or OpenShift's service-ca.
	// +optional
	Injected *InjectedCertificates `json:"injected,omitempty"`
}

// SelfManagedCertificates are issued by an authority of the policy's own. Its
// private key stays in a Secret that no pod mounts.
//
// +kubebuilder:validation:XValidation:rule="!has(self.caDuration) || !has(self.duration) || duration(self.caDuration) >= duration(self.duration) + duration(self.duration) + duration(self.duration)",message="caDuration must be at least three times duration: an authority is replaced when a third of its life is left, and no certificate outlives it"
// +kubebuilder:validation:XValidation:rule="!has(self.renewBefore) || !has(self.duration) || duration(self.renewBefore) < duration(self.duration)",message="renewBefore must be shorter than duration: it says how long before its end a serving certificate is renewed"
type SelfManagedCertificates struct {
	// caDuration is how long a certificate authority is valid. It is replaced
	// when a third of that is left.
	// +optional
	// +kubebuilder:default="87600h"
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:Pattern=`^([0-9]{1,7}(h|m|s|ms)){1,4}$`
	// +kubebuilder:validation:XValidation:rule="duration(self) <= duration('876000h')",message="caDuration must be 876000h (100 years) or less"
	CADuration *metav1.Duration `json:"caDuration,omitempty"`

	// duration is how long a serving certificate is valid.
	// +optional
	// +kubebuilder:default="2160h"
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:Pattern=`^([0-9]{1,7}(h|m|s|ms)){1,4}$`
	// +kubebuilder:validation:XValidation:rule="duration(self) >= duration('1h')",message="duration must be 1h or more: converter pods may take minutes to see a new certificate"
	Duration *metav1.Duration `json:"duration,omitempty"`

	// renewBefore is how long before its end a serving certificate is renewed; by
	// default when a third of its life is left.
	// +optional
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:Pattern=`^([0-9]{1,7}(h|m|s|ms)){1,4}$`
	// +kubebuilder:validation:XValidation:rule="duration(self) >= duration('10m')",message="renewBefore must be 10m or more: converter pods may take minutes to see a new certificate"
	RenewBefore *metav1.Duration `json:"renewBefore,omitempty"`

	// rotationTrigger is any text; a change replaces the authority and the serving
	// certificate, in the order that keeps objects readable.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	RotationTrigger string `json:"rotationTrigger,omitempty"`
}

// CertManagerCertificates are issued by cert-manager. The operator makes a
// Certificate in its own namespace.
type CertManagerCertificates struct {
	// issuerRef is the issuer. It must be one that hands out the certificate of its
	// authority, as ca.crt, which ACME issuers do not.
	// +required
	IssuerRef IssuerReference `json:"issuerRef"`

	// duration is how long the certificate is asked to be valid; by default as
	// long as cert-manager's own default.
	// +optional
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:Pattern=`^([0-9]{1,7}(h|m|s|ms)){1,4}$`
	// +kubebuilder:validation:XValidation:rule="duration(self) >= duration('1h')",message="duration must be 1h or more, as cert-manager requires"
	Duration *metav1.Duration `json:"duration,omitempty"`
}

// IssuerReference names an issuer of cert-manager, or of a project that extends it.
type IssuerReference struct {
	// name of the issuer.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name"`

	// kind of the issuer: Issuer, in the operator's namespace, or ClusterIssuer, or
	// what an external issuer is called.
	// +optional
	// +kubebuilder:default=Issuer
	// +kubebuilder:validation:MaxLength=63
	Kind string `json:"kind,omitempty"`

	// group of the issuer's API.
	// +optional
	// +kubebuilder:default=cert-manager.io
	// +kubebuilder:validation:MaxLength=253
	Group string `json:"group,omitempty"`
}

// SecretCertificates are maintained by you or another tool. Converter pods mount a copy, so
// that a change reaches them only once API servers trust it.
type SecretCertificates struct {
	// name of a Secret in the operator's namespace with tls.crt, tls.key and
	// ca.crt: the serving certificate, for the converter's DNS name
	// <service>.<namespace>.svc, and the authorities that it can be verified by.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name"`
}

// InjectedCertificates leave caBundle of the CustomResourceDefinition to an
// injector. The operator verifies the injected authority against what converter pods serve.
type InjectedCertificates struct {
	// secretName is a Secret in the operator's namespace with the tls.crt and
	// tls.key that converter pods are to serve, and, where it is known, the ca.crt
	// that is going to be injected. Converter pods mount a copy, which follows as
	// soon as what is injected trusts it.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	SecretName string `json:"secretName,omitempty"`
}

// CertificateStatus is the serving certificate of the converter pods.
type CertificateStatus struct {
	// notAfter is when the serving certificate expires; it is renewed well before.
	// +required
	NotAfter metav1.Time `json:"notAfter"`
	// caNotAfter is when the first of the trusted certificate authorities expires.
	// +required
	CANotAfter metav1.Time `json:"caNotAfter"`
}

// RotationState is a state on the way from one certificate authority to another.
//
// +kubebuilder:validation:Enum=Idle;AddingCA;Propagating;Verifying;RemovingCA
type RotationState string

const (
	// RotationIdle means that nothing changes: what converter pods serve is what
	// the CustomResourceDefinition trusts, and nothing else.
	RotationIdle RotationState = "Idle"
	// RotationAddingCA means that the CustomResourceDefinition is being made to
	// trust the new authority besides the old one.
	RotationAddingCA RotationState = "AddingCA"
	// RotationPropagating means that all API servers are given the time to see that.
	RotationPropagating RotationState = "Propagating"
	// RotationVerifying means that converter pods are given the new certificate, and
	// each is asked whether it serves it.
	RotationVerifying RotationState = "Verifying"
	// RotationRemovingCA means that all of them do, and the
	// CustomResourceDefinition is being made to trust the new authority only.
	RotationRemovingCA RotationState = "RemovingCA"
)

// RotationStatus is how far the change from one certificate authority to another is.
type RotationStatus struct {
	// state of the rotation; Serving while there is none.
	// +required
	State RotationState `json:"state"`
	// since when it is in this state.
	// +required
	Since metav1.Time `json:"since"`
	// next is when time alone brings the next step: the end of Propagating; and in
	// Serving when the authority is replaced, where that is known.
	// +optional
	Next *metav1.Time `json:"next,omitempty"`
}
