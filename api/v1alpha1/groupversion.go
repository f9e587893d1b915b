// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package v1alpha1 is the API of conversion-operator. A ConversionPolicy says how the versions of
// one CustomResourceDefinition convert into each other and when stored objects are
// migrated. A ConverterFleet configures the pods that convert for many policies. Both are
// cluster-scoped.
//
// +kubebuilder:object:generate=true
// +groupName=conversion-operator.io
package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// GroupVersion is the group and version of every type in this package.
var GroupVersion = schema.GroupVersion{Group: "conversion-operator.io", Version: "v1alpha1"}

var schemeBuilder = runtime.NewSchemeBuilder(func(s *runtime.Scheme) error {
	s.AddKnownTypes(GroupVersion, &ConversionPolicy{}, &ConversionPolicyList{}, &ConverterFleet{}, &ConverterFleetList{})
	metav1.AddToGroupVersion(s, GroupVersion)
	return nil
})

// AddToScheme registers the types of this package.
var AddToScheme = schemeBuilder.AddToScheme
