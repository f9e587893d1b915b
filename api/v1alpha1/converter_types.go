// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	"cmp"

	corev1 "k8s.io/api/core/v1"
)

// ConverterType is what converts objects.
// +kubebuilder:validation:Enum=Declarative;Image;Service;URL;None
type ConverterType string

const (
	// ConverterDeclarative converts by bidirectional rules in the policy.
	ConverterDeclarative ConverterType = "Declarative"
	// ConverterImage deploys a conversion webhook of the user.
	ConverterImage ConverterType = "Image"
	// ConverterService calls a conversion webhook that already runs in the cluster.
	ConverterService ConverterType = "Service"
	// ConverterURL calls a conversion webhook outside the cluster.
	ConverterURL ConverterType = "URL"
	// ConverterNone converts nothing.
	ConverterNone ConverterType = "None"
)

// Converter tells what converts objects: type, and the member of that name.
// +kubebuilder:validation:XValidation:rule="!has(self.conversionReviewVersions) || self.type in ['Image', 'Service', 'URL']",message="conversionReviewVersions must be empty unless type is Image, Service or URL"
// +kubebuilder:validation:XValidation:rule="has(self.declarative) == (self.type == 'Declarative')",message="declarative must be set if type is Declarative, and only then"
// +kubebuilder:validation:XValidation:rule="has(self.image) == (self.type == 'Image')",message="image must be set if type is Image, and only then"
// +kubebuilder:validation:XValidation:rule="has(self.service) == (self.type == 'Service')",message="service must be set if type is Service, and only then"
// +kubebuilder:validation:XValidation:rule="has(self.url) == (self.type == 'URL')",message="url must be set if type is URL, and only then"
// +kubebuilder:validation:XValidation:rule="!has(self.none) || self.type == 'None'",message="none must be empty unless type is None"
type Converter struct {
	// type is Declarative, Image, Service, URL or None.
	// +required
	// +unionDiscriminator
	Type ConverterType `json:"type"`

	// declarative converts by bidirectional rules in this policy.
	// +optional
	// +unionMember
	Declarative *DeclarativeConverter `json:"declarative,omitempty"`

	// image deploys your own conversion webhook, for example one that is built with
	// controller-runtime. The operator provides certificates, gates and probes.
	// +optional
	// +unionMember
	Image *ImageConverter `json:"image,omitempty"`

	// service is a conversion webhook that already runs in the cluster. The operator
	// deploys nothing; it verifies each endpoint before it changes the
	// CustomResourceDefinition.
	// +optional
	// +unionMember
	Service *ServiceConverter `json:"service,omitempty"`

	// url is a conversion webhook outside the cluster.
	// +optional
	// +unionMember
	URL *URLConverter `json:"url,omitempty"`

	// none configures the type None, which converts nothing: only apiVersion of an object
	// changes. Use it for versions whose schemas have the same fields.
	// +optional
	// +unionMember
	None *NoneConverter `json:"none,omitempty"`

	// conversionReviewVersions are the versions of ConversionReview that an image, a service
	// or the server of a url understands, the preferred one first; v1 by default.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=2
	ConversionReviewVersions []ReviewVersion `json:"conversionReviewVersions,omitempty"`
}

// known reports that this version of the operator knows the type, and that the member that the
// type needs is there.
func (c *Converter) known() bool {
	switch c.Type {
	case ConverterDeclarative:
		return c.Declarative != nil
	case ConverterImage:
		return c.Image != nil
	case ConverterService:
		return c.Service != nil
	case ConverterURL:
		return c.URL != nil
	case ConverterNone:
		return true
	}
	return false
}

// AcceptedLosses are the fields that the type None may lose.
func (c *Converter) AcceptedLosses() []string {
	if c.None == nil {
		return nil
	}
	return c.None.AcceptedLosses
}

