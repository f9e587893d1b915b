// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package v1beta1 has the CronTab in its older version, the spoke.
//
// +kubebuilder:object:generate=true
package v1beta1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// CronTab is a job that runs at a host.
//
// +kubebuilder:object:root=true
type CronTab struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// HostPort is where the job runs, as host:port.
	HostPort string `json:"hostPort,omitempty"`
	// Replicas of the job.
	Replicas *int32 `json:"replicas,omitempty"`
	// Note is only in this version.
	Note string `json:"note,omitempty"`
}
