// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// CertificatesType is where certificates come from.
// +kubebuilder:validation:Enum=SelfManaged;CertManager;Secret;Injected
type CertificatesType string

const (
	// CertificatesSelfManaged are issued by the operator.
	CertificatesSelfManaged CertificatesType = "SelfManaged"
	// CertificatesCertManager are issued by cert-manager.
	CertificatesCertManager CertificatesType = "CertManager"
	// CertificatesSecret are in a Secret of the user.
	CertificatesSecret CertificatesType = "Secret"
	// CertificatesInjected are trusted by a caBundle that an injector writes.
	CertificatesInjected CertificatesType = "Injected"
)

// Certificates tells where the converter's certificates come from: type, and the member of that
// name.
// +kubebuilder:validation:XValidation:rule="!has(self.selfManaged) || self.type == 'SelfManaged'",message="selfManaged must be empty unless type is SelfManaged"
// +kubebuilder:validation:XValidation:rule="has(self.certManager) == (self.type == 'CertManager')",message="certManager must be set if type is CertManager, and only then"
// +kubebuilder:validation:XValidation:rule="has(self.secret) == (self.type == 'Secret')",message="secret must be set if type is Secret, and only then"
// +kubebuilder:validation:XValidation:rule="!has(self.injected) || self.type == 'Injected'",message="injected must be empty unless type is Injected"
type Certificates struct {
	// type is SelfManaged, CertManager, Secret or Injected.
	// +required
	// +unionDiscriminator
	Type CertificatesType `json:"type"`

	// selfManaged lets the operator issue certificates, with a certificate authority for
	// this policy or fleet alone.
	// +optional
	// +unionMember
	SelfManaged *SelfManagedCertificates `json:"selfManaged,omitempty"`

	// certManager lets cert-manager issue the certificates.
	// +optional
	// +unionMember
	CertManager *CertManagerCertificates `json:"certManager,omitempty"`

	// secret uses a Secret that you or another tool maintains.
	// +optional
	// +unionMember
	Secret *SecretCertificates `json:"secret,omitempty"`

	// injected configures the type Injected, with which an injector writes caBundle of the
	// CustomResourceDefinition, such as cert-manager's cainjector, Gardener's ca-injector or OpenShift's
	// service-ca.
	// +optional
	// +unionMember
	Injected *InjectedCertificates `json:"injected,omitempty"`
}

// known reports that this version of the operator knows the type, and that the member that the
// type needs is there. A policy without certificates has none.
func (c *Certificates) known() bool {
	switch c.Type {
	case "", CertificatesSelfManaged, CertificatesInjected:
		return true
	case CertificatesCertManager:
		return c.CertManager != nil
	case CertificatesSecret:
		return c.Secret != nil
	}
	return false
}

