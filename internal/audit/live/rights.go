// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package live

// What an audit reads, but for objects: of each kind one, at each version, by the
// rights of whoever asks. What may not be read is reported as not checked.
//
// +kubebuilder:rbac:groups=apiextensions.k8s.io,resources=customresourcedefinitions,verbs=get;list
// +kubebuilder:rbac:groups=conversion-operator.io,resources=conversionpolicies,verbs=list
// +kubebuilder:rbac:groups=storagemigration.k8s.io,resources=storageversionmigrations,verbs=list
// +kubebuilder:rbac:groups="",resources=services,verbs=get
// +kubebuilder:rbac:groups=discovery.k8s.io,resources=endpointslices,verbs=list
