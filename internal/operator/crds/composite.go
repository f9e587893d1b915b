// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package crds

import (
	"fmt"

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

// Other is the name of the other CustomResourceDefinition that Crossplane generates from the XRD; empty if there is none.
func (c *Composite) Other(crd string) string {
	if claims := c.Claims(); claims == "" || crd != claims {
		return claims
	}
	return c.Name
}

// OneKind says why an XRD with claims is not converted.
const OneKind = "Crossplane copies its spec.conversion to composite resources and claims, and a policy converts and migrates one kind"

// OfClaims reports that Crossplane generates a CustomResourceDefinition for claims. That of the composite
// resources has the name of the XRD.
func OfClaims(crd *apiextensionsv1.CustomResourceDefinition) bool {
	owner := CompositeOf(crd)
	return owner != nil && owner.Name != crd.Name
}

// ClaimsWarning says that a kind with claims is not converted; empty if the CustomResourceDefinition shows that it
// has none.
func ClaimsWarning(crd *apiextensionsv1.CustomResourceDefinition) string {
	switch {
	case OfClaims(crd):
		return fmt.Sprintf("the operator converts no claims: it is the definition of those of %s; %s", WriterOf(crd).Source, OneKind)
	case CompositeOf(crd) != nil && isLegacy(crd):
		return fmt.Sprintf("the operator does not convert the kind if %s has claimNames: %s", WriterOf(crd).Source, OneKind)
	}
	return ""
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
