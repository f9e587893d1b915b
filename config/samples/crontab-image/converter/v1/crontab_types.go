// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package v1 has the CronTab in its newer version, the hub.
//
// +kubebuilder:object:generate=true
package v1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// CronTab is a job that runs at a host.
//
// +kubebuilder:object:root=true
type CronTab struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Host where the job runs.
	Host string `json:"host,omitempty"`
	// Port of the host.
	Port string `json:"port,omitempty"`
	// Replicas of the job.
	Replicas *int32 `json:"replicas,omitempty"`
	// TimeoutSeconds is only in this version.
	TimeoutSeconds *int64 `json:"timeoutSeconds,omitempty"`
}
