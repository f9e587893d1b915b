// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package audit

import (
	"slices"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
	"github.com/conversion-operator/conversion-operator/internal/crds"
)

// Observed is all that is known of one definition. What was not looked at is nil,
// and the checks that need it find nothing.
type Observed struct {
	// CRD is nil where a policy has none.
	CRD *apiextensionsv1.CustomResourceDefinition
	// Live is false for a definition in a file: what others fill in may be
	// missing there.
	Live bool
	// Next is the manifest that is about to replace CRD.
	Next *apiextensionsv1.CustomResourceDefinition
	// Policy of ours, of the same name.
	Policy *v1alpha1.ConversionPolicy
	// Service that the webhook is behind.
	Service *Service
	// Handshake with the webhook, from where the audit runs.
	Handshake *Handshake
	// Reads of an object, at most one at each served version; empty, and not nil,
	// where there is no object.
	Reads []Read
	// Migrations are the StorageVersionMigrations of the resource.
	Migrations []Migration
	// Objects are some of those that there are.
	Objects []Object

	// Now is the time of the audit.
	Now time.Time
	// Soon is report certificates that expire within this time.
	Soon time.Duration
}

// Service is what was found of the Service of a webhook.
type Service struct {
	// Found is false where there is no such Service.
	Found bool
	// ExternalName is the host that it stands for; API servers call none such.
	ExternalName string
	// Ports that it has.
	Ports []int32
	// Ready is the number of endpoints that are; -1 where nobody could tell.
	Ready int
}

// Handshake is what became of an attempt to speak TLS with a webhook.
type Handshake struct {
	// Address that was called.
	Address string
	// Refused says why its certificate is not trusted, empty where it is.
	Refused string
	// NotAfter is when the certificate that it serves expires.
	NotAfter time.Time
}

// Read is an object that was read through the API server.
type Read struct {
	Version string
	// Object is its name, or namespace/name.
	Object string
	// Failure is what the API server said, empty where it sent the object.
	Failure string
	// Converting tells that the failure is that of a conversion webhook.
	Converting bool
	// Untrusted tells that the API server does not accept the webhook's certificate.
	Untrusted bool
	// Hint says what to look at, empty where nobody knows.
	Hint string
}

// Migration is a StorageVersionMigration.
type Migration struct {
	Name string
	// Failed is the message of its condition, where it has failed.
	Failed string
	// Succeeded tells that it has ended well, at Ended.
	Succeeded bool
	// Ended is when its condition became so.
	Ended time.Time
}

// Object is what metadata.managedFields tell of an object.
type Object struct {
	// Name, or namespace/name.
	Name string
	// Written is the time of the last write that they remember.
	Written time.Time
	// Versions at which they remember writes.
	Versions []string
}

func (o *Observed) name() string {
	if o.CRD == nil {
		return o.Policy.Name
	}
	return o.CRD.Name
}

// webhook is what the definition calls, or nil.
func (o *Observed) webhook() *apiextensionsv1.WebhookConversion {
	if crds.Strategy(o.CRD) != apiextensionsv1.WebhookConverter || o.CRD.Spec.Conversion.Webhook == nil {
		return nil
	}
	return o.CRD.Spec.Conversion.Webhook
}

// clientConfig is how the webhook is called, or nil.
func (o *Observed) clientConfig() *apiextensionsv1.WebhookClientConfig {
	if webhook := o.webhook(); webhook != nil {
		return webhook.ClientConfig
	}
	return nil
}

// proven reports whether the webhook has converted before our eyes.
func (o *Observed) proven() bool {
	storage := crds.StorageVersion(o.CRD)
	return slices.ContainsFunc(o.Reads, func(read Read) bool { return read.Failure == "" && read.Version != storage })
}

// version returns a version of the definition, or nil.
func (o *Observed) version(name string) *apiextensionsv1.CustomResourceDefinitionVersion {
	i := slices.IndexFunc(o.CRD.Spec.Versions, func(version apiextensionsv1.CustomResourceDefinitionVersion) bool { return version.Name == name })
	if i < 0 {
		return nil
	}
	return &o.CRD.Spec.Versions[i]
}
