// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	corev1 "k8s.io/api/core/v1"
)

// Converter says who converts. Exactly one member is set.
//
// +kubebuilder:validation:XValidation:rule="[has(self.declarative), has(self.image), has(self.service), has(self.url), has(self.none)].exists_one(set, set)",message="set exactly one kind of converter: declarative, image, service, url or none"
type Converter struct {
	// declarative converts by two-way rules that are written in this policy.
	// +optional
	Declarative *DeclarativeConverter `json:"declarative,omitempty"`

	// image deploys a conversion webhook of yours, such as one that is built with
	// controller-runtime, with the operator's certificates, gates and probes.
	// +optional
	Image *ImageConverter `json:"image,omitempty"`

	// service is a conversion webhook that runs in the cluster already. The operator
	// deploys nothing; it proves each endpoint before it switches the
	// CustomResourceDefinition.
	// +optional
	Service *ServiceConverter `json:"service,omitempty"`

	// url is a conversion webhook outside the cluster.
	// +optional
	URL *URLConverter `json:"url,omitempty"`

	// none converts nothing: of an object, only apiVersion changes with the version.
	// It is for versions whose schemas have the same fields.
	// +optional
	None *NoneConverter `json:"none,omitempty"`
}

// Kind is the name of the member that is set: declarative, image, service, url or none.
func (c *Converter) Kind() string {
	switch {
	case c.Declarative != nil:
		return "declarative"
	case c.Image != nil:
		return "image"
	case c.Service != nil:
		return "service"
	case c.URL != nil:
		return "url"
	}
	return "none"
}

// ReviewVersion is a version of ConversionReview.
//
// +kubebuilder:validation:Enum=v1;v1beta1
type ReviewVersion string

// ImageConverter is a conversion webhook of the user's, in an image.
type ImageConverter struct {
	// image to run. A change of it, as of anything that shapes the pods, starts
	// other pods beside those that serve, which go when the new ones are proven.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=1024
	Image string `json:"image"`

	// command replaces the image's entrypoint.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=256
	Command []string `json:"command,omitempty"`

	// args are the arguments of the command.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=256
	Args []string `json:"args,omitempty"`

	// env are environment variables. Secrets and ConfigMaps that they name are in
	// the operator's namespace.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=256
	Env []corev1.EnvVar `json:"env,omitempty"`

	// port where the converter listens, with TLS.
	// +optional
	// +kubebuilder:default=9443
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=65535
	Port int32 `json:"port,omitempty"`

	// path where the converter answers ConversionReviews.
	// +optional
	// +kubebuilder:default="/convert"
	Path URLPath `json:"path,omitempty"`

	// certificateMountPath is the directory in which the converter finds tls.crt
	// and tls.key. It has to load them again when they change: they are renewed
	// without a restart.
	// +optional
	// +kubebuilder:default="/tmp/k8s-webhook-server/serving-certs"
	// +kubebuilder:validation:MaxLength=1024
	// +kubebuilder:validation:Pattern=`^/[^:]+$`
	CertificateMountPath string `json:"certificateMountPath,omitempty"`

	// serviceAccountName is a ServiceAccount in the operator's namespace, whose
	// token the converter gets. Without it, the converter has no access to the API,
	// and a conversion depends on nothing else. It cannot be one of the operator's own.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="self != 'conversion-operator' && !self.matches('-(migrate|read|clear)$')",message="belongs to the operator, whose rights a converter must not have: make a ServiceAccount of its own"
	ServiceAccountName string `json:"serviceAccountName,omitempty"`

	// conversionReviewVersions are the versions of ConversionReview that the
	// converter understands, the preferred one first.
	// +optional
	// +listType=atomic
	// +kubebuilder:default={v1}
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=2
	ConversionReviewVersions []ReviewVersion `json:"conversionReviewVersions,omitempty"`
}

// URLPath is a path of a URL as the API server accepts it for a Service.
//
// +kubebuilder:validation:MaxLength=1024
// +kubebuilder:validation:Pattern=`^(/[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*)+/?$`
type URLPath string

// ServiceConverter is a conversion webhook that runs in the cluster already.
type ServiceConverter struct {
	// namespace of the Service.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`
	Namespace string `json:"namespace"`

	// name of the Service.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^[a-z]([-a-z0-9]*[a-z0-9])?$`
	Name string `json:"name"`

	// port of the Service.
	// +optional
	// +kubebuilder:default=443
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=65535
	Port int32 `json:"port,omitempty"`

	// path where it answers ConversionReviews.
	// +optional
	// +kubebuilder:default="/convert"
	Path URLPath `json:"path,omitempty"`

	// conversionReviewVersions are the versions of ConversionReview that it
	// understands, the preferred one first.
	// +optional
	// +listType=atomic
	// +kubebuilder:default={v1}
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=2
	ConversionReviewVersions []ReviewVersion `json:"conversionReviewVersions,omitempty"`
}

// URLConverter is a conversion webhook outside the cluster.
type URLConverter struct {
	// url where it answers ConversionReviews, as API servers and the operator reach
	// it: https://host[:port]/path.
	// +required
	// +kubebuilder:validation:MaxLength=2048
	// +kubebuilder:validation:Pattern=`^https://[^/?#@\s]+(/[^?#\s]*)?$`
	URL string `json:"url"`

	// conversionReviewVersions are the versions of ConversionReview that it
	// understands, the preferred one first.
	// +optional
	// +listType=atomic
	// +kubebuilder:default={v1}
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=2
	ConversionReviewVersions []ReviewVersion `json:"conversionReviewVersions,omitempty"`
}

// NoneConverter converts nothing.
type NoneConverter struct {
	// acceptedLosses are the fields that may be lost, as paths such as .spec.note:
	// those that one version has and the storage version lacks, or the other way
	// round. A path stands for all that is below it, too. Without a conversion, the
	// API server removes such a field without a word when an object is read, or
	// written, in the version that lacks it. If the versions differ in a field
	// that is not listed, the policy is not valid.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=256
	// +kubebuilder:validation:items:MaxLength=1024
	// +kubebuilder:validation:items:Pattern=`^\..+$`
	AcceptedLosses []string `json:"acceptedLosses,omitempty"`
}