// WithDefaults returns a copy in which absent fields of the converter have their default, which the
// API server does not store.
func (c *Converter) WithDefaults() *Converter {
	c = c.DeepCopy()
	if image := c.Image; image != nil {
		image.Port, image.Path = cmp.Or(image.Port, 9443), cmp.Or(image.Path, defaultPath)
		image.CertificateMountPath = cmp.Or(image.CertificateMountPath, "/tmp/k8s-webhook-server/serving-certs")
	}
	if service := c.Service; service != nil {
		service.Port, service.Path = cmp.Or(service.Port, 443), cmp.Or(service.Path, defaultPath)
	}
	if len(c.ConversionReviewVersions) == 0 && (c.Image != nil || c.Service != nil || c.URL != nil) {
		c.ConversionReviewVersions = []ReviewVersion{"v1"}
	}
	return c
}

// defaultPath is where controller-runtime serves conversions.
const defaultPath URLPath = "/convert"

// ReviewVersion is a version of ConversionReview.
//
// +kubebuilder:validation:Enum=v1;v1beta1
type ReviewVersion string

// ImageConverter is your own conversion webhook, in an image.
type ImageConverter struct {
	// reference is the image to run, such as registry.example.com/converter:1.2.0. If it or
	// anything else about the pods changes, the
	// operator starts new pods beside the current ones, and deletes those after the new
	// ones are verified.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=1024
	Reference string `json:"reference"`

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

	// env are environment variables. Secrets and ConfigMaps that they reference are in the
	// operator's namespace. "kubectl explain pod.spec.containers.env" describes the members.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=256
	Env []corev1.EnvVar `json:"env,omitempty"`

	// port is the port at which the converter serves HTTPS; 9443 by default, as in
	// controller-runtime.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=65535
	Port int32 `json:"port,omitempty"`

	// path is the URL path for ConversionReviews; /convert by default.
	// +optional
	Path URLPath `json:"path,omitempty"`

	// certificateMountPath is the directory with tls.crt and tls.key;
	// /tmp/k8s-webhook-server/serving-certs by default, as in controller-runtime. The
	// converter has to reload them when they change: they are renewed without a restart.
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	// +kubebuilder:validation:Pattern=`^/[^:]+$`
	CertificateMountPath string `json:"certificateMountPath,omitempty"`

	// serviceAccountName is a ServiceAccount in the operator's namespace, other than those of
	// the operator: of the manager, of converter pods and of migrations. The converter gets
	// its token. Without it, the converter has no access to the API, so that conversions
	// depend on nothing else.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	ServiceAccountName string `json:"serviceAccountName,omitempty"`
}

// URLPath is a path of a URL as the API server accepts it for a Service.
//
// +kubebuilder:validation:MaxLength=1024
// +kubebuilder:validation:Pattern=`^(/[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*)+/?$`
type URLPath string

// ServiceConverter is a conversion webhook that already runs in the cluster.
type ServiceConverter struct {
	// namespace is the namespace of the Service.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`
	Namespace string `json:"namespace"`

	// name is the name of the Service.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^[a-z]([-a-z0-9]*[a-z0-9])?$`
	Name string `json:"name"`

	// port is the port of the Service; 443 by default.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=65535
	Port int32 `json:"port,omitempty"`

	// path is the URL path for ConversionReviews; /convert by default.
	// +optional
	Path URLPath `json:"path,omitempty"`
}

// URLConverter is a conversion webhook outside the cluster.
type URLConverter struct {
	// url is where API servers and the operator reach it: https://host[:port]/path.
	// +required
	URL WebhookURL `json:"url"`
}

// WebhookURL is the URL of a conversion webhook.
//
// +kubebuilder:validation:MinLength=1
// +kubebuilder:validation:MaxLength=2048
// +kubebuilder:validation:Pattern=`^https://[^/?#@\s]+(/[^?#\s]*)?$`
type WebhookURL string

// NoneConverter converts nothing.
type NoneConverter struct {
	// acceptedLosses lists the fields that may be lost, as paths such as .spec.note: those
	// that one version has and the storage version lacks, or the reverse. A path includes
	// all fields below it. Without a conversion, the API server silently removes such a
	// field when an object is read or written at the version that lacks it. If the
	// versions differ in a field that is not listed, the policy is invalid.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=256
	// +kubebuilder:validation:items:MaxLength=1024
	// +kubebuilder:validation:items:Pattern=`^\..+$`
	AcceptedLosses []string `json:"acceptedLosses,omitempty"`
}
