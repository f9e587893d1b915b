// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package dependents

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// Dependency says how an object depends on a version.
type Dependency string

// The dependencies.
const (
	// OwnerReference is an entry in metadata.ownerReferences.
	OwnerReference Dependency = "OwnerReference"
	// FieldManager is a client that wrote objects at the version, by metadata.managedFields.
	FieldManager Dependency = "FieldManager"
	// Reader is a client that requested the version, by an audit log.
	Reader Dependency = "Reader"
	// AdmissionWebhook is a rule of a ValidatingWebhookConfiguration or MutatingWebhookConfiguration.
	AdmissionWebhook Dependency = "AdmissionWebhook"
	// AdmissionPolicy is a rule or the paramKind of an admission policy, or of its binding.
	AdmissionPolicy Dependency = "AdmissionPolicy"
	// Autoscaler is the target of an autoscaler.
	Autoscaler Dependency = "Autoscaler"
	// GitOps is an entry of a GitOps tool.
	GitOps Dependency = "GitOps"
	// Composition is a reference in an object of Crossplane.
	Composition Dependency = "Composition"
	// Reference is a reference in another object.
	Reference Dependency = "Reference"
	// Copy is a copy of an object, or its manifest, inside another object.
	Copy Dependency = "Copy"
	// Contract is a label of Cluster API on the CustomResourceDefinition.
	Contract Dependency = "Contract"
	// HelmRelease is the record of a release of Helm.
	HelmRelease Dependency = "HelmRelease"
)

// Kind is a dependency, and what its dependents have in common.
type Kind struct {
	Dependency Dependency
	// Means describes it in a few words.
	Means string
}

// Kinds are all dependencies.
var Kinds = []Kind{
	{OwnerReference, "an owner in metadata.ownerReferences is named at a version that goes"},
	{FieldManager, "a client has written objects at a version that goes"},
	{Reader, "a client has requested a version that goes"},
	{AdmissionWebhook, "an admission webhook is only called for a version that goes"},
	{AdmissionPolicy, "an admission policy names a version that goes"},
	{Autoscaler, "an autoscaler names its target at a version that goes, or finds no scale without it"},
	{GitOps, "a GitOps tool names objects at a version that goes"},
	{Composition, "an object of Crossplane names objects at a version that goes"},
	{Reference, "another object names objects at a version that goes"},
	{Copy, "another object has a copy of an object at a version that goes"},
	{Contract, "a label of the CustomResourceDefinition tells Cluster API to use a version that goes"},
	{HelmRelease, "the record of a Helm release has objects at a version that goes"},
}

// Impact says what the end of the version does to a dependent.
type Impact string

// The impacts.
const (
	// Breaks means that something stops working, or works differently.
	Breaks Impact = "Breaks"
	// Harmless means that Kubernetes ignores the version there.
	Harmless Impact = "Harmless"
)

// Object identifies an object.
type Object struct {
	APIVersion string `json:"apiVersion,omitempty"`
	Kind       string `json:"kind"`
	Namespace  string `json:"namespace,omitempty"`
	Name       string `json:"name"`
}

func (o Object) String() string {
	if o.Namespace == "" {
		return o.Kind + " " + o.Name
	}
	return o.Kind + " " + o.Namespace + "/" + o.Name
}

// Dependent is something that names a version which goes.
type Dependent struct {
	Dependency Dependency `json:"dependency"`
	Impact     Impact     `json:"impact"`
	// Object has the reference. For a field manager or a reader, it is an object that they wrote or
	// requested, if it is known.
	Object Object `json:"object"`
	// Client is the field manager, or the user and user agent of a reader.
	Client string `json:"client,omitempty"`
	// Field is the path of the reference in the object.
	Field string `json:"field,omitempty"`
	// Version is the version that it names.
	Version string `json:"version"`
	// Count is the number of objects or requests, if they are counted.
	Count int `json:"count,omitempty"`
	// Last is the time of the last write or request, in RFC 3339.
	Last string `json:"last,omitempty"`
	// Effect says what happens when the version goes.
	Effect string `json:"effect"`
	// Cure says what to do.
	Cure string `json:"cure"`
	// Repairable reports whether the command can repair it.
	Repairable bool `json:"repairable,omitempty"`
}

// Place describes where a version is named.
func (d Dependent) Place() string {
	var parts []string
	if d.Client != "" {
		parts = append(parts, d.Client)
	}
	if d.Object.Name != "" {
		parts = append(parts, d.Object.String())
	}
	if d.Count > 1 {
		parts = append(parts, fmt.Sprintf("%d in total", d.Count))
	}
	return strings.Join(parts, ", ")
}

// Sort sorts dependents: those that break first, then by dependency and object.
func Sort(all []Dependent) {
	slices.SortStableFunc(all, func(a, b Dependent) int {
		return cmp.Or(cmp.Compare(a.Impact, b.Impact), cmp.Compare(a.Dependency, b.Dependency), cmp.Compare(a.Object.Kind, b.Object.Kind),
			cmp.Compare(a.Object.Namespace, b.Object.Namespace), cmp.Compare(a.Object.Name, b.Object.Name), cmp.Compare(a.Client, b.Client),
			cmp.Compare(a.Field, b.Field), cmp.Compare(a.Version, b.Version))
	})
}
