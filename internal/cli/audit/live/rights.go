// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package live

// The rights of an audit, without those for objects: it reads one of each kind, at each
// version, with the rights of the user. It reports as not checked what it may not read.
//
// +kubebuilder:rbac:groups=apiextensions.k8s.io,resources=customresourcedefinitions,verbs=get;list
// +kubebuilder:rbac:groups=conversion-operator.io,resources=conversionpolicies,verbs=list
// +kubebuilder:rbac:groups=storagemigration.k8s.io,resources=storageversionmigrations,verbs=list
// +kubebuilder:rbac:groups="",resources=services,verbs=get
// +kubebuilder:rbac:groups=discovery.k8s.io,resources=endpointslices,verbs=list