// SelfManagedCertificates are issued by a certificate authority for the policy alone. Its
// private key is in a Secret that no pod mounts.
// +kubebuilder:validation:XValidation:rule="duration(self.?caDuration.orValue('87600h')) >= duration(self.?duration.orValue('2160h')) + duration(self.?duration.orValue('2160h')) + duration(self.?duration.orValue('2160h'))",message="caDuration must be at least three times duration: an authority is replaced when a third of its life is left, and no certificate outlives it"
// +kubebuilder:validation:XValidation:rule="!has(self.renewBefore) || duration(self.renewBefore) < duration(self.?duration.orValue('2160h'))",message="renewBefore must be shorter than duration: it says how long before its end a serving certificate is renewed"
type SelfManagedCertificates struct {
	// caDuration is how long a certificate authority is valid; 87600h (ten years) by
	// default. The operator replaces it when a third of that time remains.
	// +optional
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:Pattern=`^([0-9]{1,7}(h|m|s|ms)){1,4}$`
	// +kubebuilder:validation:XValidation:rule="duration(self) <= duration('876000h')",message="caDuration must be 876000h (100 years) or less"
	CADuration *metav1.Duration `json:"caDuration,omitempty"`

	// duration is how long a serving certificate is valid; 2160h (90 days) by default.
	// +optional
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:Pattern=`^([0-9]{1,7}(h|m|s|ms)){1,4}$`
	// +kubebuilder:validation:XValidation:rule="duration(self) >= duration('1h')",message="duration must be 1h or more: converter pods may take minutes to see a new certificate"
	Duration *metav1.Duration `json:"duration,omitempty"`

	// renewBefore is how long before its expiry a serving certificate is renewed; by
	// default when a third of its duration remains.
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

// CertManagerCertificates are issued by cert-manager. The operator creates a Certificate
// in its own namespace.
type CertManagerCertificates struct {
	// issuerRef is the issuer. It must provide the certificate of its authority as ca.crt;
	// ACME issuers do not.
	// +required
	IssuerRef IssuerReference `json:"issuerRef"`
}

// IssuerReference names an issuer of cert-manager, or of a project that extends it.
type IssuerReference struct {
	// name is the name of the issuer.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name"`

	// kind is the kind of the issuer: Issuer, the default, in the operator's namespace,
	// ClusterIssuer, or the kind of an external issuer.
	// +optional
	// +kubebuilder:validation:MaxLength=63
	Kind string `json:"kind,omitempty"`

	// group is the API group of the issuer; cert-manager.io by default.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	Group string `json:"group,omitempty"`
}

// SecretCertificates are maintained by you or another tool. Converter pods mount a copy,
// which changes only after API servers trust the new certificate.
type SecretCertificates struct {
	// name is the name of a Secret in the operator's namespace with tls.crt, tls.key and
	// ca.crt: the serving certificate for the DNS name <service>.<namespace>.svc, and the
	// authorities that verify it.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name"`
}

// InjectedCertificates let an injector write caBundle of the CustomResourceDefinition. The
// operator verifies that it matches what converter pods serve.
type InjectedCertificates struct {
	// secretName is a Secret in the operator's namespace with tls.crt and tls.key for
	// converter pods and, if it is known, the ca.crt that will be injected. Converter pods
	// mount a copy, which changes after the injected caBundle trusts the new certificate.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	SecretName string `json:"secretName"`
}

// CertificateStatus is the serving certificate of the converter pods.
type CertificateStatus struct {
	// notAfter is when the serving certificate expires. It is renewed well before.
	// +required
	NotAfter metav1.Time `json:"notAfter"`
	// caNotAfter is when the first of the trusted certificate authorities expires.
	// +required
	CANotAfter metav1.Time `json:"caNotAfter"`
	// rotation is the state of the change from one certificate authority to another: AddingCA,
	// Propagating, Verifying or RemovingCA, or Idle if no change is in progress. It is absent if the
	// certificate is that of a fleet, which has the state.
	// +optional
	Rotation RotationState `json:"rotation,omitempty"`
	// rotationTime is when the rotation entered this state.
	// +optional
	RotationTime *metav1.Time `json:"rotationTime,omitempty"`
}

// RotationState is a state of the change from one certificate authority to another.
type RotationState string

const (
	// RotationIdle means that no change is in progress: the CustomResourceDefinition
	// trusts exactly what converter pods serve.
	RotationIdle RotationState = "Idle"
	// RotationAddingCA means that the operator adds the new authority to the caBundle of
	// the CustomResourceDefinition.
	RotationAddingCA RotationState = "AddingCA"
	// RotationPropagating means that the operator waits until all API servers have the new
	// caBundle.
	RotationPropagating RotationState = "Propagating"
	// RotationVerifying means that converter pods get the new certificate, and the
	// operator verifies that each serves it.
	RotationVerifying RotationState = "Verifying"
	// RotationRemovingCA means that the operator removes the old authority from the
	// caBundle.
	RotationRemovingCA RotationState = "RemovingCA"
)
