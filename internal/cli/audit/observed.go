// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package audit

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
	"github.com/conversion-operator/conversion-operator/internal/operator/crds"
)

// Observed is the observed state of one definition. A part that was not read is nil,
// and the checks that need it find nothing.
type Observed struct {
	// CRD is nil if a policy has none.
	CRD *apiextensionsv1.CustomResourceDefinition
	// Live is false for a definition in a file: it may lack what the cluster or an
	// injector fills in.
	Live bool
	// Source is the file or folder that has the definition.
	Source string
	// Next is the manifest that is about to replace CRD.
	Next *apiextensionsv1.CustomResourceDefinition
	// Bundle for OLM that has Next, nil if none is known.
	Bundle *Bundle
	// Policy is the ConversionPolicy of the same name.
	Policy *v1alpha1.ConversionPolicy
	// Service of the webhook.
	Service *Service
	// Handshake with the webhook, from where the audit runs.
	Handshake *Handshake
	// Reads of an object, at most one at each served version; empty, and not nil,
	// if there is no object.
	Reads []Read
	// Migrations are the StorageVersionMigrations of the resource.
	Migrations []Migration
	// Autoscalers are the HorizontalPodAutoscalers of the kind, by namespace/name. They are read only
	// if WithoutScale names a version.
	Autoscalers []string
	// Objects are a sample of the objects.
	Objects []Object

	// Now is the time of the audit.
	Now time.Time
	// Soon is how long before its expiry a certificate is reported.
	Soon time.Duration
}

// Service is the observed Service of a webhook.
type Service struct {
	// Found is false if there is no such Service.
	Found bool
	// ExternalName is its target host; API servers do not call such Services.
	ExternalName string
	// Ports that it has.
	Ports []int32
	// Ready is the number of ready endpoints; -1 if unknown.
	Ready int
}

// ServiceOf returns what matters of a Service. Its endpoints are unknown.
func ServiceOf(service *corev1.Service) *Service {
	found := &Service{Found: true, Ready: -1}
	if service.Spec.Type == corev1.ServiceTypeExternalName {
		found.ExternalName = service.Spec.ExternalName
	}
	for _, port := range service.Spec.Ports {
		found.Ports = append(found.Ports, port.Port)
	}
	return found
}

// Handshake is the result of a TLS handshake with a webhook.
type Handshake struct {
	// Address of the webhook.
	Address string
	// Refused is why its certificate is not trusted, empty if it is.
	Refused string
	// NotAfter is when its certificate expires.
	NotAfter time.Time
}

// Read is the read of an object through the API server.
type Read struct {
	Version string
	// Object is its name, or namespace/name.
	Object string
	// Failure is the error of the API server, empty for a success.
	Failure string
	// Converting reports that a conversion webhook caused the failure.
	Converting bool
	// Untrusted reports that the API server does not accept the webhook's certificate.
	Untrusted bool
	// Hint says what to check, empty if unknown.
	Hint string
}

// Migration is a StorageVersionMigration.
type Migration struct {
	Name string
	// Failed is the message of its condition, if it failed.
	Failed string
	// Succeeded reports that it succeeded, at Ended.
	Succeeded bool
	// Ended is the transition time of its condition.
	Ended time.Time
}

// Object is the information in metadata.managedFields of an object.
type Object struct {
	// Name, or namespace/name.
	Name string
	// Written is the time of the last recorded write.
	Written time.Time
	// Versions of the recorded writes.
	Versions []string
	// Writers are the field managers of these writes.
	Writers []Writer
}

// Writer is a field manager that wrote an object at a version.
type Writer struct {
	Version string
	// Manager is its name and the operation, and the subresource if it is one.
	Manager string
}

func (o *Observed) name() string {
	if o.CRD == nil {
		return o.Policy.Name
	}
	return o.CRD.Name
}

// webhook returns the webhook of the definition, or nil.
func (o *Observed) webhook() *apiextensionsv1.WebhookConversion {
	if crds.Strategy(o.CRD) != apiextensionsv1.WebhookConverter || o.CRD.Spec.Conversion.Webhook == nil {
		return nil
	}
	return o.CRD.Spec.Conversion.Webhook
}

// ClientConfig returns how API servers call the webhook, or nil.
func (o *Observed) ClientConfig() *apiextensionsv1.WebhookClientConfig {
	if webhook := o.webhook(); webhook != nil {
		return webhook.ClientConfig
	}
	return nil
}

// proven reports whether the webhook has converted an object in this audit.
func (o *Observed) proven() bool {
	storage := crds.StorageVersion(o.CRD)
	return slices.ContainsFunc(o.Reads, func(read Read) bool { return read.Failure == "" && read.Version != storage })
}
