// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package crds

import (
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Composite is a CompositeResourceDefinition (XRD), as far as the operator reads it. From it, Crossplane
// generates a CustomResourceDefinition of the same name for composite resources, and another one for
// claims if it has claimNames. It replaces both as a whole in each reconciliation, so that neither
// spec.conversion nor spec.versions has a value that the XRD has not.
type Composite struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`
	Spec              CompositeSpec `json:"spec"`
}

// CompositeSpec has the fields of the spec that matter for conversions.
type CompositeSpec struct {
	// Conversion is spec.conversion of both CustomResourceDefinitions. Crossplane accepts no strategy
	// None here; without a conversion, they have it.
	Conversion *apiextensionsv1.CustomResourceConversion `json:"conversion,omitempty"`
	Group      string                                    `json:"group"`
	ClaimNames *struct {
		Plural string `json:"plural"`
	} `json:"claimNames,omitempty"`
}

// Claims is the name of the CustomResourceDefinition of claims; empty if there is none.
func (c *Composite) Claims() string {
	if c.Spec.ClaimNames == nil {
		return ""
	}
	return c.Spec.ClaimNames.Plural + "." + c.Spec.Group
}

// ByPackage is the package revision that writes the XRD as a whole; empty if none does.
func (c *Composite) ByPackage() string {
	owner, group := controllerOf(c)
	if group != crossplanePackages {
		return ""
	}
	return object(owner.Kind, group, owner.Name)
}

// SameConversion reports that two conversions are the same with the defaults of API servers.
func SameConversion(a, b *apiextensionsv1.CustomResourceConversion) bool {
	return equality.Semantic.DeepEqual(withDefaults(a), withDefaults(b))
}

func withDefaults(conversion *apiextensionsv1.CustomResourceConversion) *apiextensionsv1.CustomResourceConversion {
	crd := &apiextensionsv1.CustomResourceDefinition{}
	crd.Spec.Conversion = conversion.DeepCopy()
	apiextensionsv1.SetObjectDefaults_CustomResourceDefinition(crd)
	return crd.Spec.Conversion
}

// String names the XRD as kubectl does.
func (c *Composite) String() string { return object(CompositeKind, CompositeGroup, c.Name) }
